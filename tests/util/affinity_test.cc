/* SPDX-License-Identifier: BSD-2-Clause */
#include <gtest/gtest.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <memory>
#include <string>

#include "env_guard.h"

extern "C" {
#include "u_affinity.h"
#include "u_thread.h"
}

namespace {

struct Close {
	void operator()(u_affinity *a) const { u_affinity_close(a); }
};
using Affinity = std::unique_ptr<u_affinity, Close>;

Affinity open(const char *rules, unsigned flags = 0)
{
	u_affinity *a = nullptr;

	EXPECT_EQ(u_affinity_open(rules, flags, &a), 0) << rules;
	return Affinity(a);
}

std::string list(const u_cpuset &set)
{
	char out[U_CPUSET_TEXT];

	return u_cpuset_text(&set, out, sizeof(out));
}

u_cpuset own()
{
	u_cpuset set;

	EXPECT_EQ(u_thread_own_cpus(&set), 0);
	return set;
}

u_place_decision decide(const u_affinity *a, u_place_role role = U_PLACE_TRANSFER, int rc = 0)
{
	const char *names[] = { "a thread" };
	u_place_ask ask = { role, 0, 1, false };
	u_place_decision d;

	EXPECT_EQ(u_affinity_decide(a, &ask, names, 1, &d), rc);
	return d;
}

/* Runs in a thread, so that the thread's settings end with it. */
template <typename F> void in_thread(F f)
{
	pthread_t thread;

	ASSERT_EQ(pthread_create(
			  &thread, nullptr,
			  [](void *arg) -> void * {
				  (*static_cast<F *>(arg))();
				  return nullptr;
			  },
			  &f),
		  0);
	pthread_join(thread, nullptr);
}

TEST(Affinity, TheProcessAndItsThread)
{
	EnvGuard env;
	Affinity a = open("");

	EXPECT_EQ(list(a->c.allowed), list(own()));
	EXPECT_EQ(list(a->c.application), list(own()));
	EXPECT_FALSE(u_affinity_asked(a.get()));
	EXPECT_EQ(a->c.topo, nullptr);
	EXPECT_FALSE(a->c.application_polls);
	EXPECT_EQ(decide(a.get()).why, U_PLACE_NOT_ASKED);
	EXPECT_EQ(env.log(), "");
	env.set("VIADUCT_WAIT", "spin");
	EXPECT_TRUE(open("")->c.application_polls);
}

TEST(Affinity, TheVariable)
{
	EnvGuard env;
	u_cpuset all = own();
	std::string first = std::to_string(u_cpuset_next(&all, 0));

	env.set("VIADUCT_AFFINITY", "transfer=" + first);
	Affinity a = open(nullptr);
	EXPECT_TRUE(u_affinity_asked(a.get()));
	EXPECT_EQ(list(decide(a.get()).cpus), first);
	env.set("VIADUCT_AFFINITY", "transfer=l3");
	EXPECT_EQ(u_cfg_load(), -EINVAL);
	EXPECT_NE(env.log().find(
			  "VIADUCT_AFFINITY is 'transfer=l3': 'l3' is no place: none, same-core"),
		  std::string::npos)
		<< env.log();
}

TEST(Affinity, RulesThatAreRefused)
{
	EnvGuard env;
	u_affinity *a = nullptr;

	EXPECT_EQ(u_affinity_open("engine=2", 0, &a), -EINVAL);
	EXPECT_EQ(a, nullptr);
	EXPECT_NE(env.log().find("'engine' is no role"), std::string::npos) << env.log();
}

TEST(Affinity, StrictRulesAreErrors)
{
	EnvGuard env;
	std::string beyond = std::to_string(U_CPUSET_END - 1);

	decide(open(("transfer=" + beyond).c_str()).get());
	EXPECT_NE(env.log().find("warn"), std::string::npos) << env.log();
	EXPECT_NE(env.log().find("not placed; asked " + beyond), std::string::npos) << env.log();
	decide(open(("strict;transfer=" + beyond).c_str()).get(), U_PLACE_TRANSFER, -ENXIO);
	EXPECT_NE(env.log().find("error"), std::string::npos) << env.log();
}

TEST(Affinity, LaunchersTellTheNumber)
{
	static const struct {
		const char *rank, *ranks;
	} launchers[] = {
		{ "OSHRUN_PE", "OSHRUN_NPES" },
		{ "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE" },
		{ "MPI_LOCALRANKID", "MPI_LOCALNRANKS" },
		{ "MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_SIZE" },
		{ "SLURM_LOCALID", "SLURM_NTASKS_PER_NODE" },
	};
	EnvGuard env;

	for (const auto &l : launchers) {
		EXPECT_EQ(open("")->c.ranks, 0u);
		setenv(l.rank, "2", 1);
		EXPECT_EQ(open("")->c.ranks, 0u) << l.rank << " alone";
		setenv(l.ranks, "4", 1);
		Affinity a = open("");
		EXPECT_EQ(a->c.rank, 2u) << l.rank;
		EXPECT_EQ(a->c.ranks, 4u) << l.rank;
		EXPECT_EQ(open("", U_AFFINITY_FOREIGN)->c.ranks, 0u) << "an agent";
		for (const char *bad : { "4", "-1", "", "2x", "99999999999" }) {
			setenv(l.rank, bad, 1);
			EXPECT_EQ(open("")->c.ranks, 0u) << l.rank << "=" << bad;
		}
		unsetenv(l.rank);
		unsetenv(l.ranks);
	}
}

TEST(Affinity, MovingAThreadAndBack)
{
	EnvGuard env;
	u_cpuset all = own();
	std::string last;

	for (int cpu = u_cpuset_next(&all, 0); cpu >= 0; cpu = u_cpuset_next(&all, cpu + 1))
		last = std::to_string(cpu);
	Affinity a = open(("transfer=" + last).c_str());
	u_place_decision d = decide(a.get()), none = {};
	in_thread([&] {
		EXPECT_EQ(u_affinity_move(a.get(), pthread_self(), "t", &d), 0);
		EXPECT_EQ(list(own()), last);
		EXPECT_EQ(u_affinity_move(a.get(), pthread_self(), "t", &none), 0);
		EXPECT_EQ(list(own()), list(all));
		EXPECT_EQ(u_affinity_move_self(a.get(), &none), 0);
		EXPECT_EQ(list(own()), list(all));
	});
	EXPECT_EQ(list(own()), list(all));
	EXPECT_EQ(env.log(), "");
}

/* /sys/class/misc/viaductN/device leads to a device whose parent has the file. */
TEST(Affinity, TheNodeOfTheFirstAdapterThatTellsOne)
{
	char dir[] = "/tmp/viaduct-node-XXXXXX";
	ASSERT_NE(mkdtemp(dir), nullptr);
	std::string root = dir;
	auto adapter = [&](const std::string &name, const char *node) {
		mkdir((root + "/" + name).c_str(), 0700);
		mkdir((root + "/" + name + "-pci").c_str(), 0700);
		mkdir((root + "/" + name + "-pci/ntb").c_str(), 0700);
		std::ofstream(root + "/" + name + "-pci/numa_node") << node;
		EXPECT_EQ(symlink(("../" + name + "-pci/ntb").c_str(),
				  (root + "/" + name + "/device").c_str()),
			  0);
	};

	EXPECT_EQ(u_affinity_node((root + "/none").c_str()), U_TOPO_NONE);
	EXPECT_EQ(u_affinity_node(root.c_str()), U_TOPO_NONE);
	adapter("other0", "5\n");
	EXPECT_EQ(u_affinity_node(root.c_str()), U_TOPO_NONE);
	adapter("viaduct0", "-1\n");
	EXPECT_EQ(u_affinity_node(root.c_str()), U_TOPO_NONE);
	adapter("viaduct10", "3\n");
	EXPECT_EQ(u_affinity_node(root.c_str()), 3);
	adapter("viaduct2", "1\n");
	EXPECT_EQ(u_affinity_node(root.c_str()), 1);
	EXPECT_EQ(system(("rm -r " + root).c_str()), 0);
}

} // namespace
