/* SPDX-License-Identifier: BSD-2-Clause */
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <string>

extern "C" {
#include "u_thread.h"
}

struct Seen {
	sigset_t mask;
	cpu_set_t cpus;
	char name[16];
};

static void *check(void *arg)
{
	auto *seen = static_cast<Seen *>(arg);

	pthread_sigmask(SIG_SETMASK, nullptr, &seen->mask);
	sched_getaffinity(0, sizeof(seen->cpus), &seen->cpus);
	pthread_getname_np(pthread_self(), seen->name, sizeof(seen->name));
	return arg;
}

static Seen start_and_join(const char *name, int cpu = -1)
{
	Seen seen = {};
	pthread_t thread;
	void *result = nullptr;

	u_cpuset cpus = {};

	u_cpuset_add(&cpus, cpu);
	EXPECT_EQ(u_thread_start_on(cpu >= 0 ? &cpus : nullptr, &thread, name, check, &seen), 0);
	EXPECT_EQ(pthread_join(thread, &result), 0);
	EXPECT_EQ(result, &seen);
	return seen;
}

TEST(Thread, BlocksEverySignalAndLeavesTheCreatorAlone)
{
	sigset_t before, after;
	Seen seen;

	pthread_sigmask(SIG_SETMASK, nullptr, &before);
	seen = start_and_join("vi-test0");
	pthread_sigmask(SIG_SETMASK, nullptr, &after);
	for (int s : { SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGALRM, SIGCHLD, SIGPIPE })
		EXPECT_EQ(sigismember(&seen.mask, s), 1) << s;
	for (int s = 1; s < SIGRTMAX; s++)
		EXPECT_EQ(sigismember(&before, s), sigismember(&after, s)) << s;
}

TEST(Thread, IsNamedAndLongNamesAreCut)
{
	EXPECT_STREQ(start_and_join("vi-xfer0").name, "vi-xfer0");
	EXPECT_STREQ(start_and_join("a-name-that-is-too-long").name, "a-name-that-is-");
}

/* A creator pinned to one CPU does not pin its helpers: they get the process's set. */
TEST(Thread, HelperOfAPinnedThreadRunsWhereTheProcessMay)
{
	cpu_set_t process;
	Seen seen = {};

	ASSERT_EQ(sched_getaffinity(getpid(), sizeof(process), &process), 0);
	if (CPU_COUNT(&process) < 2)
		GTEST_SKIP() << "one CPU: pinned and free look the same";
	pthread_t pinned;
	ASSERT_EQ(pthread_create(
			  &pinned, nullptr,
			  [](void *arg) -> void * {
				  cpu_set_t one;

				  CPU_ZERO(&one);
				  CPU_SET(sched_getcpu(), &one);
				  sched_setaffinity(0, sizeof(one), &one);
				  *static_cast<Seen *>(arg) = start_and_join("vi-free0");
				  return nullptr;
			  },
			  &seen),
		  0);
	pthread_join(pinned, nullptr);
	EXPECT_TRUE(CPU_EQUAL(&seen.cpus, &process));
}

struct Told {
	std::atomic<bool> look{ false };
	cpu_set_t cpus;
};

static void *look_when_told(void *arg)
{
	auto *told = static_cast<Told *>(arg);

	while (!told->look)
		sched_yield();
	sched_getaffinity(0, sizeof(told->cpus), &told->cpus);
	return nullptr;
}

/* Its start, on processors of its own, has ended before the creator may move it. */
TEST(Thread, StaysWhereItIsMovedToAtOnce)
{
	cpu_set_t process;
	int first = -1, last = -1;

	ASSERT_EQ(sched_getaffinity(getpid(), sizeof(process), &process), 0);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &process))
			continue;
		first = first < 0 ? cpu : first;
		last = cpu;
	}
	if (first == last)
		GTEST_SKIP() << "one CPU: there is no other place";
	for (int i = 0; i < 50; i++) {
		u_cpuset from = {}, to = {};
		Told told;
		pthread_t thread;

		u_cpuset_add(&from, first);
		u_cpuset_add(&to, last);
		ASSERT_EQ(u_thread_start_on(&from, &thread, "vi-moved", look_when_told, &told), 0);
		EXPECT_EQ(u_thread_move(thread, &to), 0);
		told.look = true;
		ASSERT_EQ(pthread_join(thread, nullptr), 0);
		EXPECT_EQ(CPU_COUNT(&told.cpus), 1);
		EXPECT_TRUE(CPU_ISSET(last, &told.cpus));
	}
}

TEST(Thread, RunsOnTheProcessorAskedForFromItsFirstInstructionOn)
{
	cpu_set_t process;

	ASSERT_EQ(sched_getaffinity(getpid(), sizeof(process), &process), 0);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &process))
			continue;
		Seen seen = start_and_join("vi-one0", cpu);
		EXPECT_EQ(CPU_COUNT(&seen.cpus), 1);
		EXPECT_TRUE(CPU_ISSET(cpu, &seen.cpus)) << cpu;
	}
}

TEST(Thread, AProcessorThatThereIsNotLeavesItWhereTheProcessMayRun)
{
	cpu_set_t process;

	ASSERT_EQ(sched_getaffinity(getpid(), sizeof(process), &process), 0);
	for (int cpu : { U_CPUSET_END - 1, INT_MAX }) {
		Seen seen = start_and_join("vi-none0", cpu);
		EXPECT_TRUE(CPU_EQUAL(&seen.cpus, &process)) << cpu;
	}
}
