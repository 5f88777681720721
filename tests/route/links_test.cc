// SPDX-License-Identifier: BSD-2-Clause
// The links between hosts that a spec describes, by arithmetic on the spec only.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>

#include "topo.h"

namespace {

using Pairs = std::multiset<std::pair<unsigned, unsigned>>;

Pairs links_found(const struct rt_topo *t)
{
	Pairs pairs;

	for (const Link &l : links_of(t))
		pairs.insert(std::minmax<unsigned>(l.a.host, l.b.host));
	return pairs;
}

// Any two hosts are checked against the definition of neighbours in a grid.
Pairs links_wanted(unsigned w, unsigned h, bool wraps)
{
	Pairs pairs;

	auto near = [&](unsigned a, unsigned b, unsigned n) {
		unsigned apart = a > b ? a - b : b - a;

		return apart == 1 || (wraps && n > 2 && apart == n - 1);
	};
	for (unsigned a = 0; a < w * h; a++) {
		for (unsigned b = a + 1; b < w * h; b++) {
			bool row = a / w == b / w && near(a % w, b % w, w);
			bool column = a % w == b % w && near(a / w, b / w, h);

			if (row || column)
				pairs.insert({ a, b });
		}
	}
	return pairs;
}

TEST(Links, GridsJoinNeighbours)
{
	for (const Spec &spec : regular_specs()) {
		unsigned w = spec.hosts, h = 1;
		bool wraps = spec.text[0] == 'r' || spec.text[0] == 't';

		sscanf(spec.text.c_str(), "%*[a-z]:%ux%u", &w, &h);
		EXPECT_EQ(links_found(Topo(spec)), links_wanted(w, h, wraps))
			<< spec.text << " of " << spec.hosts;
	}
}

TEST(Links, GraphsJoinWhatTheySay)
{
	for (uint64_t i = 0; i < 200; i++) {
		Spec spec = random_graph(seed() + i);
		Pairs pairs;
		unsigned a, b;
		int used = 0;

		for (const char *at = spec.text.c_str() + strlen("graph:"); *at != '\0';
		     at += used) {
			ASSERT_EQ(sscanf(at, "%u-%u%n", &a, &b, &used), 2) << spec.text;
			used += at[used] == ',';
			pairs.insert(std::minmax(a, b));
		}
		EXPECT_EQ(links_found(Topo(spec)), pairs) << spec.text;
	}
}

TEST(Links, ALinkIsUpWhenBothEndsSaySo)
{
	Topo t("ring", 4);

	for (int who = 0; who < 3; who++) {
		Live live(4);

		if (who != 1)
			live.cut({ 1, 2 });
		if (who != 0)
			live.cut({ 2, 1 });
		EXPECT_FALSE(rt_link_up(t, live, 1, 2));
		EXPECT_FALSE(rt_link_up(t, live, 2, 1));
		EXPECT_TRUE(rt_link_up(t, live, 1, 1));
		EXPECT_TRUE(rt_link_up(t, live, 1, 0));
		EXPECT_TRUE(rt_link_up(t, nullptr, 1, 2));
	}
}

} // namespace
