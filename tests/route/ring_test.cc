// SPDX-License-Identifier: BSD-2-Clause
// Every ring up to 64 hosts: ports, hops, next hops.
#include <gtest/gtest.h>

#include <cstring>
#include <set>

extern "C" {
#include "rt_ring.h"
}

namespace {

TEST(Ring, OneHostHasSelfOnly)
{
	struct rt_route r;

	EXPECT_EQ(rt_port_count(1, 0), 1u);
	EXPECT_STREQ(rt_port_name(1, 0, 0), "self");
	EXPECT_EQ(rt_port_peer(1, 0, 0), 0u);
	ASSERT_EQ(rt_route(1, 0, 0, &r), 0);
	EXPECT_EQ(r.path, RT_PATH_SELF);
	EXPECT_EQ(r.hops, 0u);
}

TEST(Ring, TwoHostsHaveOneCable)
{
	EXPECT_EQ(rt_port_count(2, 0), 2u);
	EXPECT_EQ(rt_port_count(2, 1), 2u);
	EXPECT_STREQ(rt_port_name(2, 0, 1), "right");
	EXPECT_STREQ(rt_port_name(2, 1, 1), "left");
	EXPECT_EQ(rt_port_peer(2, 0, 1), 1u);
	EXPECT_EQ(rt_port_peer(2, 1, 1), 0u);
}

TEST(Ring, CablesJoinRightToLeft)
{
	for (unsigned n = 2; n <= RT_HOSTS_MAX; n++) {
		unsigned rights = 0, lefts = 0;
		for (unsigned h = 0; h < n; h++) {
			std::set<enum rt_side> sides;
			for (unsigned p = 0; p < rt_port_count(n, h); p++) {
				enum rt_side side = rt_port_side(n, h, p);
				EXPECT_TRUE(sides.insert(side).second);
				rights += side == RT_RIGHT;
				lefts += side == RT_LEFT;
				if (side == RT_RIGHT) {
					EXPECT_EQ(rt_port_peer(n, h, p), (h + 1) % n);
				}
				if (side == RT_LEFT) {
					EXPECT_EQ((rt_port_peer(n, h, p) + 1) % n, h);
				}
			}
		}
		EXPECT_EQ(rights, n == 2 ? 1 : n);
		EXPECT_EQ(lefts, rights);
	}
}

TEST(Ring, EachHopComesNearerByTheShorterWay)
{
	for (unsigned n = 1; n <= RT_HOSTS_MAX; n++) {
		for (unsigned from = 0; from < n; from++) {
			for (unsigned to = 0; to < n; to++) {
				struct rt_route r;
				ASSERT_EQ(rt_route(n, from, to, &r), 0);
				EXPECT_EQ(r.hops, rt_hops(n, from, to));
				EXPECT_EQ(r.hops, rt_hops(n, to, from));
				EXPECT_LE(r.hops, n / 2);
				EXPECT_EQ(r.path, r.hops == 0	? RT_PATH_SELF
						  : r.hops == 1 ? RT_PATH_NEIGHBOUR
								: RT_PATH_RELAYED);
				ASSERT_LT(r.port, rt_port_count(n, from));
				EXPECT_EQ(rt_port_peer(n, from, r.port), r.next);
				if (r.hops > 0) {
					EXPECT_EQ(rt_hops(n, r.next, to), r.hops - 1);
				}
			}
		}
	}
}

TEST(Ring, EquallyLongGoesRight)
{
	struct rt_route r;

	ASSERT_EQ(rt_route(4, 1, 3, &r), 0);
	EXPECT_EQ(r.next, 2u);
	EXPECT_STREQ(rt_port_name(4, 1, r.port), "right");
}

TEST(Ring, HostsOutsideAreRefused)
{
	struct rt_route r;

	EXPECT_LT(rt_route(0, 0, 0, &r), 0);
	EXPECT_LT(rt_route(3, 3, 0, &r), 0);
	EXPECT_LT(rt_route(3, 0, 3, &r), 0);
	EXPECT_LT(rt_route(RT_HOSTS_MAX + 1, 0, 1, &r), 0);
}

TEST(Ring, ReasonsAreSaid)
{
	char text[160];

	rt_reason(8, 0, 3, text, sizeof(text));
	EXPECT_STREQ(text, "host 3 is 3 hops away and relaying is not available");
	rt_reason(8, 0, 1, text, sizeof(text));
	EXPECT_STREQ(text, "");
	rt_reason(8, 0, 9, text, sizeof(text));
	EXPECT_STREQ(text, "host 9 is none of the 8 hosts of the fabric");
}

} // namespace
