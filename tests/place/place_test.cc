/* SPDX-License-Identifier: BSD-2-Clause */
#include "machines.h"

/* ---- the relations, machine by machine ---- */

struct Machine {
	const char *what, *description;
	int same_core, shared_cache, same_package,
		other_package; /* processors, seen from processor 0 */
};

static const Machine machines[] = {
	{ "two cores under one cache", "package:1 l3:1 core:2 pu:1", 1, 1, 0, 0 },
	{ "two packages, SMT", "package:2 l3:1 core:8 pu:2", 1, 14, 0, 16 },
	{ "chiplets", kChiplets, 1, 6, 24, 32 },
	{ "four cores, no SMT", "package:1 l3:1 core:4 pu:1", 1, 3, 0, 0 },
	{ "groups of chiplets", "package:2 group:2 l3:2 core:3 pu:2", 1, 4, 18, 24 },
	{ "L2 shared, no L3", "package:1 l2:4 core:2 pu:1", 1, 1, 6, 0 },
	{ "caches unknown", "package:2 core:4 pu:2", 1, 0, 6, 8 },
	{ "L2 below L3", "package:1 l3:2 l2:2 core:2 pu:1", 1, 3, 4, 0 },
	{ "a cache per core", "package:1 l2:4 core:1 pu:1", 1, 0, 3, 0 },
	{ "one processor", "package:1 l3:1 core:1 pu:1", 1, 0, 0, 0 },
	{ "one core, SMT", "package:1 l3:1 core:1 pu:4", 3, 0, 0, 0 },
	{ "nothing but processors", "pu:3", 1, 0, 2, 0 },
	{ "several nodes in a package", "package:2 numa:2 l3:1 core:4 pu:1", 1, 3, 4, 8 },
};

static void expect(const Machine &m, const u_topo *topo, u_place_where where, int count)
{
	std::string rule = std::string("transfer=") + u_place_where_words[where];
	Case c(topo, rule, "0");
	u_place_decision d = c.one();

	if (count > 0) {
		EXPECT_EQ(d.got, where) << m.what << ", " << rule;
		EXPECT_EQ(d.why, U_PLACE_AS_ASKED) << m.what << ", " << rule;
		EXPECT_EQ(u_cpuset_count(&d.cpus), count) << m.what << ", " << rule;
	} else {
		EXPECT_NE(d.got, where) << m.what << ", " << rule;
		EXPECT_FALSE(u_place_met(&d)) << m.what << ", " << rule;
		EXPECT_FALSE(u_cpuset_empty(&d.cpus)) << m.what << ", " << rule;
	}
}

TEST(Place, RelationsOfProcessorZero)
{
	for (const Machine &m : machines) {
		MACHINE(topo, m.description);
		expect(m, topo.get(), U_PLACE_SAME_CORE, m.same_core);
		expect(m, topo.get(), U_PLACE_SHARED_CACHE, m.shared_cache);
		expect(m, topo.get(), U_PLACE_SAME_PACKAGE, m.same_package);
		expect(m, topo.get(), U_PLACE_OTHER_PACKAGE, m.other_package);
	}
}

/*
 * Seen from any processor, the relations' sets of processors are disjoint, and with that processor
 * they are all.
 */
TEST(Place, RelationsPartTheMachine)
{
	for (const Machine &m : machines) {
		MACHINE(topo, m.description);
		for (int i = 0; i < topo->count; i++) {
			std::string own = std::to_string(topo->cpus[i].os);
			u_cpuset seen = cpus(own), all = {};

			for (const char *word :
			     { "same-core", "shared-cache", "same-package", "other-package" }) {
				Case c(topo.get(), std::string("transfer=") + word, own);
				u_place_decision d = c.one();

				if (!u_place_met(&d) || text(d.cpus) == own)
					continue;
				EXPECT_FALSE(u_cpuset_meets(&seen, &d.cpus))
					<< m.what << own << word;
				u_cpuset_or(&seen, &d.cpus);
			}
			u_topo_all(topo.get(), &all);
			EXPECT_EQ(text(seen), text(all)) << m.what << ", from " << own;
		}
	}
}

/* ---- which rule yields to which ---- */

struct Row {
	const char *rule, *application, *allowed; /* "": all */
	const char *cpus;
	u_place_where got;
	u_place_why why;
};

static void check(const u_topo *topo, const Row &row, int device = U_TOPO_NONE)
{
	Case c(topo, std::string("transfer=") + row.rule, row.application);
	u_place_decision d;

	if (row.allowed[0] != '\0')
		c.c.allowed = cpus(row.allowed);
	c.c.device_node = device;
	d = c.one();
	EXPECT_EQ(text(d.cpus), row.cpus) << row.rule << " of " << row.application;
	EXPECT_EQ(d.got, row.got) << row.rule << " of " << row.application << " in " << row.allowed;
	EXPECT_EQ(d.why, row.why) << row.rule << " of " << row.application << " in " << row.allowed;
	EXPECT_TRUE(u_cpuset_within(&d.cpus, &c.c.allowed)) << row.rule << row.application;
}

TEST(Place, RestrictedSetsOfChiplets)
{
	static const Row rows[] = {
		{ "same-core", "0", "", "1", U_PLACE_SAME_CORE, U_PLACE_AS_ASKED },
		{ "same-core", "0", "0", "0", U_PLACE_SAME_CORE, U_PLACE_AS_ASKED },
		{ "same-core", "0-1", "", "0-1", U_PLACE_SAME_CORE, U_PLACE_AS_ASKED },
		{ "same-core", "0", "2,8,32", "2", U_PLACE_SHARED_CACHE, U_PLACE_NOT_ALLOWED },
		{ "same-core", "0", "8,32", "8", U_PLACE_SAME_PACKAGE, U_PLACE_NOT_ALLOWED },
		{ "same-core", "0", "32", "32", U_PLACE_OTHER_PACKAGE, U_PLACE_NOT_ALLOWED },
		{ "shared-cache", "0", "", "2-7", U_PLACE_SHARED_CACHE, U_PLACE_AS_ASKED },
		{ "shared-cache", "1", "", "2-7", U_PLACE_SHARED_CACHE, U_PLACE_AS_ASKED },
		{ "shared-cache", "0-1", "0-4", "2-4", U_PLACE_SHARED_CACHE, U_PLACE_AS_ASKED },
		{ "shared-cache", "0", "0-1,8-63", "8-31", U_PLACE_SAME_PACKAGE,
		  U_PLACE_NOT_ALLOWED },
		{ "shared-cache", "0", "0,40", "40", U_PLACE_OTHER_PACKAGE, U_PLACE_NOT_ALLOWED },
		{ "shared-cache", "0", "0-1", "1", U_PLACE_SAME_CORE, U_PLACE_NOT_ALLOWED },
		{ "shared-cache", "0", "0", "0", U_PLACE_SAME_CORE, U_PLACE_NOT_ALLOWED },
		{ "same-package", "40", "", "32-39,48-63", U_PLACE_SAME_PACKAGE, U_PLACE_AS_ASKED },
		{ "same-package", "0", "0-7", "2-7", U_PLACE_SHARED_CACHE, U_PLACE_NOT_ALLOWED },
		{ "same-package", "0", "0,32", "32", U_PLACE_OTHER_PACKAGE, U_PLACE_NOT_ALLOWED },
		{ "other-package", "0", "", "32-63", U_PLACE_OTHER_PACKAGE, U_PLACE_AS_ASKED },
		{ "other-package", "63", "", "0-31", U_PLACE_OTHER_PACKAGE, U_PLACE_AS_ASKED },
		{ "other-package", "0", "0-31", "8-31", U_PLACE_SAME_PACKAGE, U_PLACE_NOT_ALLOWED },
		{ "other-package", "0", "0-7", "2-7", U_PLACE_SHARED_CACHE, U_PLACE_NOT_ALLOWED },
		{ "other-package", "0", "0-1", "1", U_PLACE_SAME_CORE, U_PLACE_NOT_ALLOWED },
	};

	MACHINE(topo, kChiplets);
	for (const Row &row : rows)
		check(topo.get(), row);
}

TEST(Place, AnApplicationThatMayRunWidely)
{
	static const Row rows[] = {
		/* one cache, all its cores: the rest of the cache, if there is one, else all of it */
		{ "shared-cache", "0-3", "", "4-7", U_PLACE_SHARED_CACHE, U_PLACE_AS_ASKED },
		{ "shared-cache", "0-7", "", "0-7", U_PLACE_SHARED_CACHE, U_PLACE_LOOSE },
		{ "shared-cache", "0-3", "0-3", "0-3", U_PLACE_SHARED_CACHE, U_PLACE_LOOSE },
		{ "same-core", "0-7", "", "0-7", U_PLACE_SAME_CORE, U_PLACE_LOOSE },
		{ "same-package", "0-7", "", "8-31", U_PLACE_SAME_PACKAGE, U_PLACE_AS_ASKED },
		{ "same-package", "0-7", "0-7", "0-7", U_PLACE_SHARED_CACHE, U_PLACE_NOT_ALLOWED },
		{ "other-package", "0-7", "", "32-63", U_PLACE_OTHER_PACKAGE, U_PLACE_AS_ASKED },
		/* several caches of one package */
		{ "shared-cache", "0-15", "", "16-31", U_PLACE_SAME_PACKAGE, U_PLACE_WIDE },
		{ "shared-cache", "0-31", "", "0-31", U_PLACE_SAME_PACKAGE, U_PLACE_WIDE },
		{ "same-package", "0-31", "", "0-31", U_PLACE_SAME_PACKAGE, U_PLACE_LOOSE },
		{ "other-package", "0-31", "", "32-63", U_PLACE_OTHER_PACKAGE, U_PLACE_AS_ASKED },
		/* several packages */
		{ "same-core", "0,32", "", "", U_PLACE_NONE, U_PLACE_TOO_WIDE },
		{ "shared-cache", "0-63", "", "", U_PLACE_NONE, U_PLACE_TOO_WIDE },
		{ "other-package", "0-63", "", "", U_PLACE_NONE, U_PLACE_TOO_WIDE },
		/* unknown, or offline */
		{ "shared-cache", "", "", "", U_PLACE_NONE, U_PLACE_NO_APPLICATION },
		{ "same-core", "64", "", "", U_PLACE_NONE, U_PLACE_NO_APPLICATION },
	};

	MACHINE(topo, kChiplets);
	for (const Row &row : rows)
		check(topo.get(), row);
}

TEST(Place, WhatTheMachineHasNot)
{
	static const Row small[] = {
		{ "same-core", "0", "", "0", U_PLACE_SAME_CORE, U_PLACE_AS_ASKED },
		{ "shared-cache", "0", "", "1", U_PLACE_SHARED_CACHE, U_PLACE_AS_ASKED },
		{ "shared-cache", "0-1", "", "0-1", U_PLACE_SHARED_CACHE, U_PLACE_LOOSE },
		{ "same-package", "0", "", "1", U_PLACE_SHARED_CACHE, U_PLACE_NOT_THERE },
		{ "same-package", "0-1", "", "0-1", U_PLACE_SHARED_CACHE, U_PLACE_NOT_THERE },
		{ "other-package", "0", "", "1", U_PLACE_SHARED_CACHE, U_PLACE_NOT_THERE },
		{ "other-package", "0", "0", "0", U_PLACE_SAME_CORE, U_PLACE_NOT_THERE },
	};
	static const Row unknown[] = {
		{ "shared-cache", "0", "", "2-7", U_PLACE_SAME_PACKAGE, U_PLACE_NO_CACHES },
		{ "shared-cache", "0", "0-1,8-15", "8-15", U_PLACE_OTHER_PACKAGE,
		  U_PLACE_NO_CACHES },
		{ "shared-cache", "0-7", "", "0-7", U_PLACE_SAME_PACKAGE, U_PLACE_NO_CACHES },
	};

	MACHINE(two, "package:1 l3:1 core:2 pu:1");
	for (const Row &row : small)
		check(two.get(), row);
	MACHINE(dark, "package:2 core:4 pu:2");
	for (const Row &row : unknown)
		check(dark.get(), row);
}

/* ---- device and lists ---- */

TEST(Place, Device)
{
	static const Row near_first = {
		"device", "0", "", "8-15", U_PLACE_DEVICE, U_PLACE_AS_ASKED
	};
	static const Row some = { "device", "0", "0,9", "9", U_PLACE_DEVICE, U_PLACE_AS_ASKED };
	static const Row package = {
		"device", "0", "0-7,16-31", "0-7", U_PLACE_SAME_PACKAGE, U_PLACE_NOT_ALLOWED
	};
	static const Row far = { "device", "16", "16-31", "", U_PLACE_NONE, U_PLACE_NOT_ALLOWED };
	static const Row not_told = { "device", "0", "", "", U_PLACE_NONE, U_PLACE_NO_DEVICE };
	static const Row flat = { "device", "0", "", "", U_PLACE_NONE, U_PLACE_EVERYWHERE };

	MACHINE(topo, "package:2 numa:2 l3:1 core:8 pu:1");
	check(topo.get(), near_first, 1);
	check(topo.get(), some, 1);
	check(topo.get(), package, 1);
	check(topo.get(), far, 1);
	check(topo.get(), not_told, U_TOPO_NONE);
	check(topo.get(), not_told, 7);
	MACHINE(one, "package:1 l3:1 core:4 pu:1");
	check(one.get(), flat, 0);
	check(one.get(), flat, U_TOPO_NONE);
}

TEST(Place, ListsNeedNoTopology)
{
	static const Row rows[] = {
		{ "2-3", "0", "0-7", "2-3", U_PLACE_LIST, U_PLACE_AS_ASKED },
		{ "2-9", "0", "0-3", "2-3", U_PLACE_LIST, U_PLACE_PARTLY },
		{ "8", "0", "0-7", "", U_PLACE_NONE, U_PLACE_NO_LIST },
		{ "none", "0", "0-7", "", U_PLACE_NONE, U_PLACE_NOT_ASKED },
		{ "shared-cache", "0", "0-7", "", U_PLACE_NONE, U_PLACE_NO_TOPOLOGY },
		{ "device", "0", "0-7", "", U_PLACE_NONE, U_PLACE_NO_TOPOLOGY },
	};

	for (const Row &row : rows)
		check(nullptr, row);
}

/* A processor that is offline is in no topology, and not among the allowed. */
TEST(Place, OfflineProcessors)
{
	MACHINE(topo, "package:1 l3:1 core:4 pu:2");
	int kept = 0;

	for (int i = 0; i < topo->count; i++) {
		if (topo->cpus[i].os != 2 && topo->cpus[i].os != 1)
			topo->cpus[kept++] = topo->cpus[i];
	}
	topo->count = kept;
	check(topo.get(), { "same-core", "0", "", "0", U_PLACE_SAME_CORE, U_PLACE_AS_ASKED });
	check(topo.get(),
	      { "shared-cache", "0", "", "3-7", U_PLACE_SHARED_CACHE, U_PLACE_AS_ASKED });
	check(topo.get(), { "1-3", "0", "", "3", U_PLACE_LIST, U_PLACE_PARTLY });
	check(topo.get(), { "2", "0", "", "", U_PLACE_NONE, U_PLACE_NO_LIST });
	check(topo.get(), { "same-core", "2", "", "", U_PLACE_NONE, U_PLACE_NO_APPLICATION });
}

/* The numbers of processors do not tell where they are: here those of a core are eight apart. */
TEST(Place, NumbersInAnotherOrder)
{
	MACHINE(topo, "package:2 l3:1 core:4 pu:2(indexes=0,8,1,9,2,10,3,11,4,12,5,13,6,14,7,15)");
	check(topo.get(), { "same-core", "1", "", "9", U_PLACE_SAME_CORE, U_PLACE_AS_ASKED });
	check(topo.get(),
	      { "shared-cache", "8", "", "1-3,9-11", U_PLACE_SHARED_CACHE, U_PLACE_AS_ASKED });
	check(topo.get(),
	      { "other-package", "11", "", "4-7,12-15", U_PLACE_OTHER_PACKAGE, U_PLACE_AS_ASKED });
}

/* ---- the application ---- */

TEST(Place, TheApplicationsOwnRuleIsItsPlace)
{
	MACHINE(topo, kChiplets);
	Case c(topo.get(), "application=40;transfer=shared-cache", "0-63");

	EXPECT_EQ(text(c.one().cpus), "42-47");
	EXPECT_EQ(text(c.one(U_PLACE_APPLICATION).cpus), "40");
	c.c.allowed = cpus("0-31");
	EXPECT_EQ(c.one(U_PLACE_APPLICATION).why, U_PLACE_NO_LIST);
	EXPECT_EQ(c.one().why, U_PLACE_TOO_WIDE);
}

TEST(Place, AnAgentTakesTheRuleAsThePlaceOfApplications)
{
	MACHINE(topo, kChiplets);
	Case c(topo.get(), "application=40;relay=shared-cache", "");

	c.c.foreign = true;
	EXPECT_EQ(text(c.one(U_PLACE_RELAY).cpus), "42-47");
	c.c.allowed = cpus("0-39,44");
	EXPECT_EQ(text(c.one(U_PLACE_RELAY).cpus), "44");
	Case none(topo.get(), "relay=shared-cache", "");
	none.c.foreign = true;
	EXPECT_EQ(none.one(U_PLACE_RELAY).why, U_PLACE_NO_APPLICATION);
}

TEST(Place, NothingAskedNothingDone)
{
	MACHINE(topo, kChiplets);
	Case c(topo.get(), "", "0");

	for (int role = 0; role < U_PLACE_ROLES; role++) {
		u_place_decision d = c.one(static_cast<u_place_role>(role));

		EXPECT_EQ(d.why, U_PLACE_NOT_ASKED);
		EXPECT_TRUE(u_cpuset_empty(&d.cpus));
		EXPECT_TRUE(u_place_met(&d));
		EXPECT_EQ(d.warnings, 0u);
		EXPECT_EQ(c.line(static_cast<u_place_role>(role)), "not placed");
	}
}

/* ---- in words ---- */

TEST(Place, Lines)
{
	MACHINE(topo, kChiplets);
	struct {
		const char *rule, *application, *allowed, *line;
	} const lines[] = {
		{ "shared-cache", "0", "0-63",
		  "processors 2-7; asked shared-cache, got shared-cache (L3)" },
		{ "same-core", "0", "0-63", "processor 1; asked same-core, got same-core" },
		{ "shared-cache", "0", "0-1,8-31",
		  "processors 8-31; asked shared-cache, got same-package: this process may not use such "
		  "processors" },
		{ "shared-cache", "0-63", "0-63",
		  "not placed; asked shared-cache: the application's thread may run in several packages; "
		  "bind it to one" },
		{ "4,9", "0", "0-5",
		  "processor 4; asked 4,9, got these: this process may not use the others, "
		  "or they are offline" },
		{ "device", "0", "0-63",
		  "not placed; asked device: this machine has one memory node, so no processor is nearer" },
	};

	for (const auto &one : lines) {
		Case c(topo.get(), std::string("transfer=") + one.rule, one.application);

		c.c.allowed = cpus(one.allowed);
		EXPECT_EQ(c.line(), one.line);
	}
}
