/* SPDX-License-Identifier: BSD-2-Clause */
#include <gtest/gtest.h>

extern "C" {
#include "u_idle.h"
}

namespace {

struct Idle : testing::Test {
	u_idle_past past;
	struct u_idle i;

	void begin(u_idle_mode mode)
	{
		u_idle_past_init(&past, mode);
		u_idle_begin(&i, mode, &past);
	}

	Idle() { begin(U_IDLE_ADAPTIVE); }

	/* Makes steps until a yield or a sleep; returns how many polls came before. */
	unsigned polls(u_idle_step *last)
	{
		unsigned n = 0;

		while ((*last = ::u_idle(&i)) == U_IDLE_POLL)
			n++;
		return n;
	}
};

TEST_F(Idle, YieldsThatRanNoThreadShowNoContention)
{
	for (int n = 0; n < 1000000; n++)
		u_idle_yielded(&i, U_IDLE_ALONE_NS - 1);
	EXPECT_EQ(past.sleeps, 0u);
	EXPECT_EQ(past.polls, U_IDLE_POLLS);
}

TEST_F(Idle, TellsWhetherAYieldRanAnotherThread)
{
	u_idle_yielded(&i, U_IDLE_ALONE_NS);
	EXPECT_TRUE(i.shared);
	u_idle_yielded(&i, U_IDLE_ALONE_NS - 1);
	EXPECT_FALSE(i.shared);
}

TEST_F(Idle, OneLongYieldShowsContention)
{
	u_idle_yielded(&i, U_IDLE_CROWDED_NS);
	for (uint32_t n = 0; n < U_IDLE_SLEEPS; n++)
		EXPECT_EQ(u_idle_offer(&i), U_IDLE_SLEEP);
	EXPECT_EQ(u_idle_offer(&i), U_IDLE_YIELDED) << "it offers the processor again";
}

TEST_F(Idle, SoDoManyShortOnesInVain)
{
	for (int n = 0; n < U_IDLE_CROWDED_NS / 2000 - 1; n++)
		u_idle_yielded(&i, 2000);
	EXPECT_EQ(past.sleeps, 0u);
	u_idle_yielded(&i, 2000);
	EXPECT_EQ(past.sleeps, U_IDLE_SLEEPS);
}

/* Two that answer each other on one processor go on yielding. */
TEST_F(Idle, YieldsBehindWhichSomethingCameDoNot)
{
	for (int n = 0; n < 1000; n++) {
		u_idle_yielded(&i, U_IDLE_CROWDED_NS / 2);
		u_idle_moved(&i);
	}
	EXPECT_EQ(past.sleeps, 0u);
}

TEST_F(Idle, PollsLessWhereThePeerHasThisProcessor)
{
	u_idle_step last;

	EXPECT_EQ(polls(&last), U_IDLE_POLLS);
	EXPECT_EQ(last, U_IDLE_YIELDED);
	begin(U_IDLE_ADAPTIVE);
	for (uint32_t n = U_IDLE_POLLS; n > 0; n /= 2) {
		u_idle_yielded(&i, U_IDLE_ALONE_NS);
		u_idle_moved(&i);
		EXPECT_EQ(i.left, n / 2);
	}
	u_idle_yielded(&i, 0);
	EXPECT_EQ(i.left, U_IDLE_POLLS) << "the processor is its own again";
}

TEST_F(Idle, AdaptiveSleepsWhenNothingCameForLong)
{
	u_idle_step last;

	i.since = u_now_ns() - U_IDLE_NS;
	polls(&last);
	EXPECT_EQ(last, U_IDLE_SLEEP);
	u_idle_moved(&i);
	EXPECT_EQ(i.since, 0);
}

TEST_F(Idle, BlockSleepsAtOnce)
{
	begin(U_IDLE_BLOCK);
	EXPECT_EQ(::u_idle(&i), U_IDLE_SLEEP);
}

TEST_F(Idle, YieldYieldsAfterEachPollAndSleepsUnderContention)
{
	begin(U_IDLE_YIELD);
	i.since = u_now_ns() - 100 * U_IDLE_NS;
	u_idle_yielded(&i, 0);
	EXPECT_EQ(i.left, 0u);
	EXPECT_EQ(::u_idle(&i), U_IDLE_YIELDED);
	u_idle_yielded(&i, U_IDLE_CROWDED_NS);
	EXPECT_EQ(::u_idle(&i), U_IDLE_SLEEP);
}

TEST_F(Idle, SpinNeverSleeps)
{
	u_idle_step last;

	begin(U_IDLE_SPIN);
	i.since = u_now_ns() - 100 * U_IDLE_NS;
	u_idle_yielded(&i, U_IDLE_CROWDED_NS);
	EXPECT_EQ(polls(&last), U_IDLE_SPIN_POLLS);
	EXPECT_EQ(last, U_IDLE_YIELDED);
}

TEST_F(Idle, SleepsGrowUntilSomethingComes)
{
	EXPECT_EQ(u_idle_cap(&i), U_IDLE_CAP_NS);
	u_idle_slept(&i, true, false);
	EXPECT_EQ(u_idle_cap(&i), 2 * U_IDLE_CAP_NS);
	for (int n = 0; n < 10; n++)
		u_idle_slept(&i, true, false);
	EXPECT_EQ(u_idle_cap(&i), U_IDLE_CAP_MOST_NS);
	u_idle_slept(&i, false, true);
	EXPECT_EQ(u_idle_cap(&i), U_IDLE_CAP_NS);
}

TEST_F(Idle, SleepsAreShortForAWhileAfterALostDoorbell)
{
	u_idle_slept(&i, true, true);
	for (uint32_t n = 0; n < U_IDLE_LOSSY_SLEEPS; n++) {
		EXPECT_EQ(u_idle_cap(&i), U_IDLE_CAP_LOSSY_NS);
		u_idle_slept(&i, false, true);
	}
	EXPECT_EQ(u_idle_cap(&i), U_IDLE_CAP_NS);
}

} /* namespace */
