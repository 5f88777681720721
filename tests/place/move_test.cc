/* SPDX-License-Identifier: BSD-2-Clause */
/* Service threads that move by the load of the last interval. */
#include "machines.h"

#include <map>

extern "C" {
#include "u_place_move.h"
}

namespace {

constexpr const char *kFour = "package:1 l3:1 core:4 pu:1";

/* Threads on a machine, whose processors are used as the test says. */
struct Moves {
	Moves(const u_topo *topo, const std::string &places, const std::vector<std::string> &at)
	    : used(U_CPUSET_END, 0), threads(at.size())
	{
		c.topo = topo;
		c.places = cpus(places);
		for (size_t i = 0; i < at.size(); i++)
			threads[i].cpus = cpus(at[i]);
	}
	/* An interval in which these processors were used so much, and each thread used so much of its own. */
	std::vector<u_move_why> interval(const std::map<int, int> &busy,
					 const std::vector<int> &own)
	{
		std::vector<u_move_why> out;

		std::fill(used.begin(), used.end(), 0);
		for (auto [cpu, n] : busy)
			used[static_cast<size_t>(cpu)] = static_cast<uint16_t>(n);
		for (size_t i = 0; i < own.size(); i++)
			threads[i].used = static_cast<unsigned>(own[i]);
		decisions.assign(threads.size(), {});
		c.used = used.data();
		u_move_decide(&c, threads.data(), static_cast<unsigned>(threads.size()),
			      decisions.data());
		for (const u_move_decision &d : decisions)
			out.push_back(d.why);
		return out;
	}
	std::string line(size_t i) const
	{
		char out[U_MOVE_TEXT];

		return u_move_text(&decisions[i], out);
	}
	std::vector<uint16_t> used;
	std::vector<u_move_thread> threads;
	std::vector<u_move_decision> decisions;
	u_move_case c = {};
};

using Why = std::vector<u_move_why>;

} // namespace

/* Each row: how much of processor 0, 1 and 2 was used in each of two intervals, and what the second one brings. */
TEST(PlaceMove, OneThread)
{
	struct Row {
		const char *places;
		int own, busy[3];
		u_move_why first, second;
		const char *at, *line;
	};
	static const Row rows[] = {
		{ "0-2",
		  900,
		  { 900, 0, 0 },
		  U_MOVE_QUIET,
		  U_MOVE_QUIET,
		  "0",
		  "stays: others used 0 % of its core" },
		{ "0-2",
		  700,
		  { 1000, 0, 0 },
		  U_MOVE_WAITS,
		  U_MOVE_GOES,
		  "1",
		  "goes to processor 1: others used 30 % of its core, 0 % of that one" },
		{ "0-2",
		  701,
		  { 1000, 0, 0 },
		  U_MOVE_QUIET,
		  U_MOVE_QUIET,
		  "0",
		  "stays: others used 29 % of its core" },
		{ "0-2",
		  500,
		  { 1000, 100, 50 },
		  U_MOVE_WAITS,
		  U_MOVE_GOES,
		  "2",
		  "goes to processor 2: others used 50 % of its core, 5 % of that one" },
		{ "0-2",
		  500,
		  { 1000, 251, 251 },
		  U_MOVE_WAITS,
		  U_MOVE_NO_BETTER,
		  "0",
		  "stays, as no other core is much freer: others used 50 % of its core" },
		{ "0-2",
		  500,
		  { 1000, 250, 251 },
		  U_MOVE_WAITS,
		  U_MOVE_GOES,
		  "1",
		  "goes to processor 1: others used 50 % of its core, 25 % of that one" },
		{ "0,2",
		  500,
		  { 1000, 0, 1000 },
		  U_MOVE_WAITS,
		  U_MOVE_NO_BETTER,
		  "0",
		  "stays, as no other core is much freer: others used 50 % of its core" },
		{ "0",
		  500,
		  { 1000, 0, 0 },
		  U_MOVE_WAITS,
		  U_MOVE_NO_BETTER,
		  "0",
		  "stays, as no other core is much freer: others used 50 % of its core" },
		{ "0-2",
		  49,
		  { 1000, 0, 0 },
		  U_MOVE_IDLE,
		  U_MOVE_IDLE,
		  "0",
		  "stays, as it needs little: others used 95 % of its core" },
		{ "0-2",
		  50,
		  { 1000, 0, 0 },
		  U_MOVE_WAITS,
		  U_MOVE_GOES,
		  "1",
		  "goes to processor 1: others used 95 % of its core, 0 % of that one" },
		/* ticks of the thread and of the processor are not counted at one moment */
		{ "0-2",
		  1000,
		  { 990, 0, 0 },
		  U_MOVE_QUIET,
		  U_MOVE_QUIET,
		  "0",
		  "stays: others used 0 % of its core" },
	};

	MACHINE(topo, kFour);
	for (const u_topo *t :
	     { static_cast<const u_topo *>(topo.get()), static_cast<const u_topo *>(nullptr) }) {
		for (const Row &row : rows) {
			Moves m(t, row.places, { "0" });
			std::map<int, int> busy = { { 0, row.busy[0] },
						    { 1, row.busy[1] },
						    { 2, row.busy[2] } };

			EXPECT_EQ(m.interval(busy, { row.own }), Why{ row.first }) << row.line;
			EXPECT_EQ(m.interval(busy, { row.own }), Why{ row.second }) << row.line;
			EXPECT_EQ(text(m.threads[0].cpus), row.at) << row.line;
			EXPECT_EQ(m.line(0), row.line);
		}
	}
}

TEST(PlaceMove, ACrowdThatComesAndGoesMovesNobody)
{
	MACHINE(topo, kFour);
	Moves m(topo.get(), "0-3", { "0" });

	for (int i = 0; i < 20; i++) {
		EXPECT_EQ(m.interval({ { 0, 1000 } }, { 500 }), Why{ U_MOVE_WAITS });
		EXPECT_EQ(m.interval({ { 0, 500 } }, { 500 }), Why{ U_MOVE_QUIET });
	}
}

/* Wherever the thread is, others are there, too: it moves seldom. */
TEST(PlaceMove, AThreadRestsAfterAMove)
{
	MACHINE(topo, kFour);
	for (unsigned salt = 0; salt < 8; salt++) {
		Moves m(topo.get(), "0-1", { "0" });
		std::vector<int> moved;

		m.c.salt = salt;
		for (int i = 0; i < 60; i++) {
			int here = u_cpuset_next(&m.threads[0].cpus, 0);

			if (m.interval({ { here, 1000 } }, { 500 })[0] == U_MOVE_GOES)
				moved.push_back(i);
		}
		ASSERT_GE(moved.size(), 2u);
		for (size_t i = 1; i < moved.size(); i++)
			EXPECT_EQ(moved[i] - moved[i - 1],
				  static_cast<int>(U_MOVE_REST + salt % 4));
	}
}

/* Two on one core: one moves, and then each has a core; nothing moves any more. */
TEST(PlaceMove, ThreadsGoApart)
{
	MACHINE(topo, kFour);
	Moves m(topo.get(), "0-3", { "0", "0" });

	m.interval({ { 0, 1000 } }, { 500, 500 });
	EXPECT_EQ(m.interval({ { 0, 1000 } }, { 500, 500 }), (Why{ U_MOVE_GOES, U_MOVE_LATER }));
	EXPECT_EQ(text(m.threads[0].cpus), "1");
	for (int i = 0; i < 20; i++)
		EXPECT_EQ(m.interval({ { 0, 900 }, { 1, 900 } }, { 900, 900 }),
			  (Why{ U_MOVE_QUIET, U_MOVE_QUIET }));
}

/* More threads than cores, all busy: there is nothing to gain. */
TEST(PlaceMove, MoreThreadsThanCores)
{
	MACHINE(topo, kFour);
	Moves m(topo.get(), "0-1", { "0", "1", "0", "1" });

	for (int i = 0; i < 20; i++) {
		for (u_move_why why :
		     m.interval({ { 0, 1000 }, { 1, 1000 } }, { 500, 500, 500, 500 }))
			EXPECT_TRUE(why == U_MOVE_WAITS || why == U_MOVE_NO_BETTER) << why;
	}
	/* Three and one: the fourth leaves, and that is all. */
	Moves uneven(topo.get(), "0-1", { "0", "0", "0", "1" });
	int moves = 0;

	for (int i = 0; i < 30; i++) {
		std::vector<int> own(4), at(4);
		int crowd[2] = { 0, 0 };

		for (size_t k = 0; k < 4; k++)
			crowd[at[k] = u_cpuset_next(&uneven.threads[k].cpus, 0)]++;
		for (size_t k = 0; k < 4; k++)
			own[k] = 1000 / crowd[at[k]];
		for (u_move_why why : uneven.interval({ { 0, 1000 }, { 1, 1000 } }, own))
			moves += why == U_MOVE_GOES;
	}
	EXPECT_EQ(moves, 0) << "a core that is used in full is no better one";
}

TEST(PlaceMove, TheMostCrowdedGoesFirst)
{
	MACHINE(topo, kFour);
	Moves m(topo.get(), "0-3", { "0", "1" });

	m.interval({ { 0, 900 }, { 1, 1000 } }, { 400, 300 });
	EXPECT_EQ(m.interval({ { 0, 900 }, { 1, 1000 } }, { 400, 300 }),
		  (Why{ U_MOVE_LATER, U_MOVE_GOES }));
	EXPECT_EQ(m.line(0), "stays while another thread moves: others used 50 % of its core");
	EXPECT_EQ(m.interval({ { 0, 900 }, { 1, 700 }, { 2, 300 } }, { 400, 300 }),
		  (Why{ U_MOVE_GOES, U_MOVE_QUIET }));
	EXPECT_EQ(text(m.threads[0].cpus), "3");
	EXPECT_EQ(text(m.threads[1].cpus), "2");
}

TEST(PlaceMove, CoresWithSmt)
{
	MACHINE(topo, "package:1 l3:1 core:3 pu:2");
	Moves m(topo.get(), "0-5", { "0-1" });

	/* The other processor of its core counts half. */
	EXPECT_EQ(m.interval({ { 0, 900 }, { 1, 500 } }, { 900 }), Why{ U_MOVE_QUIET });
	EXPECT_EQ(m.interval({ { 0, 900 }, { 1, 900 } }, { 900 }), Why{ U_MOVE_WAITS });
	EXPECT_EQ(m.interval({ { 0, 900 }, { 1, 900 }, { 2, 400 }, { 4, 100 } }, { 900 }),
		  Why{ U_MOVE_GOES });
	EXPECT_EQ(text(m.threads[0].cpus), "4-5");
	/* Places that have one processor of the thread's own core are none to go to. */
	Moves half(topo.get(), "0-1,3", { "0" });
	half.interval({ { 0, 1000 } }, { 500 });
	EXPECT_EQ(half.interval({ { 0, 1000 } }, { 500 }), Why{ U_MOVE_GOES });
	EXPECT_EQ(text(half.threads[0].cpus), "3");
}

TEST(PlaceMove, TheSameCacheFirst)
{
	MACHINE(topo, "package:1 l3:2 core:2 pu:1");
	Moves near(topo.get(), "0-3", { "0" }), far(topo.get(), "0-3", { "0" });

	near.interval({ { 0, 1000 } }, { 500 });
	EXPECT_EQ(near.interval({ { 0, 1000 }, { 1, 100 } }, { 500 }), Why{ U_MOVE_GOES });
	EXPECT_EQ(text(near.threads[0].cpus), "1");
	far.interval({ { 0, 1000 } }, { 500 });
	EXPECT_EQ(far.interval({ { 0, 1000 }, { 1, 101 } }, { 500 }), Why{ U_MOVE_GOES });
	EXPECT_EQ(text(far.threads[0].cpus), "2");
	/* what lies under another cache has to be so much freer */
	far.threads[0] = { cpus("0"), 0, 0, 0 };
	far.interval({ { 0, 1000 }, { 1, 1000 }, { 2, 151 }, { 3, 151 } }, { 500 });
	EXPECT_EQ(far.interval({ { 0, 1000 }, { 1, 1000 }, { 2, 151 }, { 3, 151 } }, { 500 }),
		  Why{ U_MOVE_NO_BETTER });
}

TEST(PlaceMove, TheFirstCoreOfASet)
{
	MACHINE(topo, kChiplets);
	u_cpuset set = cpus("3-9");

	u_move_first_core(topo.get(), &set);
	EXPECT_EQ(text(set), "3");
	set = cpus("2-9");
	u_move_first_core(topo.get(), &set);
	EXPECT_EQ(text(set), "2-3");
	set = cpus("2-9");
	u_move_first_core(nullptr, &set);
	EXPECT_EQ(text(set), "2");
	set = {};
	u_move_first_core(topo.get(), &set);
	EXPECT_EQ(text(set), "");
}
