/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <gtest/gtest.h>
#include <linux/membarrier.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

extern "C" {
#include "u_futex.h"
#include "u_membarrier.h"
#include "u_time.h"
}

TEST(Futex, AnswersAgainWhenTheWordDiffers)
{
	_Atomic uint32_t word = 1;

	EXPECT_EQ(u_futex_wait(&word, 0, UINT32_MAX, -1, true), -EAGAIN);
}

TEST(Futex, RelativeTimeoutPasses)
{
	_Atomic uint32_t word = 0;
	int64_t before = u_now_ns();

	EXPECT_EQ(u_futex_wait(&word, 0, UINT32_MAX, 20000000, true), -ETIMEDOUT);
	EXPECT_GE(u_now_ns() - before, 20000000);
	EXPECT_EQ(u_futex_wait(&word, 0, UINT32_MAX, 0, true), -ETIMEDOUT);
}

TEST(Futex, NoBitsIsAnError)
{
	_Atomic uint32_t word = 0;

	EXPECT_EQ(u_futex_wait(&word, 0, 0, -1, true), -EINVAL);
	EXPECT_EQ(u_futex_wake(&word, 1, 0, true), -EINVAL);
}

TEST(Futex, NobodySleeps)
{
	_Atomic uint32_t word = 0;

	EXPECT_EQ(u_futex_wake(&word, 100, UINT32_MAX, true), 0);
}

/* Wakes until one sleeper with these bits was woken. */
static void wake_one(_Atomic uint32_t *word, uint32_t bits, bool private_word)
{
	int64_t deadline = u_now_ns() + INT64_C(20000000000);

	while (u_futex_wake(word, 1, bits, private_word) == 0) {
		ASSERT_LT(u_now_ns(), deadline) << "nobody went to sleep";
		sched_yield();
	}
}

TEST(Futex, BitsChooseTheSleeper)
{
	_Atomic uint32_t word = 0;
	std::atomic<int> first{ 1 }, second{ 1 };
	std::thread a([&] { first = u_futex_wait(&word, 0, 1, -1, true); });
	std::thread b([&] { second = u_futex_wait(&word, 0, 2, -1, true); });

	wake_one(&word, 2, true);
	b.join();
	EXPECT_EQ(second, 0);
	EXPECT_EQ(first, 1) << "the sleeper on bit 0 was not meant";
	wake_one(&word, 1, true);
	a.join();
	EXPECT_EQ(first, 0);
}

TEST(Futex, HugeTimeoutDoesNotOverflow)
{
	_Atomic uint32_t word = 0;
	std::atomic<int> result{ 1 };
	std::thread sleeper([&] { result = u_futex_wait(&word, 0, 1, INT64_MAX, true); });

	wake_one(&word, 1, true);
	sleeper.join();
	EXPECT_EQ(result, 0);
}

TEST(Futex, WakesAcrossProcesses)
{
	void *page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	auto *word = static_cast<_Atomic uint32_t *>(page);
	int status = -1;
	pid_t child;

	ASSERT_NE(page, MAP_FAILED);
	child = fork();
	ASSERT_GE(child, 0);
	if (child == 0)
		_exit(u_futex_wait(word, 0, 4, INT64_C(30000000000), false) == 0 ? 0 : 1);
	wake_one(word, 4, false);
	ASSERT_EQ(waitpid(child, &status, 0), child);
	EXPECT_EQ(status, 0);
	munmap(page, 4096);
}

TEST(Membarrier, WorksOrSaysWhyNot)
{
	if (!u_membarrier_available()) {
		EXPECT_EQ(u_membarrier_register(), -ENOSYS);
		EXPECT_EQ(u_membarrier(), -ENOSYS);
		GTEST_SKIP() << "the kernel offers no global expedited membarrier";
	}
	EXPECT_EQ(u_membarrier_register(), 0);
	EXPECT_EQ(u_membarrier_register(), 0) << "registering twice is allowed";
	EXPECT_EQ(u_membarrier(), 0);
}

static bool private_barrier_works()
{
	return syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
}

// Run in a process that the case below starts, in which no other case ran before.
TEST(Membarrier, DISABLED_RegistersForAll)
{
	if (private_barrier_works())
		GTEST_SKIP() << "the process is registered before it asks";
	EXPECT_EQ(errno, EPERM);
	u_membarrier_register();
	EXPECT_TRUE(private_barrier_works());
}

// A thread that registers later, with a lock held, may hold it for seconds on a busy machine.
TEST(Membarrier, NothingIsLeftToRegisterOnceANicIsOpen)
{
	int status = -1;
	pid_t child;

	if (!u_membarrier_private_available())
		GTEST_SKIP() << "the kernel offers no private expedited membarrier";
	child = fork();
	if (child == 0) {
		execl("/proc/self/exe", "util_tests", "--gtest_also_run_disabled_tests",
		      "--gtest_filter=Membarrier.DISABLED_RegistersForAll",
		      static_cast<char *>(nullptr));
		_exit(127);
	}
	ASSERT_EQ(waitpid(child, &status, 0), child);
	EXPECT_EQ(status, 0);
}

/*
 * Store-load between a fast side without a fence and a sleeper that calls
 * u_membarrier(): at least one of the two sees the other's store.
 */
TEST(Membarrier, AsymmetricStoreLoadNeverMissesBoth)
{
	const int rounds = 2000;
	std::atomic<int> x{ 0 }, y{ 0 }, go{ 0 }, done{ 0 };
	int fast_saw = 0, missed = 0;

	if (!u_membarrier_available())
		GTEST_SKIP() << "the kernel offers no global expedited membarrier";
	ASSERT_EQ(u_membarrier_register(), 0);
	std::thread fast([&] {
		for (int i = 1; i <= rounds; i++) {
			while (go.load(std::memory_order_acquire) != i)
				u_pause();
			x.store(i, std::memory_order_relaxed);
			std::atomic_signal_fence(std::memory_order_seq_cst);
			fast_saw = y.load(std::memory_order_relaxed) == i;
			done.store(i, std::memory_order_release);
		}
	});
	for (int i = 1; i <= rounds; i++) {
		go.store(i, std::memory_order_release);
		y.store(i, std::memory_order_relaxed);
		EXPECT_EQ(u_membarrier(), 0);
		bool slow_saw = x.load(std::memory_order_relaxed) == i;
		while (done.load(std::memory_order_acquire) != i)
			std::this_thread::yield();
		missed += !slow_saw && !fast_saw;
	}
	fast.join();
	EXPECT_EQ(missed, 0);
}
