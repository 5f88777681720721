/* SPDX-License-Identifier: BSD-2-Clause */
#include "machines.h"

extern "C" {
#include "u_place_bind.h"
}

static std::string bound(const u_topo *topo, u_topo_part bind, u_topo_part map, unsigned process,
			 const std::string &allowed = "")
{
	u_cpuset may = cpus(allowed), out = cpus("8000");
	int rc;

	if (allowed.empty())
		u_topo_all(topo, &may);
	rc = u_place_bind(topo, &may, bind, map, process, &out);
	if (rc != 0) {
		EXPECT_EQ(text(out), "8000");
		return rc == -ENODATA ? "not known" : "?";
	}
	return text(out);
}

TEST(PlaceBind, PartsInTurn)
{
	static const struct {
		u_topo_part bind, map;
		const char *first[5];
	} rows[] = {
		{ U_TOPO_CPU, U_TOPO_CPU, { "0", "1", "2", "3", "4" } },
		{ U_TOPO_CORE, U_TOPO_CORE, { "0-1", "2-3", "4-5", "6-7", "8-9" } },
		{ U_TOPO_CACHE, U_TOPO_CACHE, { "0-7", "8-15", "16-23", "24-31", "32-39" } },
		{ U_TOPO_PACKAGE, U_TOPO_PACKAGE, { "0-31", "32-63", "0-31", "32-63", "0-31" } },
		{ U_TOPO_NODE, U_TOPO_NODE, { "0-63", "0-63", "0-63", "0-63", "0-63" } },
		/* to the packages in turn, and there to the next core, processor, cache */
		{ U_TOPO_CORE, U_TOPO_PACKAGE, { "0-1", "32-33", "2-3", "34-35", "4-5" } },
		{ U_TOPO_CPU, U_TOPO_PACKAGE, { "0", "32", "1", "33", "2" } },
		{ U_TOPO_CACHE, U_TOPO_PACKAGE, { "0-7", "32-39", "8-15", "40-47", "16-23" } },
		{ U_TOPO_CORE, U_TOPO_CACHE, { "0-1", "8-9", "16-17", "24-25", "32-33" } },
		/* to the cores in turn, but bound to the package */
		{ U_TOPO_PACKAGE, U_TOPO_CORE, { "0-31", "0-31", "0-31", "0-31", "0-31" } },
		{ U_TOPO_CORE, U_TOPO_CPU, { "0-1", "0-1", "2-3", "2-3", "4-5" } },
	};

	MACHINE(topo, kChiplets);
	for (const auto &row : rows) {
		for (unsigned i = 0; i < 5; i++)
			EXPECT_EQ(bound(topo.get(), row.bind, row.map, i), row.first[i]) << i;
	}
}

TEST(PlaceBind, BeginsAnewBehindTheLast)
{
	MACHINE(topo, "package:2 core:2 pu:1");
	EXPECT_EQ(bound(topo.get(), U_TOPO_CORE, U_TOPO_CORE, 4), "0");
	EXPECT_EQ(bound(topo.get(), U_TOPO_CORE, U_TOPO_PACKAGE, 3), "3");
	EXPECT_EQ(bound(topo.get(), U_TOPO_CORE, U_TOPO_PACKAGE, 4), "0");
	EXPECT_EQ(bound(topo.get(), U_TOPO_CORE, U_TOPO_PACKAGE, 4000000001u), "2");
}

TEST(PlaceBind, NeverOutsideWhatIsAllowed)
{
	MACHINE(topo, kChiplets);
	EXPECT_EQ(bound(topo.get(), U_TOPO_CORE, U_TOPO_CORE, 0, "1,5,40"), "1");
	EXPECT_EQ(bound(topo.get(), U_TOPO_CORE, U_TOPO_CORE, 1, "1,5,40"), "5");
	EXPECT_EQ(bound(topo.get(), U_TOPO_PACKAGE, U_TOPO_PACKAGE, 0, "1,5,40"), "1,5");
	EXPECT_EQ(bound(topo.get(), U_TOPO_PACKAGE, U_TOPO_PACKAGE, 1, "1,5,40"), "40");
	EXPECT_EQ(bound(topo.get(), U_TOPO_CORE, U_TOPO_CORE, 0, "64-70"), "not known");
}

TEST(PlaceBind, CachesThatAreNotKnown)
{
	MACHINE(topo, "package:2 core:2 pu:1");
	EXPECT_EQ(bound(topo.get(), U_TOPO_CACHE, U_TOPO_CACHE, 0), "not known");
	EXPECT_EQ(bound(topo.get(), U_TOPO_CORE, U_TOPO_CACHE, 0), "not known");
	EXPECT_EQ(bound(topo.get(), U_TOPO_PACKAGE, U_TOPO_PACKAGE, 1), "2-3");
}
