// SPDX-License-Identifier: BSD-2-Clause
// Direct stores of connections that continue over another path: none completes that may be lost.
#include <thread>

#include "eventually.h"
#include "grant_fixture.h"

namespace {

constexpr uint32_t kGood = VIP_STATUS_DONE | kWrite;

class Resumable : public Grant, public ::testing::WithParamInterface<int> {
protected:
	void SetUp() override
	{
		open(GetParam(), "emu+fault", kLong, "", true);
		warm(window);
		std::memset(window.data, 0, kWindow);
		slots = counters(0).SlotsSent;
	}

	// Posts writes number `from` to `to` - 1, each to a place of its own.
	void writes(unsigned from, unsigned to)
	{
		for (unsigned i = from; i < to; i++)
			write(window, i * kPlace, std::vector<size_t>{ kBytes }, i);
	}

	::testing::AssertionResult all_landed(unsigned from, unsigned to)
	{
		for (unsigned i = from; i < to; i++) {
			auto one = landed(window, i * kPlace, kBytes);

			if (!one)
				return one << " of write " << i;
		}
		return ::testing::AssertionSuccess();
	}

	// Expects that exactly that many are complete, in order and without error.
	void expect_complete(unsigned n)
	{
		for (unsigned i = 0; i < n; i++)
			EXPECT_EQ(status(), kGood) << i;
		EXPECT_EQ(status(), 0u);
	}

	void lose_and_find()
	{
		ASSERT_EQ(nvi_loop_lose_path(loop), 0);
		nvi_loop_link(loop, 1);
		ASSERT_EQ(nvi_loop_find_path(loop), 0);
	}

	uint64_t sent_slots() { return counters(0).SlotsSent - slots; }

	static constexpr size_t kPlace = 2048, kBytes = 1500;
	uint64_t slots = 0;
};

TEST_P(Resumable, OneCheckCompletesAllThatWereStored)
{
	writes(0, 5);
	EXPECT_TRUE(all_landed(0, 5));
	expect_complete(0);
	EXPECT_EQ(counters(0).RdmaWrites, 1u) << "those that are complete";
	nvi_loop_progress(loop, 0);
	expect_complete(5);
	EXPECT_EQ(sent_slots(), 0u);
	EXPECT_EQ(counters(0).RdmaWrites, 6u);
	EXPECT_EQ(counters(0).MessagesSent, 6u);
	EXPECT_EQ(counters(0).BytesSent, 8 + 5 * kBytes);
}

TEST_P(Resumable, WhatIsSentBehindThemCompletesThem)
{
	VIP_DESCRIPTOR *d;

	writes(0, 3);
	send();
	for (int i = 0; i < 3; i++)
		EXPECT_EQ(status(), kGood) << i;
	EXPECT_EQ(sent_slots(), 1u);
	settle();
	EXPECT_EQ(nvi_loop_recv_done(loop, 1, &d), 1);
	EXPECT_EQ(status(), static_cast<uint32_t>(VIP_STATUS_DONE | VIP_STATUS_OP_SEND));
}

TEST_P(Resumable, AFenceBehindThemWaitsForThem)
{
	VIP_DESCRIPTOR *d;

	writes(0, 3);
	d = build(3, VIP_CONTROL_OP_RDMAWRITE | VIP_CONTROL_QFENCE, { kBytes },
		  window.data + 3 * kPlace, window.handle);
	ASSERT_EQ(nvi_loop_post_send(loop, 0, d, desc_handle), 0);
	EXPECT_EQ(window.data[3 * kPlace], 0);
	settle();
	expect_complete(4);
	EXPECT_TRUE(all_landed(0, 4));
	EXPECT_EQ(sent_slots(), 0u);
}

TEST_P(Resumable, WhoSleepsSeesThemComplete)
{
	writes(0, 3);
	nvi_loop_arm(loop);
	expect_complete(3);
}

TEST_P(Resumable, ADisconnectCompletesThem)
{
	writes(0, 3);
	nvi_agent_disconnect(agent, 0);
	for (int i = 0; i < 3; i++)
		EXPECT_EQ(status(), kGood) << i;
}

TEST_P(Resumable, APathThatIsOnlyExchangedLosesNothing)
{
	writes(0, 3);
	lose_and_find();
	expect_complete(3);
	EXPECT_TRUE(all_landed(0, 3));
	EXPECT_EQ(sent_slots(), 0u);
}

// Some were stored before the link went down, some after: their state is unknown, so all are sent again.
TEST_P(Resumable, WhatTheLinkSwallowedIsWrittenAgain)
{
	writes(0, 3);
	nvi_loop_link(loop, 0);
	writes(3, 6);
	EXPECT_FALSE(all_landed(3, 6));
	std::memset(window.data, 0, kWindow);
	lose_and_find();
	settle();
	expect_complete(6);
	EXPECT_TRUE(all_landed(0, 6));
	EXPECT_EQ(sent_slots(), 6u);
	EXPECT_EQ(counters(0).RdmaWrites, 7u);
	EXPECT_EQ(counters(0).MessagesSent, 7u);
	EXPECT_EQ(nvi_loop_state(loop, 0), VIP_STATE_CONNECTED);
	EXPECT_EQ(nvi_agent_held(agent, 0), 0u);
}

TEST_P(Resumable, ACheckOfADeadLinkCompletesNothing)
{
	writes(0, 2);
	nvi_loop_link(loop, 0);
	nvi_loop_progress(loop, 0);
	writes(2, 4);
	nvi_loop_progress(loop, 0);
	expect_complete(0);
	std::memset(window.data, 0, kWindow);
	lose_and_find();
	settle();
	expect_complete(4);
	EXPECT_TRUE(all_landed(0, 4));
}

TEST_P(Resumable, ASendBehindWhatWasSwallowedComesBehindIt)
{
	VIP_DESCRIPTOR *d;

	writes(0, 2);
	nvi_loop_link(loop, 0);
	writes(2, 4);
	send();
	expect_complete(0);
	std::memset(window.data, 0, kWindow);
	lose_and_find();
	while (nvi_loop_recv_done(loop, 1, &d) == 0)
		nvi_loop_progress(loop, 1);
	EXPECT_TRUE(all_landed(0, 4));
	settle();
	for (int i = 0; i < 4; i++)
		EXPECT_EQ(status(), kGood) << i;
	EXPECT_EQ(status(), static_cast<uint32_t>(VIP_STATUS_DONE | VIP_STATUS_OP_SEND));
}

// The path is lost again and again, each time with stores under way; then there are grants again.
TEST_P(Resumable, OverManyLosses)
{
	for (unsigned round = 0; round < 20; round++) {
		std::memset(window.data, 0, kWindow);
		writes(0, 1 + round % 4);
		nvi_loop_link(loop, 0);
		writes(1 + round % 4, 6);
		lose_and_find();
		settle();
		expect_complete(6);
		ASSERT_TRUE(all_landed(0, 6)) << round;
		write(window, 0, 8);
		settle();
		expect_sent();
	}
	EXPECT_GE(nvi_agent_held(agent, 0), 1u);
}

TEST_P(Resumable, ALossOfTheConnectionTellsWhatMayBeLost)
{
	writes(0, 2);
	nvi_loop_progress(loop, 0);
	nvi_loop_link(loop, 0);
	writes(2, 4);
	nvi_loop_lose(loop, 0);
	EXPECT_EQ(status(), kGood);
	EXPECT_EQ(status(), kGood);
	EXPECT_EQ(status(), kGood | VIP_STATUS_TRANSPORT_ERROR | VIP_STATUS_PARTIAL_ERROR);
	EXPECT_EQ(status(), kGood | VIP_STATUS_DESC_FLUSHED_ERROR);
	EXPECT_EQ(nvi_loop_state(loop, 0), VIP_STATE_ERROR);
}

// ---- messages under way when their sender disconnects

class Leaving : public Resumable {
protected:
	static constexpr unsigned kSends = 5;

	void SetUp() override
	{
		Resumable::SetUp();
		nvi_loop_drain_ms(loop, 60000);
		nvi_loop_link(loop, 1);
	}

	// Messages for which end 1 has room.
	void send(unsigned count)
	{
		for (; count > 0; count--, sent++) {
			VIP_DESCRIPTOR *r = build(20 + sent, 0, { 64 }, nullptr, 0);
			VIP_DESCRIPTOR *d =
				build(30 + sent, VIP_CONTROL_OP_SENDRECV, { 64 }, nullptr, 0);

			EXPECT_EQ(nvi_loop_post_recv(loop, 1, r, desc_handle), 0);
			EXPECT_EQ(nvi_loop_post_send(loop, 0, d, desc_handle), 0);
		}
	}

	// The end disconnects, on a thread of its own, and waits.
	void leave()
	{
		leaver = std::thread([this] { nvi_agent_disconnect(agent, 0); });
		ASSERT_TRUE(eventually([this] { return nvi_loop_drains(loop, 0) != 0; }));
	}

	void expect_arrived(unsigned n)
	{
		VIP_DESCRIPTOR *d;

		for (unsigned i = 0; i < n; i++) {
			EXPECT_EQ(nvi_loop_recv_done(loop, 1, &d), 1) << i;
			EXPECT_EQ(status(),
				  static_cast<uint32_t>(VIP_STATUS_DONE | VIP_STATUS_OP_SEND))
				<< i;
		}
	}

	std::thread leaver;
	unsigned sent = 0;
};

TEST_P(Leaving, WhatIsOnItsWayArrivesAndIsDone)
{
	send(kSends);
	nvi_agent_disconnect(agent, 0);
	expect_arrived(kSends);
	EXPECT_EQ(nvi_loop_state(loop, 0), VIP_STATE_IDLE);
}

TEST_P(Leaving, APathThatIsLostIsWaitedFor)
{
	ASSERT_EQ(nvi_loop_lose_path(loop), 0);
	send(kSends);
	leave();
	ASSERT_EQ(nvi_loop_find_path(loop), 0);
	leaver.join();
	expect_arrived(kSends);
}

TEST_P(Leaving, NothingIsSentMeanwhile)
{
	VIP_DESCRIPTOR *d;

	ASSERT_EQ(nvi_loop_lose_path(loop), 0);
	send(1);
	leave();
	send(1);
	ASSERT_EQ(nvi_loop_find_path(loop), 0);
	leaver.join();
	expect_arrived(1);
	EXPECT_EQ(status(), static_cast<uint32_t>(VIP_STATUS_DONE | VIP_STATUS_OP_SEND |
						  VIP_STATUS_DESC_FLUSHED_ERROR));
	EXPECT_LE(nvi_loop_recv_done(loop, 1, &d), 0);
}

TEST_P(Leaving, ALossIsNotWaitedFor)
{
	ASSERT_EQ(nvi_loop_lose_path(loop), 0);
	send(1);
	leave();
	nvi_loop_lose(loop, 0);
	leaver.join();
	EXPECT_EQ(status() == static_cast<uint32_t>(VIP_STATUS_DONE | VIP_STATUS_OP_SEND),
		  GetParam() == VIP_SERVICE_RELIABLE_DELIVERY);
	EXPECT_EQ(nvi_loop_state(loop, 0), VIP_STATE_IDLE);
}

// A descriptor that cannot be sent: earlier sends arrive over the next path, and
// complete.
TEST_P(Leaving, ABadOneWaitsForThePath)
{
	VIP_DESCRIPTOR *d = build(9, VIP_CONTROL_OP_SENDRECV, { 8 }, nullptr, 0);

	ASSERT_EQ(nvi_loop_lose_path(loop), 0);
	send(kSends);
	d->CS.Control |= 0x10;
	ASSERT_EQ(nvi_loop_post_send(loop, 0, d, desc_handle), 0);
	EXPECT_EQ(nvi_loop_state(loop, 0), VIP_STATE_CONNECTED);
	nvi_loop_link(loop, 1);
	ASSERT_EQ(nvi_loop_find_path(loop), 0);
	settle();
	expect_arrived(kSends);
	EXPECT_EQ(status(), static_cast<uint32_t>(VIP_STATUS_DONE | VIP_STATUS_OP_SEND |
						  VIP_STATUS_FORMAT_ERROR));
	EXPECT_EQ(nvi_loop_state(loop, 0), VIP_STATE_ERROR);
	EXPECT_EQ(nvi_loop_state(loop, 1), VIP_STATE_ERROR);
}

INSTANTIATE_TEST_SUITE_P(Levels, Leaving,
			 ::testing::Values(VIP_SERVICE_RELIABLE_DELIVERY,
					   VIP_SERVICE_RELIABLE_RECEPTION),
			 [](const auto &info) {
				 return info.param == VIP_SERVICE_RELIABLE_DELIVERY ? "delivery"
										    : "reception";
			 });
INSTANTIATE_TEST_SUITE_P(Levels, Resumable,
			 ::testing::Values(VIP_SERVICE_RELIABLE_DELIVERY,
					   VIP_SERVICE_RELIABLE_RECEPTION),
			 [](const auto &info) {
				 return info.param == VIP_SERVICE_RELIABLE_DELIVERY ? "delivery"
										    : "reception";
			 });

} // namespace
