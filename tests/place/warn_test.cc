/* SPDX-License-Identifier: BSD-2-Clause */
#include "machines.h"

static const u_place_ask kTransfer = { U_PLACE_TRANSFER, 0, 1, false };
static const u_place_ask kService = { U_PLACE_SERVICE, 0, 1, false };
static const u_place_ask kServicePolls = { U_PLACE_SERVICE, 0, 1, true };

static std::string warning(Case &c, const std::vector<u_place_ask> &asks, unsigned index)
{
	auto all = c.place(asks);
	char out[U_PLACE_TEXT];

	return u_place_warning(asks.data(), static_cast<unsigned>(asks.size()), index, &all[index],
			       out);
}

TEST(PlaceWarn, RolesOnOneProcessor)
{
	MACHINE(topo, kChiplets);
	Case c(topo.get(), "transfer=4;service=4", "0");

	EXPECT_EQ(warning(c, { kTransfer, kService }, 0), "has one processor with service");
	EXPECT_EQ(warning(c, { kTransfer, kService }, 1), "has one processor with transfer");
	EXPECT_EQ(c.place({ kTransfer, kService })[0].warnings, unsigned(U_PLACE_SHARES_CPU));
	Case own(topo.get(), "transfer=0", "0");
	EXPECT_EQ(warning(own, { kTransfer }, 0), "has one processor with application");
	Case apart(topo.get(), "transfer=4;service=6", "0");
	EXPECT_EQ(warning(apart, { kTransfer, kService }, 0), "");
	Case room(topo.get(), "transfer=4-6;service=4-6", "0");
	EXPECT_EQ(warning(room, { kTransfer, kService }, 0), "");
}

TEST(PlaceWarn, RolesOnOneCore)
{
	MACHINE(topo, kChiplets);
	Case c(topo.get(), "transfer=4;service=5", "0");

	EXPECT_EQ(warning(c, { kTransfer, kService }, 0), "has one core with service");
	Case wanted(topo.get(), "transfer=same-core", "0");
	EXPECT_EQ(warning(wanted, { kTransfer }, 0), "");
	Case given(topo.get(), "transfer=shared-cache", "0");
	given.c.allowed = cpus("0-1");
	EXPECT_EQ(warning(given, { kTransfer }, 0), "has one core with application");
	given.c.allowed = cpus("0");
	EXPECT_EQ(warning(given, { kTransfer }, 0), "has one processor with application");
}

TEST(PlaceWarn, PollingOnASharedProcessor)
{
	MACHINE(topo, kChiplets);
	Case c(topo.get(), "transfer=4;service=4", "0");

	EXPECT_EQ(
		warning(c, { kTransfer, kServicePolls }, 0),
		"has one processor with service, and that never sleeps there: each hand-over can take "
		"milliseconds; let it wait otherwise (adaptive, block)");
	EXPECT_NE(
		warning(c, { kTransfer, kServicePolls }, 1).find("with transfer, and itself never"),
		std::string::npos);
	/* one core is asked for, but both poll */
	MACHINE(two, "package:1 l3:1 core:2 pu:1");
	Case same(two.get(), "transfer=same-core", "0");
	EXPECT_EQ(warning(same, { kTransfer }, 0), "");
	same.c.application_polls = true;
	EXPECT_NE(
		warning(same, { kTransfer }, 0).find("has one processor with application, and that"),
		std::string::npos);
	/* no rule places it, but there is no other processor */
	Case held(two.get(), "", "0");
	held.c.application_polls = true;
	EXPECT_EQ(warning(held, { kTransfer }, 0), "");
	held.c.allowed = cpus("0");
	EXPECT_EQ(held.place({ kTransfer })[0].warnings, unsigned(U_PLACE_POLLS));
}

TEST(PlaceWarn, MorePollingThreadsThanProcessors)
{
	MACHINE(two, "package:1 l3:1 core:2 pu:1");
	Case c(two.get(), "", "0-1");
	std::vector<u_place_ask> asks = { { U_PLACE_SERVICE, 0, 2, true },
					  { U_PLACE_SERVICE, 1, 2, true } };

	EXPECT_EQ(c.place(asks)[0].warnings, 0u);
	c.c.application_polls = true;
	EXPECT_EQ(c.place(asks)[0].warnings, unsigned(U_PLACE_TOO_MANY));
	EXPECT_NE(warning(c, asks, 1).find("more such threads than processors"), std::string::npos);
}

TEST(PlaceWarn, ThreadsOfARoleHaveNumbers)
{
	MACHINE(topo, kChiplets);
	Case c(topo.get(), "service=9", "0");

	EXPECT_EQ(warning(c, { { U_PLACE_SERVICE, 0, 2, false }, { U_PLACE_SERVICE, 1, 2, false } },
			  1),
		  "has one processor with service 0");
}
