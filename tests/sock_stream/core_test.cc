/* SPDX-License-Identifier: BSD-2-Clause */
/* Pollers that are held on one core each: which of them looks at a stream. */
#include "pair.h"

#include <cerrno>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <thread>

#include <dirent.h>
#include <sched.h>

#include <gtest/gtest.h>

extern "C" {
#include "u_topo_read.h"
}

using namespace clu;

namespace {

cpu_set_t only(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return set;
}

/* Two processors of different cores, on which this process stays from its beginning; none: it has not got them. */
struct Two {
	Two()
	{
		cpu_set_t all, both;
		std::string line;

		if (sched_getaffinity(0, sizeof(all), &all) != 0)
			return;
		for (int i = 0; i < CPU_SETSIZE && cpus.size() < 2; i++) {
			std::ifstream file("/sys/devices/system/cpu/cpu" + std::to_string(i) +
					   "/topology/thread_siblings_list");
			if (CPU_ISSET(i, &all) && getline(file, line) && cores.insert(line).second)
				cpus.push_back(i);
		}
		if (cpus.size() < 2)
			return;
		both = only(cpus[0]);
		CPU_SET(cpus[1], &both);
		sched_setaffinity(0, sizeof(both), &both);
		setenv("VIADUCT_AFFINITY", "service=same-core", 1);
	}
	std::vector<int> cpus;
	std::set<std::string> cores;
} two;

/* The thread of the process that has this name. */
int thread_of(const std::string &name)
{
	DIR *dir = opendir("/proc/self/task");
	int tid = 0;

	while (dirent *e = readdir(dir)) {
		std::string comm;
		std::ifstream(std::string("/proc/self/task/") + e->d_name + "/comm") >> comm;
		if (comm == name)
			tid = atoi(e->d_name);
	}
	closedir(dir);
	return tid;
}

/* How often a thread has given its processor away, to sleep. */
long sleeps_of(int tid)
{
	std::ifstream file("/proc/self/task/" + std::to_string(tid) + "/status");
	std::string line;

	while (getline(file, line))
		if (line.rfind("voluntary_ctxt_switches:", 0) == 0)
			return std::stol(line.substr(24));
	return -1;
}

int came; /* streams that came back */

void back(void *, bool)
{
	came++;
}

/* Gives the stream to a poller, and waits until it comes back, since bytes are there. */
void give(Pair &p, st_waker *waker)
{
	char c;

	p.a.send_all("x", 1);
	came = 0;
	ASSERT_NE(st_watch_give(p.b, ST_IN, waker, &p.b), nullptr);
	while (st_watch_take(back) == 0 && came == 0)
		std::this_thread::yield();
	ASSERT_EQ(p.b.recv_wait(&c, 1), 1);
}

struct Core : testing::Test {
	void SetUp() override
	{
		char error[U_TOPO_ERROR];
		u_topo *topo = nullptr;

		if (two.cpus.size() < 2)
			GTEST_SKIP()
				<< "fewer than two cores, or the kernel does not tell of cores";
		if (u_topo_read(nullptr, &topo, error) != 0)
			GTEST_SKIP() << error;
		free(topo);
		config.size = sizeof(config);
		config.device = "host0";
	}
	void TearDown() override
	{
		cpu_set_t both = only(two.cpus.empty() ? 0 : two.cpus[0]);

		if (two.cpus.size() < 2)
			return;
		CPU_SET(two.cpus[1], &both);
		sched_setaffinity(0, sizeof(both), &both);
	}
	/* The poller that is held on this processor alone. */
	static int held_on(int cpu, unsigned pollers)
	{
		cpu_set_t set, want = only(cpu);

		for (unsigned i = 0; i < pollers; i++) {
			int tid = thread_of("vi-poll" + std::to_string(i));
			EXPECT_EQ(sched_getaffinity(tid, sizeof(set), &set), 0);
			if (CPU_EQUAL(&set, &want))
				return tid;
		}
		return 0;
	}
	st_config config = {};
};

} // namespace

/* Each of two sets, by threads of both cores: the poller of the set's turn is never the one that decides. */
TEST_F(Core, AStreamHasThePollerOfTheCallersCore)
{
	Fabric fabric(1);

	config.pollers = 2;
	ASSERT_EQ(st_init(&config), 0);
	{
		Pair p;
		p.promoted("host0");
		st_waker *wakers[] = { st_waker_get(), st_waker_get() };
		int poller[] = { held_on(two.cpus[0], 2), held_on(two.cpus[1], 2) };

		ASSERT_NE(poller[0], 0);
		ASSERT_NE(poller[1], 0);
		for (int round = 0; round < 8; round++) {
			int here = round & 1;
			cpu_set_t set = only(two.cpus[here]);
			long other, own;

			ASSERT_EQ(sched_setaffinity(0, sizeof(set), &set), 0);
			give(p, wakers[round >> 1 & 1]);
			/* The other poller has nothing, and sleeps from a moment on. */
			ASSERT_TRUE(until([&] {
				std::ifstream stat("/proc/self/task/" +
						   std::to_string(poller[!here]) + "/stat");
				std::string pid, name, state;
				stat >> pid >> name >> state;
				return state == "S";
			}));
			other = sleeps_of(poller[!here]);
			own = sleeps_of(poller[here]);
			struct st_stats before = stats();
			for (int i = 0; i < 20; i++)
				give(p, wakers[round >> 1 & 1]);
			struct st_stats after = stats();
			EXPECT_EQ(after.given - before.given, 20u);
			EXPECT_EQ(after.given_one_core - before.given_one_core, 20u)
				<< "round " << round;
			EXPECT_EQ(sleeps_of(poller[!here]), other) << "the other poller was woken";
			EXPECT_TRUE(until([&] { return sleeps_of(poller[here]) > own; }));
		}
		st_waker_put(wakers[0]);
		st_waker_put(wakers[1]);
	}
	st_fini(20000);
}

TEST_F(Core, OnePollerForTwoCoresHasNoCore)
{
	Fabric fabric(1);

	config.pollers = 1;
	ASSERT_EQ(st_init(&config), 0);
	{
		Pair p;
		p.promoted("host0");
		st_waker *waker = st_waker_get();

		struct st_stats before = stats();

		EXPECT_EQ(held_on(two.cpus[0], 1) + held_on(two.cpus[1], 1), 0);
		for (int i = 0; i < 10; i++)
			give(p, waker);
		EXPECT_EQ(stats().given_one_core, before.given_one_core);
		EXPECT_GE(stats().given, before.given + 10);
		st_waker_put(waker);
	}
	st_fini(20000);
}
