// SPDX-License-Identifier: BSD-2-Clause
#include <atomic>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "eventually.h"

extern "C" {
#include "u_stop.h"
}

namespace {

constexpr int kThreads = 4;

/* Called while other threads are stopped, which may hold locks of the thread sanitizer: so it is not instrumented. */
#define RAW __attribute__((no_sanitize_thread))

struct Counters {
	uint64_t of[kThreads * 16]; /* each written by one thread, and read by __atomic_load_n() */
	uint64_t before[kThreads * 16];
	pid_t pid, helper;
	bool moved;
};

RAW int nothing(void *)
{
	return 0;
}

RAW uint64_t read_now(const uint64_t *word)
{
	return __atomic_load_n(word, __ATOMIC_RELAXED);
}

/* Looks twice, with system calls between. */
RAW int look(void *arg)
{
	auto *c = static_cast<Counters *>(arg);

	c->helper = static_cast<pid_t>(syscall(SYS_getpid));
	for (int i = 0; i < kThreads * 16; i++)
		c->before[i] = read_now(&c->of[i]);
	for (int turn = 0; turn < 100; turn++)
		syscall(SYS_sched_yield);
	for (int i = 0; i < kThreads * 16; i++)
		c->moved |= c->before[i] != read_now(&c->of[i]);
	return -ECHRNG;
}

bool can_stop()
{
	const char *why = nullptr;

	return u_stop_others(nothing, nullptr, &why) == 0;
}

TEST(Stop, OthersStandStillAndGoOn)
{
	Counters c = {};
	const char *why = "";
	std::atomic<bool> stop{ false };
	std::vector<std::thread> threads;

	if (!can_stop())
		GTEST_SKIP() << "threads cannot be stopped here";
	for (int i = 0; i < kThreads; i++)
		threads.emplace_back([&, i] {
			while (!stop)
				__atomic_fetch_add(&c.of[i * 16], 1, __ATOMIC_RELAXED);
		});
	for (int turn = 0; turn < 10; turn++) {
		EXPECT_EQ(u_stop_others(look, &c, &why), -ECHRNG) << "what the function returned";
		EXPECT_EQ(why, nullptr);
		EXPECT_FALSE(c.moved);
		EXPECT_NE(c.helper, getpid());
		for (int i = 0; i < kThreads; i++)
			EXPECT_TRUE(eventually(
				[&] { return read_now(&c.of[i * 16]) != c.before[i * 16]; }));
	}
	stop = true;
	for (auto &t : threads)
		t.join();
	EXPECT_EQ(waitpid(-1, nullptr, __WALL | WNOHANG), -1);
	EXPECT_EQ(errno, ECHILD) << "no process is left";
}

/* Threads that begin and end all the time, also some that were not in the list when it was read. */
TEST(Stop, ThreadsThatComeAndGo)
{
	static uint64_t began;
	std::atomic<bool> stop{ false };
	const char *why = "";

	if (!can_stop())
		GTEST_SKIP() << "threads cannot be stopped here";
	std::thread parent([&] {
		while (!stop)
			std::thread([] { __atomic_fetch_add(&began, 1, __ATOMIC_RELAXED); }).join();
	});
	for (int turn = 0; turn < 100; turn++) {
		int err = u_stop_others(
			[](void *) RAW {
				uint64_t before = read_now(&began);

				syscall(SYS_sched_yield);
				return before == read_now(&began) ? 0 : 1;
			},
			nullptr, &why);
		EXPECT_EQ(err, 0);
	}
	stop = true;
	parent.join();
}

/* There the numbers in /proc would be those of other processes. */
TEST(Stop, RefusesWhereProcIsOfAnotherNameSpace)
{
	const int kNoRights = 77;
	int status = 0;
	pid_t outer = fork();

	ASSERT_GE(outer, 0);
	if (outer == 0) {
		const char *why = nullptr;
		int rc = kNoRights;

		if (unshare(CLONE_NEWPID) == 0) {
			pid_t inner = fork();

			if (inner == 0)
				_exit(u_stop_others(nothing, nullptr, &why) == -EOPNOTSUPP ? 0 : 1);
			rc = waitpid(inner, &status, 0) == inner && status == 0 ? 0 : 1;
		}
		_exit(rc);
	}
	ASSERT_EQ(waitpid(outer, &status, 0), outer);
	if (WIFEXITED(status) && WEXITSTATUS(status) == kNoRights)
		GTEST_SKIP() << "no name space may be made here";
	EXPECT_EQ(status, 0);
}

/* Signals that come during the stop are taken afterwards, by any thread. */
TEST(Stop, NoSignalIsLost)
{
	static std::atomic<int> seen;
	struct sigaction action = {}, old;
	std::atomic<bool> stop{ false };
	std::atomic<pid_t> tid{ 0 };
	const char *why = "";
	constexpr int kSignals = 2000;

#ifdef __SANITIZE_THREAD__
	GTEST_SKIP() << "the thread sanitizer hands on one of several signals";
#endif
	if (!can_stop())
		GTEST_SKIP() << "threads cannot be stopped here";
	seen = 0;
	action.sa_handler = [](int) { seen++; };
	ASSERT_EQ(sigaction(SIGRTMIN, &action, &old), 0);
	std::thread receiver([&] {
		tid = static_cast<pid_t>(syscall(SYS_gettid));
		while (!stop)
			;
	});
	ASSERT_TRUE(eventually([&] { return tid != 0; }));
	int sent = 0;
	std::atomic<bool> done{ false };
	std::thread sender([&] {
		for (int i = 0; i < kSignals; i++)
			sent += syscall(SYS_tgkill, getpid(), tid.load(), SIGRTMIN) == 0;
		done = true;
	});
	while (!done)
		EXPECT_EQ(u_stop_others(nothing, nullptr, &why), 0);
	sender.join();
	EXPECT_TRUE(eventually([&] { return seen == sent; })) << seen << " of " << sent;
	stop = true;
	receiver.join();
	sigaction(SIGRTMIN, &old, nullptr);
}

/* A thread that sleeps makes its system call again, with the pages that are mapped then. */
TEST(Stop, SleepersSleepAtTheNewFutex)
{
	struct Word {
		void *at, *from;
		size_t page;
	} w;
	size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
	const char *why = "";

	if (!can_stop())
		GTEST_SKIP() << "threads cannot be stopped here";
	void *at = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *from = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	w = { at, from, page };
	std::atomic<pid_t> tid{ 0 };
	long slept = -1;
	std::thread sleeper([&] {
		tid = static_cast<pid_t>(syscall(SYS_gettid));
		slept = syscall(SYS_futex, at, FUTEX_WAIT, 0, nullptr, nullptr, 0);
	});
	ASSERT_TRUE(eventually([&] {
		std::ifstream stat("/proc/self/task/" + std::to_string(tid) + "/stat");
		std::string text;

		std::getline(stat, text);
		return text.find(") S ") != std::string::npos;
	}));
	EXPECT_EQ(u_stop_others(
			  [](void *arg) {
				  auto *x = static_cast<Word *>(arg);
				  void *got = reinterpret_cast<void *>(
					  syscall(SYS_mremap, x->from, x->page, x->page,
						  MREMAP_MAYMOVE | MREMAP_FIXED, x->at));

				  return got == x->at ? 0 : -errno;
			  },
			  &w, &why),
		  0);
	EXPECT_TRUE(eventually(
		[&] { return syscall(SYS_futex, at, FUTEX_WAKE, 1, nullptr, nullptr, 0) == 1; }));
	sleeper.join();
	EXPECT_EQ(slept, 0);
	munmap(at, page);
}

} // namespace
