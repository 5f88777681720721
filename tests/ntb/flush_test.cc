// SPDX-License-Identifier: BSD-2-Clause
// Threads that wait until the peer has consumed what was sent, and threads that leave work to others: those that sleep
// are woken for it.
#include "place_fixture.h"

namespace {

class Flushing : public Placed, public ::testing::WithParamInterface<int> {
protected:
	void SetUp() override { start(GetParam()); }

	// Every slot of end 0 holds a message, none of which was consumed.
	void fill()
	{
		for (unsigned i = 0; i < kSlots; i++) {
			receive(i * 64, 64);
			message(8);
		}
		ASSERT_EQ(counters(0).SlotsSent, kSlots);
	}

	unsigned take_sends()
	{
		unsigned n = 0;

		while (status() != 0)
			n++;
		return n;
	}
};

// There is no slot to ask the peer for credit, which it gives without being asked; it has to ring for it.
TEST_P(Flushing, WhileNoSlotIsFree)
{
	uint64_t rung;

	fill();
	EXPECT_FALSE(nvi_loop_drained(loop, 0));
	EXPECT_TRUE(nvi_loop_waits(loop, 0));
	rung = nvi_loop_rung(loop);
	nvi_loop_arm(loop); // end 0 first; then end 1 takes what came
	EXPECT_GT(nvi_loop_rung(loop), rung);
	settle();
	nvi_loop_drained(loop, 0);
	settle();
	EXPECT_TRUE(nvi_loop_drained(loop, 0));
}

// All sleep, without having asked for credit, when a thread begins to wait for it.
TEST_P(Flushing, WhileAllSleep)
{
	receive(0, 64);
	settle();
	nvi_loop_arm(loop);
	ASSERT_EQ(nvi_loop_polled(loop), 0u);
	message(8);
	EXPECT_FALSE(nvi_loop_drained(loop, 0));
	EXPECT_NE(nvi_loop_polled(loop), 0u) << "the doorbell is not rung for credit";
}

TEST_P(Flushing, NothingWaitsAfterItsTime)
{
	receive(0, 64);
	message(8);
	EXPECT_EQ(nvi_loop_flush_sends(loop, 0, 0), 0);
	settle();
	EXPECT_FALSE(nvi_loop_waits(loop, 0)) << "sends would take the slow way from now on";
	EXPECT_EQ(nvi_loop_flush_sends(loop, 0, 1000000000), 1);
}

// sock/stream asks in this way whether all was consumed.
TEST_P(Flushing, AsksOnceHoweverOftenItIsCalled)
{
	uint64_t rung = nvi_loop_rung(loop);

	receive(0, 64);
	message(8);
	for (int i = 0; i < 100; i++)
		EXPECT_EQ(nvi_loop_flush_sends(loop, 0, 0), 0);
	EXPECT_LE(nvi_loop_rung(loop), rung + 1);
	receive(0, 64);
	message(8);
	for (int i = 0; i < 100; i++)
		EXPECT_EQ(nvi_loop_flush_sends(loop, 0, 0), 0);
	EXPECT_LE(nvi_loop_rung(loop), rung + 2);
	settle();
	EXPECT_EQ(nvi_loop_flush_sends(loop, 0, 0), 1);
}

// Short sends do not ask for credit, so the last slot that did may lie back as far as can be counted.
TEST_P(Flushing, AfterAnyNumberOfSlots)
{
	nvi_loop_count_from(loop, 0xffffff00u);
	for (unsigned i = 0; i < 40; i++) {
		for (unsigned k = 0; k < 15; k++) {
			receive(0, 64);
			message(8);
		}
		EXPECT_FALSE(nvi_loop_drained(loop, 0)) << i;
		settle();
		EXPECT_TRUE(nvi_loop_drained(loop, 0)) << i;
		EXPECT_EQ(take_sends(), 15u);
		while (received() != SIZE_MAX)
			;
	}
}

// A thread stores as much as it may at once and goes, after another one found that nothing was to be done and slept.
TEST_P(Flushing, AWriteThatIsLeftToOthers)
{
	constexpr size_t kLongWrite = 8 << 20;
	std::thread writer;

	nvi_loop_deregister(loop, ours.data(), our_handle);
	ours.assign(kLongWrite, 1);
	our_handle = nvi_loop_register(loop, ours.data(), ours.size());
	window.data = nvi_agent_alloc(agent, kLongWrite, true, &window.handle);
	ASSERT_NE(window.data, nullptr);
	windows.push_back(window);
	warm(window);
	// Two writes wait until messages are consumed.
	receive(0, 64);
	message(8);
	write(window, 0, std::vector<size_t>{ 40 }, 1);
	std::memset(window.data, 0, 64);
	for (unsigned i = 2; i < 4; i++)
		write(window, 0, std::vector<size_t>{ kLongWrite }, i);
	EXPECT_EQ(window.data[kLongWrite - 1], 0);
	while (nvi_loop_progress(loop, 1) != 0)
		;
	writer = std::thread([this] { nvi_loop_progress(loop, 0); });
	EXPECT_TRUE(eventually(
		[this] { return __atomic_load_n(&window.data[4096], __ATOMIC_RELAXED) != 0; }));
	nvi_loop_arm(loop);
	writer.join();
	EXPECT_TRUE(take_sends() == 4 || nvi_loop_polled(loop) != 0) << "all sleep";
	settle();
	while (nvi_loop_arm(loop), nvi_loop_polled(loop) != 0)
		settle();
	EXPECT_TRUE(landed(window, 0, kLongWrite));
}

std::string Name(const ::testing::TestParamInfo<int> &info)
{
	return info.param == VIP_SERVICE_RELIABLE_DELIVERY ? "delivery" : "reception";
}

INSTANTIATE_TEST_SUITE_P(Levels, Flushing,
			 ::testing::Values(VIP_SERVICE_RELIABLE_DELIVERY,
					   VIP_SERVICE_RELIABLE_RECEPTION),
			 Name);

} // namespace
