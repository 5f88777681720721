/* SPDX-License-Identifier: BSD-2-Clause */
// Topologies for tests: parsed, dropped at the end of the scope, with a mask of live links.
#ifndef TOPO_H
#define TOPO_H

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

extern "C" {
#include "rt_topo.h"
}

struct Spec {
	std::string text;
	unsigned hosts;
};

class Topo {
public:
	Topo(const char *spec, unsigned hosts)
	{
		char why[256];

		if (rt_topo_parse(spec, hosts, &t_, why, sizeof(why)) != 0)
			throw std::runtime_error(why);
	}
	explicit Topo(const Spec &spec) : Topo(spec.text.c_str(), spec.hosts) {}
	Topo(const Topo &) = delete;
	Topo &operator=(const Topo &) = delete;
	~Topo() { rt_topo_free(t_); }
	operator const struct rt_topo *() const { return t_; }

private:
	struct rt_topo *t_ = nullptr;
};

/* Why a spec is refused. */
inline std::string refusal(const char *spec, unsigned hosts)
{
	struct rt_topo *t = nullptr;
	char why[256] = "";

	EXPECT_EQ(rt_topo_parse(spec, hosts, &t, why, sizeof(why)), -EINVAL) << spec;
	EXPECT_EQ(t, nullptr);
	rt_topo_free(t);
	return why;
}

/* A link, by the end that listens. */
struct Link {
	struct rt_end a, b;
};

inline std::vector<Link> links_of(const struct rt_topo *t)
{
	std::vector<Link> links;

	for (unsigned h = 0; h < rt_hosts(t); h++) {
		for (unsigned p = 1; p < rt_topo_ports(t, h); p++) {
			if (rt_port_listens(t, h, p))
				links.push_back(
					{ { (uint16_t)h, (uint8_t)p }, rt_topo_peer(t, h, p) });
		}
	}
	return links;
}

/* The state of links as hosts report it; a link is down if one end reports that. */
class Live {
public:
	explicit Live(unsigned hosts) : up_(hosts, 0xff) {}
	void cut(struct rt_end end) { up_[end.host] &= (uint8_t) ~(1u << end.port); }
	operator const uint8_t *() const { return up_.data(); }

private:
	std::vector<uint8_t> up_;
};

/* Numbers from a seed, equal on every machine. */
class Random {
public:
	explicit Random(uint64_t seed) : state_(seed) {}
	uint32_t next()
	{
		state_ = state_ * 6364136223846793005u + 1442695040888963407u;
		return (uint32_t)(state_ >> 33);
	}
	unsigned below(unsigned n) { return next() % n; }

private:
	uint64_t state_;
};

/* A random tree with some more links, parallel ones among them. */
inline Spec random_graph(uint64_t seed)
{
	Random random(seed);
	unsigned hosts = 2 + random.below(15), extra = random.below(hosts + 1);
	std::vector<unsigned> links(hosts, 0);
	std::string text = "graph:";

	auto join = [&](unsigned a, unsigned b) {
		if (a == b || links[a] == RT_PORTS_MAX - 1 || links[b] == RT_PORTS_MAX - 1)
			return false;
		links[a]++;
		links[b]++;
		text += (text.back() == ':' ? "" : ",") + std::to_string(a) + "-" +
			std::to_string(b);
		return true;
	};
	for (unsigned h = 1; h < hosts; h++) {
		while (!join(h, random.below(h)))
			;
	}
	for (unsigned i = 0; i < extra; i++)
		join(random.below(hosts), random.below(hosts));
	return { text, hosts };
}

/* Every ring, chain, mesh and torus of up to 16 hosts. */
inline std::vector<Spec> regular_specs()
{
	std::vector<Spec> specs;

	for (unsigned n = 1; n <= 16; n++) {
		specs.push_back({ "ring", n });
		specs.push_back({ "chain", n });
		for (unsigned w = 1; w <= n; w++) {
			if (n % w != 0)
				continue;
			std::string size = std::to_string(w) + "x" + std::to_string(n / w);

			specs.push_back({ "mesh:" + size, n });
			specs.push_back({ "torus:" + size, n });
		}
	}
	return specs;
}

/* The seed of the random graphs; specs that fail are printed in full. */
inline uint64_t seed()
{
	const char *text = getenv("VIADUCT_SEED");

	return text != nullptr ? strtoull(text, nullptr, 0) : 1;
}

/* The regular ones and sixty random graphs. */
inline std::vector<Spec> small_specs()
{
	std::vector<Spec> specs = regular_specs();

	for (uint64_t i = 0; i < 60; i++)
		specs.push_back(random_graph(seed() + i));
	return specs;
}

#endif
