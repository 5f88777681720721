/* SPDX-License-Identifier: BSD-2-Clause */
#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>
#include <vector>

extern "C" {
#include "u_idtab.h"
}

static int objects[4096];

TEST(Idtab, AddGetDel)
{
	uint64_t id = u_idtab_add(3, &objects[0]);

	ASSERT_NE(id, 0u);
	EXPECT_EQ(id >> 56, 3u);
	EXPECT_EQ(u_idtab_get(id, 3), &objects[0]);
	u_idtab_del(id);
	EXPECT_EQ(u_idtab_get(id, 3), nullptr);
}

TEST(Idtab, IdFitsIntoAPointerAndIsNeverNull)
{
	uint64_t id = u_idtab_add(255, &objects[0]);
	void *handle = (void *)(uintptr_t)id;

	EXPECT_NE(handle, nullptr);
	EXPECT_EQ((uint64_t)(uintptr_t)handle, id);
	EXPECT_EQ(u_idtab_get((uint64_t)(uintptr_t)handle, 255), &objects[0]);
	u_idtab_del(id);
}

TEST(Idtab, RefusesTypeZeroAndNull)
{
	EXPECT_EQ(u_idtab_add(0, &objects[0]), 0u);
	EXPECT_EQ(u_idtab_add(1, nullptr), 0u);
}

TEST(Idtab, RefusesWrongType)
{
	uint64_t id = u_idtab_add(3, &objects[0]);

	EXPECT_EQ(u_idtab_get(id, 4), nullptr);
	EXPECT_EQ(u_idtab_get((id & ~(UINT64_C(0xff) << 56)) | UINT64_C(4) << 56, 4), nullptr);
	u_idtab_del(id);
}

TEST(Idtab, RefusesInventedIds)
{
	uint64_t id = u_idtab_add(3, &objects[0]);

	for (int bit = 0; bit < 64; bit++) {
		uint64_t forged = id ^ UINT64_C(1) << bit;

		EXPECT_EQ(u_idtab_get(forged, (uint8_t)(forged >> 56)), nullptr) << bit;
		u_idtab_del(forged);
	}
	EXPECT_EQ(u_idtab_get(0, 1), nullptr);
	EXPECT_EQ(u_idtab_get(UINT64_MAX, 255), nullptr);
	u_idtab_del(0);
	u_idtab_del(UINT64_MAX);
	EXPECT_EQ(u_idtab_get(id, 3), &objects[0]);
	u_idtab_del(id);
}

TEST(Idtab, StaleIdStaysRefusedWhenTheSlotIsUsedAgain)
{
	uint64_t stale = u_idtab_add(3, &objects[0]);
	uint64_t id;
	int rounds = 0;

	u_idtab_del(stale);
	do {
		id = u_idtab_add(3, &objects[1]);
		ASSERT_NE(id, stale);
		u_idtab_del(id);
		ASSERT_LT(++rounds, 1 << 20);
	} while ((uint32_t)id != (uint32_t)stale);
	EXPECT_EQ(u_idtab_get(stale, 3), nullptr);
	u_idtab_del(stale);
	EXPECT_GE(rounds, 256) << "slots are reused first in, first out";
}

/* However few slots the live ids leave in the existing chunks. */
TEST(Idtab, CrowdedTableReusesSlotsSlowlyToo)
{
	std::vector<uint64_t> held;
	uint64_t first, id;

	for (uint32_t i = 0; i < 1024u - 8; i++)
		held.push_back(u_idtab_add(3, &objects[0]));
	first = u_idtab_add(3, &objects[1]);
	u_idtab_del(first);
	for (int i = 0; i < 256; i++) {
		id = u_idtab_add(3, &objects[2]);
		EXPECT_NE((uint32_t)id, (uint32_t)first) << i;
		u_idtab_del(id);
	}
	for (uint64_t each : held)
		u_idtab_del(each);
}

TEST(Idtab, DeletingTwiceIsHarmless)
{
	uint64_t id = u_idtab_add(3, &objects[0]);
	uint64_t a, b;

	u_idtab_del(id);
	u_idtab_del(id);
	a = u_idtab_add(3, &objects[1]);
	b = u_idtab_add(3, &objects[2]);
	EXPECT_NE((uint32_t)a, (uint32_t)b);
	EXPECT_EQ(u_idtab_get(a, 3), &objects[1]);
	EXPECT_EQ(u_idtab_get(b, 3), &objects[2]);
	u_idtab_del(a);
	u_idtab_del(b);
}

TEST(Idtab, FullTableAnswersZeroAndRecovers)
{
	std::vector<uint64_t> ids;
	uint64_t id;

	while ((id = u_idtab_add(9, &objects[0])) != 0) {
		ids.push_back(id);
		ASSERT_LE(ids.size(), (size_t)U_IDTAB_SLOTS - 1);
	}
	EXPECT_EQ(ids.size(), (size_t)U_IDTAB_SLOTS - 1);
	u_idtab_del(ids.back());
	id = u_idtab_add(9, &objects[1]);
	EXPECT_NE(id, 0u);
	EXPECT_NE(id, ids.back());
	EXPECT_EQ(u_idtab_get(ids.back(), 9), nullptr);
	ids.back() = id;
	for (uint64_t each : ids)
		u_idtab_del(each);
}

/* Readers race with adds and deletes: an id gives its own object or nothing. */
TEST(Idtab, Threads)
{
	const int writers = 3, rounds = 20000;
	std::atomic<uint64_t> published[writers] = {};
	std::atomic<int> running{ writers };
	std::atomic<int> wrong{ 0 };
	std::vector<std::thread> threads;

	for (int w = 0; w < writers; w++)
		threads.emplace_back([&, w] {
			for (int i = 0; i < rounds; i++) {
				uint64_t id = u_idtab_add((uint8_t)(w + 1), &objects[w]);

				published[w] = id;
				if (u_idtab_get(id, (uint8_t)(w + 1)) != &objects[w])
					wrong++;
				u_idtab_del(id);
				if (u_idtab_get(id, (uint8_t)(w + 1)) != nullptr)
					wrong++;
			}
			running--;
		});
	threads.emplace_back([&] {
		while (running > 0) {
			for (int w = 0; w < writers; w++) {
				void *got = u_idtab_get(published[w], (uint8_t)(w + 1));

				if (got != nullptr && got != &objects[w])
					wrong++;
			}
		}
	});
	for (auto &thread : threads)
		thread.join();
	EXPECT_EQ(wrong, 0);
}
