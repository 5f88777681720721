// SPDX-License-Identifier: BSD-2-Clause
// Reports of which links are up: whatever links and agents did, all hosts that can communicate get the same picture.
#include <map>
#include <random>

#include "agent_fixture.h"

extern "C" {
#include "rt_topo.h"
}

using namespace agent_test;

namespace {

struct Network {
	const char *name, *topology;
	unsigned hosts;
};

std::ostream &operator<<(std::ostream &os, const Network &n)
{
	return os << n.topology;
}

class Pictures : public ::testing::TestWithParam<Network> {
protected:
	Pictures()
	    : hosts(GetParam().hosts), fabric(hosts,
					      [](ag_cfg &cfg) {
						      cfg.topology = GetParam().topology;
						      cfg.relay_threads = 1;
					      }),
	      runs(hosts, true), down(hosts)
	{
		char why[200];

		EXPECT_EQ(rt_topo_parse(GetParam().topology, hosts, &topo, why, sizeof(why)), 0)
			<< why;
	}

	~Pictures() override { rt_topo_free(topo); }

	void admin(unsigned host, w_admin_verb verb, unsigned port)
	{
		Client tool(fabric, host, W_KIND_TOOL);
		w_admin m = {};

		m.verb = verb;
		snprintf(m.name, sizeof(m.name), "%s", rt_topo_port_name(topo, host, port));
		tool.send(m, W_ADMIN);
		ASSERT_EQ(tool.recv().type, W_DONE);
	}

	void toggle_link(unsigned host, unsigned port)
	{
		if (!runs[host])
			return;
		down[host] ^= 1u << port;
		admin(host, down[host] & 1u << port ? W_ADMIN_LINK_DOWN : W_ADMIN_LINK_UP, port);
	}

	void toggle_agent(unsigned host)
	{
		if (runs[host])
			fabric.stop(host);
		else
			fabric.start(host);
		runs[host] = !runs[host];
		down[host] = 0; // a new agent has forgotten it
	}

	bool is_up(unsigned host, unsigned port) const
	{
		rt_end peer = rt_topo_peer(topo, host, port);

		return runs[host] && runs[peer.host] && !(down[host] & 1u << port) &&
		       !(down[peer.host] & 1u << peer.port);
	}

	unsigned truth(unsigned host) const
	{
		unsigned up = 1;

		for (unsigned port = 1; port < rt_topo_ports(topo, host); port++)
			up |= is_up(host, port) ? 1u << port : 0;
		return up;
	}

	// Hosts that can communicate have the same number; a host that does not run has one of its own.
	std::vector<unsigned> parts() const
	{
		std::vector<unsigned> part(hosts);

		for (unsigned i = 0; i < hosts; i++)
			part[i] = i;
		for (unsigned round = 0; round < hosts; round++) {
			for (unsigned i = 0; i < hosts; i++) {
				for (unsigned port = 1; port < rt_topo_ports(topo, i); port++) {
					unsigned to = rt_topo_peer(topo, i, port).host;
					if (is_up(i, port) && part[to] < part[i])
						part[i] = part[to];
				}
			}
		}
		return part;
	}

	// The errors of the pictures; empty when all are equal, and true for all hosts that answer.
	std::string wrong()
	{
		std::vector<unsigned> part = parts();
		std::map<unsigned, std::vector<std::string>> of_part;

		for (unsigned i = 0; i < hosts; i++) {
			if (!runs[i])
				continue;
			Client tool(fabric, i, W_KIND_TOOL);
			std::vector<std::string> picture;
			for (unsigned k = 0; k < hosts; k++) {
				picture.push_back(tool.item(W_LIST_LINKS, k));
				if (part[k] == part[i] && number_in(picture[k], "up") != truth(k))
					return "host " + std::to_string(i) + " believes " +
					       picture[k];
			}
			auto known = of_part.emplace(part[i], picture);
			for (unsigned k = 0; k < hosts; k++) {
				const std::string &other = known.first->second[k];
				if (other != picture[k])
					return "host " + std::to_string(i) + " believes " +
					       picture[k] + ", another that it reaches " + other;
			}
		}
		return "";
	}

	// The ports of all hosts that run: tells links that are down from pictures that are old.
	std::string ports()
	{
		std::string text;

		for (unsigned i = 0; i < hosts; i++) {
			if (!runs[i])
				continue;
			Client tool(fabric, i, W_KIND_TOOL);
			for (uint32_t k = 1; k < tool.welcome.port_count; k++)
				text += "\nhost " + std::to_string(i) + ", to be " +
					(is_up(i, k) ? "up: " : "down: ") +
					tool.item(W_LIST_PORTS, k);
		}
		return text;
	}

	void agree()
	{
		std::string last;

		EXPECT_TRUE(eventually([&] {
			last = wrong();
			return last.empty();
		})) << last
		    << ports();
	}

	const unsigned hosts;
	Fabric fabric;
	rt_topo *topo = nullptr;
	std::vector<bool> runs;
	std::vector<unsigned> down; // bits of ports that were taken down here
};

TEST_P(Pictures, AgreeAfterAnySequence)
{
	const char *text = getenv("VIADUCT_SEED");
	uint32_t seed = text != nullptr ? static_cast<uint32_t>(strtoul(text, nullptr, 0)) : 4711;
	SCOPED_TRACE("VIADUCT_SEED=" + std::to_string(seed));
	std::mt19937 rng(seed);

	agree();
	for (int round = 0; round < 60 && !HasFailure(); round++) {
		SCOPED_TRACE("round " + std::to_string(round));
		for (unsigned step = 1 + rng() % 12; step > 0; step--) {
			unsigned host = rng() % hosts;
			unsigned port = 1 + rng() % (rt_topo_ports(topo, host) - 1);

			if (rng() % 4 == 0)
				toggle_agent(host);
			else
				toggle_link(host, port);
		}
		agree();
	}
	for (unsigned i = 0; i < hosts; i++) {
		for (unsigned port = 1; port < rt_topo_ports(topo, i); port++) {
			if (down[i] & 1u << port)
				toggle_link(i, port);
		}
		if (!runs[i])
			toggle_agent(i);
	}
	agree();
}

// Two parts that each change while they are apart, and an agent that was started again in one of them.
TEST_P(Pictures, AgreeWhenPartsMeetAgain)
{
	std::vector<std::pair<unsigned, unsigned>> cut;

	agree();
	for (unsigned i = 0; i < hosts; i++) {
		for (unsigned port = 1; port < rt_topo_ports(topo, i); port++) {
			if (i < hosts / 2 && rt_topo_peer(topo, i, port).host >= hosts / 2)
				cut.emplace_back(i, port);
		}
	}
	for (int round = 0; round < 12 && !HasFailure(); round++) {
		SCOPED_TRACE("round " + std::to_string(round));
		for (auto [host, port] : cut)
			toggle_link(host, port);
		agree();
		for (unsigned host : { 1u, hosts - 2 })
			toggle_agent(host);
		agree();
		if (round != 0)
			toggle_agent(1);
		if (round != 1)
			toggle_agent(hosts - 2);
		toggle_link(cut[static_cast<size_t>(round) % cut.size()].first,
			    cut[static_cast<size_t>(round) % cut.size()].second);
		agree();
		for (unsigned i = 0; i < hosts; i++) {
			if (!runs[i])
				toggle_agent(i);
		}
		for (auto [host, port] : cut) {
			if (down[host] & 1u << port)
				toggle_link(host, port);
		}
		agree();
	}
}

INSTANTIATE_TEST_SUITE_P(Networks, Pictures,
			 ::testing::Values(Network{ "ring", "ring", 8 },
					   Network{ "chain", "chain", 8 },
					   Network{ "mesh", "mesh:4x2", 8 }),
			 [](const auto &info) { return std::string(info.param.name); });

} // namespace
