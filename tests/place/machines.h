/* SPDX-License-Identifier: BSD-2-Clause */
/* Topologies of other machines, from descriptions that hwloc reads. */
#ifndef MACHINES_H
#define MACHINES_H

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

extern "C" {
#include "u_place.h"
#include "u_topo_read.h"
}

struct Free {
	void operator()(void *p) const { free(p); }
};
using Topo = std::unique_ptr<u_topo, Free>;

/* The topology of a description; null without hwloc, and then the test is skipped. */
inline Topo machine(const std::string &description)
{
	u_topo *topo = nullptr;
	char error[U_TOPO_ERROR] = "";
	int rc = u_topo_read(description.c_str(), &topo, error);

	if (rc == -ENOENT)
		return nullptr;
	EXPECT_EQ(rc, 0) << error;
	return Topo(topo);
}

#define MACHINE(name, description)                                                                 \
	Topo name = machine(description);                                                          \
	if (name == nullptr)                                                                       \
	GTEST_SKIP() << "hwloc is not installed"

/* 2 packages of 4 caches of 4 cores of 2 processors: 0 to 31, 32 to 63. */
constexpr const char *kChiplets = "package:2 l3:4 core:4 pu:2";

inline u_cpuset cpus(const std::string &list)
{
	u_cpuset set = {};

	if (!list.empty()) {
		EXPECT_EQ(u_cpuset_parse(list.c_str(), &set), 0) << list;
	}
	return set;
}

inline std::string text(const u_cpuset &set)
{
	char out[U_CPUSET_TEXT];

	return u_cpuset_text(&set, out, sizeof(out));
}

inline u_place_rules rules(const std::string &of)
{
	u_place_rules out = {};
	char error[U_PLACE_ERROR] = "";

	EXPECT_EQ(u_place_parse(of.c_str(), &out, error), 0) << error;
	return out;
}

/* Circumstances under which threads are placed; to be changed before place(). */
struct Case {
	u_place_case c = {};
	u_place_rules r;

	Case(const u_topo *topo, const std::string &of, const std::string &application)
	    : r(rules(of))
	{
		c.topo = topo;
		c.rules = &r;
		c.device_node = U_TOPO_NONE;
		c.application = cpus(application);
		if (topo != nullptr)
			u_topo_all(topo, &c.allowed);
	}
	Case(const Case &) = delete;

	std::vector<u_place_decision> place(const std::vector<u_place_ask> &asks)
	{
		std::vector<u_place_decision> out(asks.size());

		u_place(&c, asks.data(), static_cast<unsigned>(asks.size()), out.data());
		return out;
	}

	u_place_decision one(u_place_role role = U_PLACE_TRANSFER)
	{
		return place({ { role, 0, 1, false } })[0];
	}

	std::string line(u_place_role role = U_PLACE_TRANSFER)
	{
		u_place_ask ask = { role, 0, 1, false };
		u_place_decision d = one(role);
		char out[U_PLACE_TEXT];

		return u_place_text(&c, &ask, &d, out);
	}
};

#endif
