// SPDX-License-Identifier: BSD-2-Clause
// Specs: the topologies that they describe, and those that are refused.
#include <gtest/gtest.h>

#include <cerrno>
#include <climits>
#include <string>
#include <vector>

#include "topo.h"

namespace {

std::vector<std::string> names(const Topo &t, unsigned host)
{
	std::vector<std::string> all;

	for (unsigned p = 0; p < rt_topo_ports(t, host); p++)
		all.push_back(rt_topo_port_name(t, host, p));
	return all;
}

using Names = std::vector<std::string>;

TEST(Topo, OneHostHasSelfOnly)
{
	for (const char *spec : { "ring", "chain", "mesh:1x1", "torus:1x1", "graph:" }) {
		Topo t(spec, 1);
		struct rt_path path;

		EXPECT_EQ(names(t, 0), Names{ "self" }) << spec;
		EXPECT_EQ(rt_topo_peer(t, 0, 0).host, 0u);
		EXPECT_FALSE(rt_port_listens(t, 0, 0));
		EXPECT_TRUE(rt_link_up(t, nullptr, 0, 0));
		ASSERT_EQ(rt_path_find(t, nullptr, 0, 0, 0, &path), 0);
		EXPECT_EQ(path.hops, 0u);
	}
}

TEST(Topo, NoSpecIsARing)
{
	EXPECT_STREQ(rt_topo_spec(Topo(nullptr, 5)), "ring");
	EXPECT_STREQ(rt_topo_spec(Topo("", 5)), "ring");
}

TEST(Topo, TwoHostsHaveOneLink)
{
	for (const char *spec : { "ring", "chain", "mesh:2x1", "torus:2x1" }) {
		Topo t(spec, 2);

		EXPECT_EQ(names(t, 0), (Names{ "self", "right" })) << spec;
		EXPECT_EQ(names(t, 1), (Names{ "self", "left" })) << spec;
		EXPECT_EQ(rt_topo_peer(t, 0, 1).host, 1u);
		EXPECT_EQ(rt_topo_peer(t, 0, 1).port, 1u);
		EXPECT_TRUE(rt_port_listens(t, 0, 1));
		EXPECT_FALSE(rt_port_listens(t, 1, 1));
	}
}

TEST(Topo, RingsJoinRightToLeft)
{
	for (unsigned n : { 3u, 4u, 5u, 64u, RT_HOSTS_MAX }) {
		Topo t("ring", n);

		for (unsigned h = 0; h < n; h++) {
			ASSERT_EQ(names(t, h), (Names{ "self", "left", "right" }));
			EXPECT_EQ(rt_topo_peer(t, h, 2).host, (h + 1) % n);
			EXPECT_EQ(rt_topo_peer(t, h, 2).port, 1u);
			EXPECT_TRUE(rt_port_listens(t, h, 2));
		}
	}
}

TEST(Topo, EndsOfAChainHaveOnePort)
{
	Topo t("chain", 4);

	EXPECT_EQ(names(t, 0), (Names{ "self", "right" }));
	EXPECT_EQ(names(t, 1), (Names{ "self", "left", "right" }));
	EXPECT_EQ(names(t, 3), (Names{ "self", "left" }));
	EXPECT_EQ(rt_topo_peer(t, 0, 1).host, 1u);
	EXPECT_EQ(rt_topo_peer(t, 3, 1).host, 2u);
}

TEST(Topo, MeshesHaveFourSides)
{
	Topo t("mesh:3x3", 9);

	EXPECT_EQ(names(t, 0), (Names{ "self", "right", "down" }));
	EXPECT_EQ(names(t, 4), (Names{ "self", "left", "right", "up", "down" }));
	EXPECT_EQ(rt_topo_peer(t, 4, 1).host, 3u);
	EXPECT_EQ(rt_topo_peer(t, 4, 2).host, 5u);
	EXPECT_EQ(rt_topo_peer(t, 4, 3).host, 1u);
	EXPECT_EQ(rt_topo_peer(t, 4, 4).host, 7u);
}

TEST(Topo, ToriGoRound)
{
	Topo t("torus:3x2", 6);

	EXPECT_EQ(names(t, 0), (Names{ "self", "left", "right", "down" }));
	EXPECT_EQ(names(t, 5), (Names{ "self", "left", "right", "up" }));
	EXPECT_EQ(rt_topo_peer(t, 0, 1).host, 2u);
	EXPECT_EQ(rt_topo_peer(t, 5, 2).host, 3u);
}

TEST(Topo, GraphPortsAreNamedAfterTheirPeers)
{
	Topo t("graph:2-0,0-1,1-2,2-0,2-0", 3);

	EXPECT_EQ(names(t, 0), (Names{ "self", "to1", "to2", "to2.1", "to2.2" }));
	EXPECT_EQ(names(t, 2), (Names{ "self", "to0", "to0.1", "to0.2", "to1" }));
	for (unsigned p = 2; p <= 4; p++) {
		EXPECT_EQ(rt_topo_peer(t, 0, p).host, 2u);
		EXPECT_EQ(rt_topo_peer(t, 0, p).port, p - 1);
	}
}

TEST(Topo, LinksHaveTwoEndsOfWhichOneListens)
{
	for (const Spec &spec : small_specs()) {
		Topo t(spec);

		for (unsigned h = 0; h < rt_hosts(t); h++) {
			for (unsigned p = 1; p < rt_topo_ports(t, h); p++) {
				struct rt_end peer = rt_topo_peer(t, h, p);

				ASSERT_NE(peer.port, 0u) << spec.text;
				ASSERT_NE(peer.host, h) << spec.text;
				EXPECT_EQ(rt_topo_peer(t, peer.host, peer.port).host, h)
					<< spec.text;
				EXPECT_EQ(rt_topo_peer(t, peer.host, peer.port).port, p)
					<< spec.text;
				EXPECT_NE(rt_port_listens(t, h, p),
					  rt_port_listens(t, peer.host, peer.port))
					<< spec.text;
			}
		}
	}
}

void expect_equal(const Topo &a, const Topo &b)
{
	ASSERT_EQ(rt_hosts(a), rt_hosts(b));
	EXPECT_STREQ(rt_topo_spec(a), rt_topo_spec(b));
	for (unsigned h = 0; h < rt_hosts(a); h++) {
		ASSERT_EQ(names(a, h), names(b, h)) << rt_topo_spec(a);
		for (unsigned p = 0; p < rt_topo_ports(a, h); p++) {
			struct rt_end x = rt_topo_peer(a, h, p), y = rt_topo_peer(b, h, p);

			EXPECT_EQ(x.host, y.host);
			EXPECT_EQ(x.port, y.port);
			EXPECT_EQ(rt_port_listens(a, h, p), rt_port_listens(b, h, p));
		}
	}
}

TEST(Topo, CanonicalTextParsesToTheSame)
{
	for (const Spec &spec : small_specs()) {
		Topo t(spec);

		expect_equal(t, Topo(rt_topo_spec(t), spec.hosts));
	}
}

TEST(Topo, OneTopologyHasOneText)
{
	Topo t("graph: 3-2\n1-0\t00-02, 3-2,\n", 4);

	EXPECT_STREQ(rt_topo_spec(t), "graph:0-1,0-2,2-3,2-3");
	expect_equal(t, Topo("graph:2-3,0-2,2-3,0-1", 4));
	EXPECT_STREQ(rt_topo_spec(Topo("mesh:04x003", 12)), "mesh:4x3");
}

TEST(Topo, TheLargestGraphHasRoom)
{
	std::string spec = "graph:";
	unsigned n = RT_HOSTS_MAX;

	for (unsigned h = 0; h < n; h++) {
		for (unsigned d = 1; d <= 3; d++)
			spec += std::to_string(h) + "-" + std::to_string((h + d) % n) + ",";
		if (h < n / 2)
			spec += std::to_string(h) + "-" + std::to_string(h + n / 2) + ",";
	}
	Topo t(spec.c_str(), n);
	for (unsigned h = 0; h < n; h++)
		ASSERT_EQ(rt_topo_ports(t, h), RT_PORTS_MAX);
	expect_equal(t, Topo(rt_topo_spec(t), n));
	EXPECT_NE(refusal((spec + "0-9").c_str(), n).find("host 0 has more than 7 links"),
		  std::string::npos);
}

TEST(Topo, HostsAndPortsThatDoNotExist)
{
	Topo t("ring", 3);

	EXPECT_EQ(rt_topo_ports(t, 3), 0u);
	EXPECT_EQ(rt_topo_port_name(t, 0, 3), nullptr);
	EXPECT_EQ(rt_topo_port_name(t, 3, 0), nullptr);
	EXPECT_EQ(rt_topo_peer(t, 1, 3).host, 1u);
	EXPECT_EQ(rt_topo_peer(t, 1, 3).port, 0u);
	EXPECT_FALSE(rt_link_up(t, nullptr, 0, 3));
	EXPECT_FALSE(rt_link_up(t, nullptr, 3, 1));
	EXPECT_FALSE(rt_port_listens(t, 0, 3));
	EXPECT_EQ(rt_distance(t, nullptr, 0, 3), UINT_MAX);
}

TEST(Topo, RefusalsSayWhatToDo)
{
	struct {
		const char *spec;
		unsigned hosts;
		const char *why;
	} cases[] = {
		{ "rong", 4,
		  "topology \"rong\": not known; use ring, chain, mesh:WxH, torus:WxH or graph:A-B,C-D" },
		{ "ring ", 4,
		  "topology \"ring \": not known; use ring, chain, mesh:WxH, torus:WxH or graph:A-B,C-D" },
		{ "mesh", 4,
		  "topology \"mesh\": not known; use ring, chain, mesh:WxH, torus:WxH or graph:A-B,C-D" },
		{ "ring", 0, "topology \"ring\": 0 hosts; use 1 to 1024" },
		{ "ring", 1025, "topology \"ring\": 1025 hosts; use 1 to 1024" },
		{ "mesh:4by3", 12,
		  "topology \"mesh:4by3\": not a width and a height; use mesh:WxH, for 12 hosts mesh:4x3" },
		{ "torus:3x", 9,
		  "topology \"torus:3x\": not a width and a height; use torus:WxH, for 9 hosts torus:3x3" },
		{ "mesh:0x7", 7,
		  "topology \"mesh:0x7\": not a width and a height; use mesh:WxH, for 7 hosts mesh:7x1" },
		{ "mesh:65536x65537", 7,
		  "topology \"mesh:65536x65537\": not a width and a height; use mesh:WxH, for 7 hosts "
		  "mesh:7x1" },
		{ "mesh:4x4", 12,
		  "topology \"mesh:4x4\": that is 16 hosts, the fabric has 12; use a size such as mesh:4x3" },
		{ "graph:0-1,1_2", 3,
		  "topology \"graph:0-1,1_2\": \"1_2\" does not begin with a link; use two host numbers, as "
		  "in 0-1" },
		{ "graph:0-1,1-2x", 3,
		  "topology \"graph:0-1,1-2x\": \"1-2x\" does not begin with a link; use two host numbers, "
		  "as in 0-1" },
		{ "graph:0-1,1-3", 3,
		  "topology \"graph:0-1,1-3\": link 1-3: no host 3 in a fabric of 3 hosts; use 0 to 2" },
		{ "graph:0-1,1-1", 2,
		  "topology \"graph:0-1,1-1\": link 1-1 joins a host to itself; leave it out" },
		{ "graph:0-1,0-1,0-1,0-1,0-1,0-1,0-1,0-1", 2,
		  "topology \"graph:0-1,0-1,0-1,0-1,0-1,0-1,0-1,0-1\": host 0 has more than 7 links; leave "
		  "some out" },
		{ "graph:0-1,2-3", 4,
		  "topology \"graph:0-1,2-3\": no path from host 0 to host 2; add links until all are joined" },
		{ "graph:", 2,
		  "topology \"graph:\": no path from host 0 to host 1; add links until all are joined" },
		{ "r\x1b[2J\n", 2,
		  "topology \"r?[2J?\": not known; use ring, chain, mesh:WxH, torus:WxH or graph:A-B,C-D" },
	};

	for (const auto &c : cases)
		EXPECT_EQ(refusal(c.spec, c.hosts), c.why);
}

TEST(Topo, OverlongTextIsRefusedAndNotRepeated)
{
	std::string spec = "graph:" + std::string(RT_SPEC_MAX, ' ');
	std::string why = refusal(spec.c_str(), 1);

	EXPECT_NE(why.find("longer than 36863 bytes"), std::string::npos) << why;
	EXPECT_LT(why.size(), 200u);
}

TEST(Topo, AShortBufferForTheReasonIsRespected)
{
	struct rt_topo *t = nullptr;
	char why[12];

	memset(why, '#', sizeof(why));
	EXPECT_EQ(rt_topo_parse("star", 4, &t, why, 8), -EINVAL);
	EXPECT_STREQ(why, "topolog");
	EXPECT_EQ(why[8], '#');
	EXPECT_EQ(rt_topo_parse("star", 4, &t, nullptr, 0), -EINVAL);
	EXPECT_EQ(t, nullptr);
}

} // namespace
