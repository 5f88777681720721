/* SPDX-License-Identifier: BSD-2-Clause */
#include <gtest/gtest.h>
#include <stdint.h>

extern "C" {
#include "u_base.h"
#include "u_time.h"
}

TEST(Base, AlignUp)
{
	EXPECT_EQ(u_align_up(0, 64), 0u);
	EXPECT_EQ(u_align_up(1, 64), 64u);
	EXPECT_EQ(u_align_up(64, 64), 64u);
	EXPECT_EQ(u_align_up(65, 64), 128u);
}

TEST(Base, RangeTakesOffsetAndLengthTogether)
{
	EXPECT_TRUE(u_range_ok(0, 0, 0));
	EXPECT_TRUE(u_range_ok(0, 10, 10));
	EXPECT_TRUE(u_range_ok(10, 0, 10));
	EXPECT_FALSE(u_range_ok(10, 1, 10));
	EXPECT_FALSE(u_range_ok(11, 0, 10));
	EXPECT_FALSE(u_range_ok(1, UINT64_MAX, 10));
	EXPECT_FALSE(u_range_ok(UINT64_MAX, 2, 10));
}

TEST(Time, DeadlineOfInfiniteTimeoutIsNever)
{
	EXPECT_EQ(u_deadline_ms(0xFFFFFFFFUL), U_NEVER);
	EXPECT_EQ(u_deadline_ms(~0UL), U_NEVER);
	EXPECT_EQ(u_time_left(U_NEVER), -1);
}

TEST(Time, PassedDeadlineLeavesNothing)
{
	EXPECT_EQ(u_time_left(u_now_ns() - 1), 0);
	EXPECT_GT(u_time_left(u_deadline_ms(100000)), 0);
	EXPECT_LE(u_time_left(u_deadline_ms(100000)), INT64_C(100000) * 1000000);
}
