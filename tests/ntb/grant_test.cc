// SPDX-License-Identifier: BSD-2-Clause
// Direct stores into window memory: their effect, and their limits.
#include "grant_fixture.h"

namespace {

class EachWay : public Grant, public ::testing::WithParamInterface<std::tuple<int, const char *>> {
protected:
	void SetUp() override { open(std::get<0>(GetParam()), std::get<1>(GetParam())); }
};

// ---- the effect of a grant

TEST_P(EachWay, TheSecondWriteIsAStore)
{
	VIPX_COUNTERS c;

	warm(window);
	write(window, 1000, 3000);
	expect_sent();
	EXPECT_TRUE(landed(window, 1000, 3000));
	EXPECT_EQ(window.data[999], 0);
	EXPECT_EQ(window.data[4000], 0);
	c = counters(0);
	EXPECT_EQ(c.RdmaWrites, 2u);
	EXPECT_EQ(c.MessagesSent, 2u);
	EXPECT_EQ(c.BytesSent, 3008u);
	EXPECT_EQ(c.SlotsSent, 1u);
	c = counters(1);
	EXPECT_EQ(c.MessagesReceived, 1u);
	EXPECT_EQ(c.BytesReceived, 8u);
}

TEST_P(EachWay, EverySizeAndAlignmentLands)
{
	warm(window);
	for (size_t n : { 1, 2, 7, 8, 9, 63, 64, 65, 127, 1000, 4096, 20000 })
		for (size_t off : { 0, 1, 7, 60, 4095 }) {
			std::memset(window.data, 0, kWindow);
			write(window, off, n);
			expect_sent();
			ASSERT_TRUE(landed(window, off, n)) << n << " at " << off;
			ASSERT_EQ(window.data[off + n], 0) << n << " at " << off;
			ASSERT_TRUE(off == 0 || window.data[off - 1] == 0) << n << " at " << off;
		}
	EXPECT_EQ(counters(0).SlotsSent, 1u);
}

TEST_P(EachWay, SegmentsAreStoredOneAfterTheOther)
{
	warm(window);
	for (const std::vector<size_t> &pieces :
	     { std::vector<size_t>{ 5000, 3, 1 }, { 1, 1, 1 }, { 0, 100, 0, 4000 }, { 60, 2, 2 } }) {
		size_t total = 0;

		for (size_t n : pieces)
			total += n;
		std::memset(window.data, 0, kWindow);
		write(window, 33, pieces);
		expect_sent();
		EXPECT_TRUE(landed(window, 33, total));
		EXPECT_EQ(window.data[33 + total], 0);
	}
	EXPECT_EQ(counters(0).SlotsSent, 1u);
}

TEST_P(EachWay, NothingOvertakesASendBeforeIt)
{
	VIP_DESCRIPTOR *d;

	warm(window);
	send();
	write(window, 200, 50);
	EXPECT_EQ(window.data[200], 0) << "the receive is not complete";
	nvi_loop_progress(loop, 1);
	EXPECT_TRUE(landed(window, 200, 50));
	settle();
	EXPECT_NE(status(), 0u);
	expect_sent();
	EXPECT_EQ(nvi_loop_recv_done(loop, 1, &d), 1);
	EXPECT_TRUE(direct(window));
}

// It is posted after a send that the peer has not consumed.
TEST_P(EachWay, ALongOneWaitsRatherThanGoThroughSlots)
{
	VIP_DESCRIPTOR *d;

	warm(window);
	send();
	write(window, 200, 8000);
	EXPECT_EQ(counters(0).SlotsSent, 2u);
	EXPECT_EQ(window.data[200], 0);
	settle();
	EXPECT_NE(status(), 0u);
	expect_sent();
	EXPECT_TRUE(landed(window, 200, 8000));
	EXPECT_EQ(counters(0).SlotsSent, 2u);
	EXPECT_EQ(nvi_loop_recv_done(loop, 1, &d), 1);
}

TEST_P(EachWay, ARunOfShortOnesComesBackToStores)
{
	constexpr unsigned kWrites = 20, kRun = 8; // NVI_WRITE_RUN of nvi_write.h, which is C
	VIP_DESCRIPTOR *d;

	warm(window);
	send();
	for (unsigned i = 0; i < kWrites; i++)
		write(window, 64 * i, std::vector<size_t>{ 8 }, i);
	EXPECT_EQ(counters(0).SlotsSent, 2u + kRun);
	settle();
	EXPECT_NE(status(), 0u);
	for (unsigned i = 0; i < kWrites; i++) {
		expect_sent();
		EXPECT_TRUE(landed(window, 64 * i, 8)) << "write " << i;
	}
	EXPECT_EQ(counters(0).SlotsSent, 2u + kRun);
	EXPECT_EQ(nvi_loop_recv_done(loop, 1, &d), 1);
	EXPECT_TRUE(direct(window));
}

TEST_P(EachWay, ASendBehindItFindsTheBytesThere)
{
	warm(window);
	for (int i = 0; i < 40; i++) {
		VIP_DESCRIPTOR *d;

		std::memset(window.data, 0, 5000);
		write(window, 0, 5000);
		send();
		while (nvi_loop_recv_done(loop, 1, &d) == 0)
			nvi_loop_progress(loop, 1);
		ASSERT_TRUE(landed(window, 0, 5000)) << i;
		settle();
		expect_sent();
		EXPECT_NE(status(), 0u);
	}
}

TEST_P(EachWay, ImmediateDataAndEmptyWritesGoThroughSlots)
{
	VIP_DESCRIPTOR *d, *r = build(40, 0, { 64 }, nullptr, 0);

	warm(window);
	ASSERT_EQ(nvi_loop_post_recv(loop, 1, r, desc_handle), 0);
	d = build(1, VIP_CONTROL_OP_RDMAWRITE | VIP_CONTROL_IMMEDIATE, { 10 }, window.data,
		  window.handle);
	ASSERT_EQ(nvi_loop_post_send(loop, 0, d, desc_handle), 0);
	settle();
	expect_sent();
	EXPECT_EQ(nvi_loop_recv_done(loop, 1, &d), 1);
	write(window, 0, std::vector<size_t>{ 0 });
	settle();
	expect_sent();
	EXPECT_EQ(counters(0).SlotsSent, 3u);
}

TEST_P(EachWay, WhatTheDescriptorMayNotReadIsNotStored)
{
	VIP_DESCRIPTOR *d;

	warm(window);
	std::memset(window.data, 0, kWindow);
	d = build(0, VIP_CONTROL_OP_RDMAWRITE, { 100 }, window.data, window.handle);
	d->DS[1].Local.Handle ^= 1u << 30;
	ASSERT_EQ(nvi_loop_post_send(loop, 0, d, desc_handle), 0);
	expect_sent(VIP_STATUS_PROTECTION_ERROR);
	EXPECT_EQ(window.data[0], 0);
}

// ---- the limits of a grant

struct Beyond {
	const char *name;
	int64_t off;
	size_t n;
};

class Refused : public Grant, public ::testing::WithParamInterface<Beyond> {};

TEST_P(Refused, OutsideOfTheRegion)
{
	Window w;

	open(VIP_SERVICE_RELIABLE_RECEPTION);
	warm(window);
	w = window;
	w.data = window.data + GetParam().off;
	std::memset(window.data, 0, kWindow);
	write(w, 0, GetParam().n);
	settle();
	expect_sent(VIP_STATUS_RDMA_PROT_ERROR);
	for (size_t i = 0; i < kWindow; i++)
		ASSERT_EQ(window.data[i], 0) << i;
	EXPECT_EQ(nvi_loop_state(loop, 0), VIP_STATE_ERROR);
	EXPECT_EQ(nvi_agent_held(agent, 0), 0u) << "nothing is mapped by a broken connection";
}

INSTANTIATE_TEST_SUITE_P(Bounds, Refused,
			 ::testing::Values(Beyond{ "before", -1, 100 },
					   Beyond{ "behind", kWindow - 99, 100 },
					   Beyond{ "at_the_end", kWindow, 1 },
					   Beyond{ "far", INT64_C(1) << 40, 8 },
					   Beyond{ "around", -8, 16 }),
			 [](const auto &info) { return info.param.name; });

TEST_F(Grant, AnotherRegistrationOfTheMemoryIsNotGranted)
{
	Window twin = {};

	open(VIP_SERVICE_RELIABLE_RECEPTION);
	twin.data = window.data;
	twin.handle = nvi_loop_register(loop, window.data, kWindow);
	EXPECT_FALSE(direct(twin));
	settle();
	EXPECT_FALSE(direct(twin));
	EXPECT_EQ(nvi_agent_sent(agent, W_GRANT_DENY), 1u);
	EXPECT_EQ(nvi_agent_given(agent), 0u);
	nvi_loop_deregister(loop, twin.data, twin.handle);
}

TEST_F(Grant, MemoryThatIsNotOpenIsNotGranted)
{
	Window closed;

	open(VIP_SERVICE_UNRELIABLE);
	closed = alloc(false);
	for (int i = 0; i < 2; i++) {
		write(closed);
		settle();
		expect_sent();
	}
	EXPECT_EQ(closed.data[0], 0);
	EXPECT_EQ(nvi_agent_sent(agent, W_GRANT_ASK), 1u) << "it is asked once";
	EXPECT_EQ(nvi_agent_given(agent), 0u);
	EXPECT_EQ(nvi_agent_held(agent, 0), 0u);
}

std::string PathName(const ::testing::TestParamInfo<std::tuple<int, const char *>> &info)
{
	const char *level = std::get<0>(info.param) == VIP_SERVICE_UNRELIABLE ? "unreliable"
			    : std::get<0>(info.param) == VIP_SERVICE_RELIABLE_DELIVERY
				    ? "delivery"
				    : "reception";

	return std::string(level) +
	       (std::string(std::get<1>(info.param)) == "emu" ? "" : "_strict");
}

INSTANTIATE_TEST_SUITE_P(Paths, EachWay,
			 ::testing::Combine(::testing::Values(VIP_SERVICE_UNRELIABLE,
							      VIP_SERVICE_RELIABLE_DELIVERY,
							      VIP_SERVICE_RELIABLE_RECEPTION),
					    ::testing::Values("emu", "emu+strict")),
			 PathName);

} // namespace
