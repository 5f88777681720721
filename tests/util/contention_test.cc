/* SPDX-License-Identifier: BSD-2-Clause */
#include <gtest/gtest.h>

extern "C" {
#include "u_contention.h"
}

TEST(Contention, OffersThatNobodyTakesShowNone)
{
	u_contention c = {};

	for (int i = 0; i < 1000000; i++)
		u_contention_learn(&c, U_ALONE_NS - 1);
	EXPECT_FALSE(u_contention_sleeps(&c));
}

TEST(Contention, OneThatWasTakenForLongShowsIt)
{
	u_contention c = {};

	u_contention_learn(&c, U_CONTENTION_NS);
	for (uint32_t i = 0; i < U_CONTENTION_SLEEPS; i++)
		EXPECT_TRUE(u_contention_sleeps(&c));
	EXPECT_FALSE(u_contention_sleeps(&c)) << "it offers again";
}

TEST(Contention, SoDoManyShortOnesInVain)
{
	u_contention c = {};

	for (int i = 0; i < U_CONTENTION_NS / 2000 - 1; i++)
		u_contention_learn(&c, 2000);
	EXPECT_EQ(c.sleeps, 0u);
	u_contention_learn(&c, 2000);
	EXPECT_TRUE(u_contention_sleeps(&c));
}

// Two that answer each other on one processor go on yielding.
TEST(Contention, ThoseThatBringSomethingDoNot)
{
	u_contention c = {};

	for (int i = 0; i < 1000; i++) {
		u_contention_learn(&c, U_CONTENTION_NS / 2);
		u_contention_moved(&c);
	}
	EXPECT_FALSE(u_contention_sleeps(&c));
}

TEST(Contention, AnOfferTakesWhatItTakes)
{
	u_contention c = {};
	int64_t before = u_now_ns(), took = u_contention_offer(&c, before);

	EXPECT_GE(took, 0);
	EXPECT_LE(took, u_now_ns() - before);
}
