/* SPDX-License-Identifier: BSD-2-Clause */
#include <gtest/gtest.h>

#include <thread>
#include <vector>

extern "C" {
#include "u_lock.h"
}

TEST(Lock, TryTellsHeldFromFree)
{
	struct u_lock lock = U_LOCK_INIT;

	EXPECT_TRUE(u_lock_try(&lock));
	EXPECT_FALSE(u_lock_try(&lock));
	u_lock_drop(&lock);
	EXPECT_TRUE(u_lock_try(&lock));
	u_lock_drop(&lock);
	EXPECT_EQ(lock.word, 0u);
}

/* There are more threads than cores, so that holders are preempted and waiters sleep. */
TEST(Lock, ContentionLosesNothing)
{
	struct u_lock lock = U_LOCK_INIT;
	const int threads = 4, rounds = 100000;
	long total = 0;
	std::vector<std::thread> pool;

	for (int t = 0; t < threads; t++)
		pool.emplace_back([&] {
			for (int i = 0; i < rounds; i++) {
				u_lock_take(&lock);
				total++;
				u_lock_drop(&lock);
			}
		});
	for (auto &thread : pool)
		thread.join();
	EXPECT_EQ(total, (long)threads * rounds);
	EXPECT_EQ(lock.word, 0u);
}

/* Every waiter that slept is woken, one drop after the other. */
TEST(Lock, SleepersAllGetTheirTurn)
{
	struct u_lock lock = U_LOCK_INIT;
	const int threads = 6;
	int turns = 0;
	std::vector<std::thread> pool;

	u_lock_take(&lock);
	for (int t = 0; t < threads; t++)
		pool.emplace_back([&] {
			u_lock_take(&lock);
			turns++;
			u_lock_drop(&lock);
		});
	while (atomic_load(&lock.word) != 2)
		std::this_thread::yield();
	u_lock_drop(&lock);
	for (auto &thread : pool)
		thread.join();
	EXPECT_EQ(turns, threads);
}
