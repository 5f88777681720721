/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads of one role, and of several processes of a machine, have cores of their own as long as
 * there are enough.
 */
#include "machines.h"

static std::string share(const u_topo *topo, const char *rule, const char *application,
			 unsigned rank, unsigned ranks, unsigned index = 0, unsigned count = 1)
{
	Case c(topo, std::string("transfer=") + rule, application);

	c.c.rank = rank;
	c.c.ranks = ranks;
	return text(c.place({ { U_PLACE_TRANSFER, index, count, false } })[0].cpus);
}

TEST(PlaceShare, CoresInTurn)
{
	MACHINE(topo, kChiplets);
	const u_topo *t = topo.get();

	EXPECT_EQ(share(t, "shared-cache", "0", 0, 0), "2-7");
	EXPECT_EQ(share(t, "shared-cache", "0", 0, 1), "2-7");
	EXPECT_EQ(share(t, "shared-cache", "0", 0, 3), "2-3");
	EXPECT_EQ(share(t, "shared-cache", "0", 2, 3), "6-7");
	EXPECT_EQ(share(t, "shared-cache", "0", 0, 2), "2-3,6-7");
	EXPECT_EQ(share(t, "shared-cache", "0", 1, 2), "4-5");
	EXPECT_EQ(share(t, "shared-cache", "0", 4, 6), "4-5"); /* 3 cores: 4 modulo 3 */
	EXPECT_EQ(share(t, "shared-cache", "0", 7, 6), "4-5"); /* a number that is too large */
	EXPECT_EQ(share(t, "shared-cache", "0", 0, 1, 1, 3), "4-5");
	EXPECT_EQ(share(t, "shared-cache", "0", 1, 2, 0, 2), "6-7"); /* thread 2 of 4 */
	EXPECT_EQ(share(t, "shared-cache", "0", 1, 2, 1, 2), "2-3"); /* thread 3 of 4 */
}

TEST(PlaceShare, ListsByProcessors)
{
	EXPECT_EQ(share(nullptr, "4-7", "0", 0, 0), "");
	MACHINE(topo, kChiplets);
	EXPECT_EQ(share(topo.get(), "4-7", "0", 0, 0), "4-7");
	EXPECT_EQ(share(topo.get(), "4-7", "0", 0, 2), "4,6");
	EXPECT_EQ(share(topo.get(), "4-7", "0", 1, 2), "5,7");
	EXPECT_EQ(share(topo.get(), "4-5", "0", 2, 3), "4");
	EXPECT_EQ(share(topo.get(), "4-7", "0", 0, 1, 3, 4), "7");
}

/* Threads that move by load begin on one core each, and their place is that of all. */
TEST(PlaceShare, OneCoreEachToBeginWith)
{
	MACHINE(topo, kChiplets);
	Case c(topo.get(), "service=shared-cache;dynamic", "0");
	u_cpuset place;

	EXPECT_EQ(text(c.one(U_PLACE_SERVICE).cpus), "2-3");
	EXPECT_EQ(text(c.place({ { U_PLACE_SERVICE, 1, 2, true } })[0].cpus), "4-5");
	u_place_of_service(&c.c, &place);
	EXPECT_EQ(text(place), "2-7");
	Case list(topo.get(), "service=4,6-9;transfer=4-7;dynamic", "0");
	EXPECT_EQ(text(list.one(U_PLACE_SERVICE).cpus), "4");
	EXPECT_EQ(text(list.one(U_PLACE_TRANSFER).cpus), "4-7");
	u_place_of_service(&list.c, &place);
	EXPECT_EQ(text(place), "4,6-9");
	/* nothing else is left than the application's core */
	Case own(topo.get(), "service=shared-cache;dynamic", "0");
	own.c.allowed = cpus("0-1");
	EXPECT_EQ(text(own.one(U_PLACE_SERVICE).cpus), "1");
	Case nowhere(topo.get(), "service=shared-cache;dynamic", "");
	u_place_of_service(&nowhere.c, &place);
	EXPECT_EQ(text(place), "");
}

/* If the application may run on all processors of the place, they are not shared out: the kernel decides. */
TEST(PlaceShare, NotWhereTheApplicationRunsToo)
{
	MACHINE(topo, kChiplets);
	EXPECT_EQ(share(topo.get(), "shared-cache", "0-7", 1, 4), "0-7");
	Case c(topo.get(), "application=4-7", "0-63");
	c.c.rank = 1;
	c.c.ranks = 4;
	EXPECT_EQ(text(c.one(U_PLACE_APPLICATION).cpus), "4-7");
}

/*
 * For every number of processes: no two threads share a core before all cores are used, and no core
 * is left over.
 */
TEST(PlaceShare, DisjointAndComplete)
{
	MACHINE(topo, "package:2 l3:1 core:7 pu:2");
	for (unsigned ranks = 1; ranks <= 14; ranks++) {
		for (unsigned count = 1; count * ranks <= 7; count++) {
			u_cpuset seen = {};

			for (unsigned k = 0; k < ranks * count; k++) {
				Case c(topo.get(), "transfer=other-package", "0");
				u_place_decision d;

				c.c.rank = k / count;
				c.c.ranks = ranks;
				d = c.place({ { U_PLACE_TRANSFER, k % count, count, false } })[0];
				EXPECT_FALSE(u_cpuset_empty(&d.cpus));
				EXPECT_FALSE(u_cpuset_meets(&seen, &d.cpus))
					<< ranks << " " << count;
				u_cpuset_or(&seen, &d.cpus);
			}
			EXPECT_EQ(text(seen), "14-27");
		}
	}
}
