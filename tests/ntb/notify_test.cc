// SPDX-License-Identifier: BSD-2-Clause
// The notify request: when it asks the sender for fences; and sleeps end in any case.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>

extern "C" {
#include "nvi_loop.h"
}
#include "w_slot.h"

namespace {

constexpr int kQuiet = 8; // armings with few messages between them, until fences are asked for
constexpr int kMany = 40; // many messages between two armings
constexpr int64_t kTooLong = 20000000000; // a sleep that no ring ended

class Notify : public ::testing::TestWithParam<const char *> {
protected:
	void SetUp() override
	{
		nvi_loop_cfg cfg = {};

		cfg.slots = 16;
		cfg.payload_bytes = 16384;
		cfg.level = VIP_SERVICE_RELIABLE_DELIVERY;
		cfg.port = GetParam();
		cfg.seed = 7;
		loop = nvi_loop_open(&cfg);
		ASSERT_NE(loop, nullptr);
		handle = nvi_loop_register(loop, descs.get(), sizeof(*descs));
		ASSERT_NE(handle, 0u);
	}

	void TearDown() override
	{
		if (loop == nullptr)
			return;
		nvi_loop_deregister(loop, descs.get(), handle);
		nvi_loop_close(loop);
	}

	// The word that end 0 reads before it rings; end 1 wrote it.
	uint32_t notify()
	{
		uint64_t len;
		auto *control = reinterpret_cast<w_control *>(nvi_loop_inbound(loop, 0, &len));

		nvi_loop_flush(loop);
		return __atomic_load_n(&control->notify, __ATOMIC_SEQ_CST);
	}

	void post()
	{
		std::memset(static_cast<void *>(descs.get()), 0, sizeof(*descs));
		ASSERT_EQ(nvi_loop_post_recv(loop, 1, &descs->receive, handle), 0);
		ASSERT_EQ(nvi_loop_post_send(loop, 0, &descs->send, handle), 0);
	}

	void take()
	{
		VIP_DESCRIPTOR *d;

		ASSERT_LT(nvi_loop_settle(loop, 1000), 1000);
		ASSERT_EQ(nvi_loop_send_done(loop, 0, &d), 1);
		ASSERT_EQ(nvi_loop_recv_done(loop, 1, &d), 1);
	}

	void messages(int count)
	{
		for (int i = 0; i < count && !HasFatalFailure(); i++) {
			post();
			take();
		}
	}

	// As a thread that sleeps for each message does.
	uint32_t arm_often(int count, int between)
	{
		for (int i = 0; i < count; i++) {
			messages(between);
			nvi_loop_arm(loop);
			EXPECT_NE(notify() & W_NOTIFY_SLOT, 0u);
		}
		return notify();
	}

	struct Descriptors {
		alignas(64) VIP_DESCRIPTOR send, receive;
	};
	std::unique_ptr<Descriptors> descs = std::make_unique<Descriptors>();
	nvi_loop *loop = nullptr;
	VIP_MEM_HANDLE handle = 0;
};

TEST_P(Notify, PolledAsksForNothing)
{
	EXPECT_EQ(notify(), 0u);
	messages(kMany);
	EXPECT_EQ(notify(), 0u);
}

TEST_P(Notify, AsksForFencesOfAPeerThatSendsLittle)
{
	EXPECT_EQ(arm_often(kQuiet - 1, 1) & W_NOTIFY_FENCE, 0u);
	EXPECT_NE(arm_often(1, 1) & W_NOTIFY_FENCE, 0u);
	messages(1);
	EXPECT_EQ(notify(), W_NOTIFY_FENCE) << "polled, it has to go on asking";
}

TEST_P(Notify, NotOfOneThatSendsMuch)
{
	EXPECT_EQ(arm_often(2 * kQuiet, kMany) & W_NOTIFY_FENCE, 0u);
}

TEST_P(Notify, StopsAskingAtAnArmingAfterMuch)
{
	arm_often(kQuiet, 1);
	EXPECT_EQ(arm_often(1, kMany) & W_NOTIFY_FENCE, 0u);
	messages(1);
	EXPECT_EQ(notify(), 0u);
}

TEST_P(Notify, StopsAskingWhilePolled)
{
	arm_often(kQuiet, 1);
	messages(1);
	nvi_loop_tick(loop);
	EXPECT_EQ(notify(), W_NOTIFY_FENCE) << "little came";
	messages(kMany);
	nvi_loop_tick(loop);
	EXPECT_EQ(notify(), 0u);
	EXPECT_EQ(arm_often(kQuiet - 1, 1) & W_NOTIFY_FENCE, 0u) << "the count starts again";
}

TEST_P(Notify, StopsAskingWhilePolledBesideABusyEngine)
{
	arm_often(kQuiet, 1);
	nvi_loop_busy_tick(loop);
	EXPECT_NE(notify() & W_NOTIFY_SLOT, 0u) << "armed, it is left alone";
	messages(1);
	nvi_loop_busy_tick(loop);
	EXPECT_EQ(notify(), W_NOTIFY_FENCE) << "little came";
	messages(kMany);
	nvi_loop_busy_tick(loop);
	EXPECT_EQ(notify(), 0u);
}

// It may have stored for longer than a tick: arming would make it wait for a flush after that.
TEST_P(Notify, WhoIsInsideACallIsNotArmed)
{
	messages(1);
	nvi_loop_tick(loop);
	nvi_loop_enter(loop, 1);
	for (int i = 0; i < 3; i++)
		nvi_loop_tick(loop);
	EXPECT_EQ(notify(), 0u);
	nvi_loop_leave(loop, 1);
	nvi_loop_tick(loop);
	EXPECT_NE(notify() & W_NOTIFY_SLOT, 0u);
}

TEST_P(Notify, ANewConnectionDoesNotAsk)
{
	arm_often(kQuiet, 1);
	ASSERT_EQ(nvi_loop_reconnect(loop), 0);
	EXPECT_EQ(notify(), 0u);
	EXPECT_EQ(arm_often(1, 1) & W_NOTIFY_FENCE, 0u);
}

TEST_P(Notify, WhatArrivesEndsTheSleepWithFencesAndWithout)
{
	for (int i = 0; i < 3 * kQuiet; i++) {
		uint32_t ticket = nvi_loop_arm(loop);

		ASSERT_EQ(nvi_loop_polled(loop), 0u);
		post();
		EXPECT_FALSE(nvi_loop_overslept(loop, ticket, kTooLong)) << "sleep " << i;
		take();
	}
}

// Whatever word the peer writes, the sender goes on.
TEST_P(Notify, AnyWordIsTaken)
{
	uint64_t len;
	auto *control = reinterpret_cast<w_control *>(nvi_loop_inbound(loop, 0, &len));

	for (uint32_t word : { 1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u, 0x80000000u, 0xffffffffu }) {
		__atomic_store_n(&control->notify, word, __ATOMIC_SEQ_CST);
		messages(3);
	}
}

INSTANTIATE_TEST_SUITE_P(Ports, Notify, ::testing::Values("emu", "emu+strict"),
			 [](const ::testing::TestParamInfo<const char *> &info) {
				 return std::string(info.param) == "emu" ? "emu" : "strict";
			 });

} // namespace
