// SPDX-License-Identifier: BSD-2-Clause
#include <gtest/gtest.h>

#include <cstring>

extern "C" {
#include "osh_origin.h"
}

namespace {

osh_origin origin(uint64_t machine, uint64_t network, uint32_t user, const char *fabric)
{
	osh_origin o = {};

	o.machine[0] = machine;
	o.network = network;
	o.user = user;
	std::strncpy(o.fabric, fabric, sizeof(o.fabric));
	return o;
}

TEST(Origin, OneMachineHasFabricsByUserAndName)
{
	osh_origin a = origin(1, 2, 3, "x"), b = a;

	EXPECT_TRUE(osh_origins_agree(&a, &b, true));
	EXPECT_TRUE(osh_origins_agree(&a, &b, false));
	b = origin(1, 2, 3, "y");
	EXPECT_FALSE(osh_origins_agree(&a, &b, true));
	EXPECT_FALSE(osh_origins_agree(&a, &b, false));
	b = origin(1, 2, 4, "x");
	EXPECT_FALSE(osh_origins_agree(&a, &b, false));
	b = origin(1, 2, 4, "somebody:x");
	EXPECT_TRUE(osh_origins_agree(&a, &b, false));
	b = origin(1, 2, 4, "somebody:y");
	EXPECT_FALSE(osh_origins_agree(&b, &a, false));
}

TEST(Origin, BetweenMachinesHostsHaveOtherAddresses)
{
	osh_origin a = origin(1, 2, 3, "x");

	for (const osh_origin &b : { origin(9, 2, 3, "x"), origin(1, 9, 3, "x") }) {
		EXPECT_FALSE(osh_origins_agree(&a, &b, true));
		EXPECT_TRUE(osh_origins_agree(&a, &b, false));
	}
}

TEST(Origin, WhatIsNotKnownIsNotJudged)
{
	osh_origin a = origin(1, 2, 3, "x");

	for (const osh_origin &b : { origin(0, 2, 3, "y"), origin(1, 0, 3, "y") })
		EXPECT_TRUE(osh_origins_agree(&a, &b, true));
}

// Text that another PE sent may lack an end and have unprintable characters.
TEST(Origin, TextOfAnotherPeIsClean)
{
	osh_origin o = origin(1, 2, 3, "x"), same;
	char text[OSH_ORIGIN_TEXT];

	std::memset(o.fabric, '\n', sizeof(o.fabric));
	std::memset(o.name, 'n', sizeof(o.name));
	osh_origin_text(&o, text);
	EXPECT_STREQ(text,
		     "fabric ????????????????????, uid 3, machine nnnnnnnnnnnnnnnn, network 2");
	same = o;
	EXPECT_TRUE(osh_origins_agree(&o, &same, true));
}

TEST(Origin, OfThisProcessIsKnown)
{
	osh_origin o;

	osh_origin_read(&o);
	EXPECT_NE(o.machine[0] | o.machine[1], 0u);
	EXPECT_NE(o.network, 0u);
	EXPECT_NE(o.fabric[0], '\0');
}

} // namespace
