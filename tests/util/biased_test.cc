/* SPDX-License-Identifier: BSD-2-Clause */
/* The lock of the data path: one holder at a time, whichever thread it is biased to. */
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

extern "C" {
#include "u_biased.h"
#include "u_membarrier.h"
}

namespace {

#if defined(__SANITIZE_THREAD__)
constexpr bool may_bias()
{
	return false;
}
#else
// Not before main(): the first call registers the process.
bool may_bias()
{
	return u_membarrier_private_available();
}
#endif

/* Takes and drops the lock until it is biased to this thread, if that is possible. */
void make_own(struct u_biased *lock)
{
	for (int i = 0; i < 1000; i++) {
		u_biased_take(lock);
		u_biased_drop(lock);
	}
	ASSERT_EQ(may_bias(), atomic_load(&lock->owner) != 0);
}

TEST(Biased, TryTellsHeldFromFree)
{
	struct u_biased lock = {};

	for (int round = 0; round < 2; round++) {
		EXPECT_FALSE(u_biased_held(&lock));
		EXPECT_TRUE(u_biased_try(&lock));
		EXPECT_FALSE(u_biased_try(&lock));
		std::thread([&] {
			EXPECT_FALSE(u_biased_try(&lock));
			EXPECT_TRUE(u_biased_held(&lock));
		}).join();
		u_biased_drop(&lock);
		EXPECT_FALSE(u_biased_held(&lock));
		make_own(&lock);
	}
	std::thread([&] {
		EXPECT_TRUE(u_biased_try(&lock)) << "a free lock is taken, whosever it is";
		u_biased_drop(&lock);
	}).join();
	EXPECT_EQ(0u, lock.word);
}

/* This holds also in the moment in which the lock becomes biased to it. */
TEST(Biased, TheHolderNeverGetsItAgain)
{
	struct u_biased lock = {};

	for (int i = 0; i < 1000; i++) {
		u_biased_take(&lock);
		EXPECT_FALSE(u_biased_try(&lock)) << "round " << i;
		u_biased_drop(&lock);
		ASSERT_FALSE(u_biased_held(&lock)) << "round " << i;
	}
}

TEST(Biased, TheBiasGoesToWhoAsksAndComesBack)
{
	struct u_biased lock = {};
	uint32_t mine;

	if (!may_bias())
		GTEST_SKIP() << "no membarrier, or the thread sanitizer: locks are never biased";
	make_own(&lock);
	mine = atomic_load(&lock.owner);
	std::thread([&] {
		u_biased_take(&lock);
		EXPECT_EQ(0u, atomic_load(&lock.owner));
		u_biased_drop(&lock);
		make_own(&lock);
		EXPECT_NE(mine, atomic_load(&lock.owner));
	}).join();
	make_own(&lock);
	EXPECT_EQ(mine, atomic_load(&lock.owner));
}

/* A process may make so many threads in its life that no tokens are left for new ones. */
TEST(Biased, ThreadsWithoutATokenTakeItAsAnOrdinaryLock)
{
	const uint64_t last = U_NO_TOKEN / U_BIASED_SLOTS - 1, before = u_biased_threads;
	struct u_biased lock = {};

	u_biased_threads = last - 1;
	for (int t = 0; t < 3; t++)
		std::thread([&] {
			for (int i = 0; i < 1000; i++) {
				u_biased_take(&lock);
				EXPECT_TRUE(u_biased_held(&lock));
				u_biased_drop(&lock);
			}
			EXPECT_EQ(t == 0 && may_bias(), atomic_load(&lock.owner) != 0);
			EXPECT_EQ(t == 0, u_thread_token != U_NO_TOKEN);
		}).join();
	u_biased_threads = before;
}

TEST(Biased, WhenSlotsAreTakenItIsAnOrdinaryLock)
{
	struct u_biased lock = {};
	int owners = 0;

	for (unsigned t = 0; t < U_BIASED_SLOTS + 3; t++)
		std::thread([&] {
			for (int i = 0; i < 100000; i++) {
				u_biased_take(&lock);
				u_biased_drop(&lock);
			}
			owners += atomic_load(&lock.owner) != 0;
		}).join();
	EXPECT_EQ(may_bias() ? int(U_BIASED_SLOTS) : 0, owners);
}

/* The owner holds the lock when the bias is revoked: the other thread waits until it has dropped it. */
TEST(Biased, TakingTheBiasAwayWaitsForTheOwner)
{
	struct u_biased lock = {};
	std::atomic<bool> asked{ false };
	int value = 0;

	make_own(&lock);
	for (int round = 0; round < 50; round++) {
		u_biased_take(&lock);
		asked = false;
		std::thread other([&] {
			asked = true;
			u_biased_take(&lock);
			EXPECT_EQ(round * 2 + 1, value);
			value++;
			u_biased_drop(&lock);
		});
		while (!asked)
			std::this_thread::yield();
		for (int i = 0; i < 100; i++)
			std::this_thread::yield();
		EXPECT_EQ(round * 2, value);
		value++;
		u_biased_drop(&lock);
		other.join();
		for (int i = 0; i < 5000; i++) {
			u_biased_take(&lock);
			u_biased_drop(&lock);
		}
	}
}

/* Threads take the lock in bursts: the bias goes from one to the other, and never two are inside. */
TEST(Biased, NeverTwoInside)
{
	struct u_biased lock = {};
	std::atomic<int> inside{ 0 };
	long total = 0;
	std::vector<std::thread> pool;
	const int threads = 6, bursts = 60, burst = 2000;

	for (int t = 0; t < threads; t++)
		pool.emplace_back([&, t] {
			for (int b = 0; b < bursts; b++) {
				for (int i = 0; i < burst; i++) {
					if (i % 3 == t % 3) {
						if (!u_biased_try(&lock))
							u_biased_take(&lock);
					} else {
						u_biased_take(&lock);
					}
					EXPECT_EQ(0,
						  inside.fetch_add(1, std::memory_order_relaxed));
					total++;
					inside.fetch_sub(1, std::memory_order_relaxed);
					u_biased_drop(&lock);
				}
				std::this_thread::yield();
			}
		});
	for (auto &thread : pool)
		thread.join();
	EXPECT_EQ(long(threads) * bursts * burst, total);
	EXPECT_EQ(0u, lock.word);
}

/*
 * What deregistration does: after the grace period nobody uses what was valid before it,
 * though the lock is taken without a pause.
 */
TEST(Biased, GraceEndsAllUseOfTheOldState)
{
	struct u_biased lock = {};
	std::atomic<int *> valid;
	std::atomic<bool> stop{ false };
	std::vector<int> cells(2000, 1);
	std::atomic<int> misused{ 0 };

	valid = &cells[0];
	std::thread user([&] {
		while (!stop) {
			u_biased_take(&lock);
			int *cell = valid.load(std::memory_order_relaxed);
			for (int i = 0; i < 3; i++)
				misused += __atomic_load_n(cell, __ATOMIC_RELAXED) == 0;
			u_biased_drop(&lock);
		}
	});
	for (size_t i = 1; i < cells.size(); i++) {
		valid.store(&cells[i], std::memory_order_relaxed);
		u_biased_grace_begin();
		u_biased_grace(&lock);
		__atomic_store_n(&cells[i - 1], 0, __ATOMIC_RELAXED);
	}
	stop = true;
	user.join();
	EXPECT_EQ(0, misused);
}

} // namespace
