/* SPDX-License-Identifier: BSD-2-Clause */
#include "machines.h"

#include <sched.h>

#include <cerrno>

TEST(Topo, ThisMachineHasTheProcessorsOfThisThread)
{
	u_topo *topo = nullptr;
	char error[U_TOPO_ERROR] = "";
	u_cpuset all = {};
	cpu_set_t own;
	int rc = u_topo_read(nullptr, &topo, error);
	Topo held(topo);

	if (rc == -ENOENT)
		GTEST_SKIP() << error;
	ASSERT_EQ(rc, 0) << error;
	ASSERT_EQ(sched_getaffinity(0, sizeof(own), &own), 0);
	u_topo_all(topo, &all);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		EXPECT_TRUE(!CPU_ISSET(cpu, &own) || u_cpuset_has(&all, cpu)) << cpu;
}

TEST(Topo, ReadingMovesNobody)
{
	u_topo *topo = nullptr;
	char error[U_TOPO_ERROR];
	cpu_set_t before, after;

	ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
	u_topo_read(nullptr, &topo, error);
	ASSERT_EQ(sched_getaffinity(0, sizeof(after), &after), 0);
	EXPECT_TRUE(CPU_EQUAL(&before, &after));
	free(topo);
}

#ifdef HAVE_HWLOC
TEST(Topo, ADescriptionThatIsNoneIsRefused)
{
	u_topo *topo = nullptr;
	char error[U_TOPO_ERROR] = "";
	int rc = u_topo_read("package:0 nonsense", &topo, error);

	if (rc == -ENOENT)
		GTEST_SKIP() << error;
	EXPECT_EQ(rc, -EINVAL);
	EXPECT_EQ(topo, nullptr);
	EXPECT_NE(std::string(error).find("'package:0 nonsense'"), std::string::npos) << error;
}
#else
TEST(Topo, WithoutHwlocItSaysSo)
{
	u_topo *topo = nullptr;
	char error[U_TOPO_ERROR] = "";

	EXPECT_EQ(u_topo_read(nullptr, &topo, error), -ENOENT);
	EXPECT_NE(std::string(error).find("no hwloc"), std::string::npos) << error;
}
#endif

TEST(Topo, PartsOfAMachine)
{
	MACHINE(topo, "package:2 numa:1 l3:2 core:2 pu:2");
	u_cpuset all = {}, of = cpus("3"), out = {};

	u_topo_all(topo.get(), &all);
	EXPECT_EQ(text(all), "0-15");
	EXPECT_EQ(u_topo_spread(topo.get(), &all, U_TOPO_CPU), 16);
	EXPECT_EQ(u_topo_spread(topo.get(), &all, U_TOPO_CORE), 8);
	EXPECT_EQ(u_topo_spread(topo.get(), &all, U_TOPO_CACHE), 4);
	EXPECT_EQ(u_topo_spread(topo.get(), &all, U_TOPO_PACKAGE), 2);
	EXPECT_EQ(u_topo_spread(topo.get(), &all, U_TOPO_NODE), 2);
	u_topo_around(topo.get(), &of, U_TOPO_CORE, &out);
	EXPECT_EQ(text(out), "2-3");
	out = {};
	u_topo_around(topo.get(), &of, U_TOPO_CACHE, &out);
	EXPECT_EQ(text(out), "0-3");
	out = {};
	u_topo_around(topo.get(), &of, U_TOPO_NODE, &out);
	EXPECT_EQ(text(out), "0-7");
	EXPECT_EQ(topo->cpus[u_topo_find(topo.get(), 9)].node, 1);
	EXPECT_EQ(topo->cpus[u_topo_find(topo.get(), 9)].cache_level, 3);
	EXPECT_EQ(u_topo_find(topo.get(), 16), -1);
	EXPECT_TRUE(u_topo_caches_known(topo.get(), &all));
}
