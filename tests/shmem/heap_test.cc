// SPDX-License-Identifier: BSD-2-Clause The allocator of the symmetric heap: blocks never overlap,
// nothing is lost, equal calls return equal offsets.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

extern "C" {
#include "osh_heap.h"
}

namespace {

struct Heap {
	explicit Heap(size_t bytes) : h(osh_heap_create(bytes)) {}
	~Heap() { osh_heap_destroy(h); }
	Heap(const Heap &) = delete;
	struct osh_heap *h;
};

TEST(Heap, AWholeHeapIsOnePiece)
{
	Heap heap(1 << 20);

	EXPECT_EQ(osh_heap_longest(heap.h), 1u << 20);
	EXPECT_EQ(osh_heap_alloc(heap.h, 1 << 20, 64), 0u);
	EXPECT_EQ(osh_heap_alloc(heap.h, 1, 64), OSH_HEAP_NONE);
	EXPECT_TRUE(osh_heap_free(heap.h, 0));
	EXPECT_EQ(osh_heap_longest(heap.h), 1u << 20);
}

TEST(Heap, WhatCannotBeIsRefused)
{
	Heap heap(65536);

	EXPECT_EQ(osh_heap_alloc(heap.h, 0, 64), OSH_HEAP_NONE);
	EXPECT_EQ(osh_heap_alloc(heap.h, 65537, 64), OSH_HEAP_NONE);
	EXPECT_EQ(osh_heap_alloc(heap.h, SIZE_MAX, 64), OSH_HEAP_NONE);
	EXPECT_EQ(osh_heap_alloc(heap.h, 64, size_t(1) << 40), OSH_HEAP_NONE);
	EXPECT_FALSE(osh_heap_free(heap.h, 0));
	EXPECT_FALSE(osh_heap_free(heap.h, 65536));
	EXPECT_FALSE(osh_heap_free(heap.h, SIZE_MAX));
	EXPECT_EQ(osh_heap_length(heap.h, 128), 0u);
	EXPECT_FALSE(osh_heap_resize(heap.h, 64, 64));
	size_t at = osh_heap_alloc(heap.h, 100, 64);
	EXPECT_FALSE(osh_heap_free(heap.h, at + 64));
	EXPECT_FALSE(osh_heap_free(heap.h, at + 1));
	EXPECT_TRUE(osh_heap_free(heap.h, at));
	EXPECT_FALSE(osh_heap_free(heap.h, at));
}

TEST(Heap, AnEmptyRegionHasNothing)
{
	Heap heap(0);

	EXPECT_EQ(osh_heap_alloc(heap.h, 1, 64), OSH_HEAP_NONE);
	EXPECT_EQ(osh_heap_longest(heap.h), 0u);
}

TEST(Heap, AlignmentsUpToAMebibyte)
{
	Heap heap(8 << 20);

	for (size_t a = 8; a <= 1 << 20; a *= 2) {
		size_t at = osh_heap_alloc(heap.h, 100, a);
		ASSERT_NE(at, OSH_HEAP_NONE) << a;
		EXPECT_EQ(at % a, 0u);
	}
}

TEST(Heap, ARegionThatIsAddedHasBlocksOfItsOwn)
{
	constexpr size_t kSize = 4096, kNext = 1 << 20;
	Heap heap(kSize);

	ASSERT_EQ(osh_heap_alloc(heap.h, kSize, 64), 0u);
	ASSERT_TRUE(osh_heap_make_room(heap.h, kNext + 2 * kSize));
	EXPECT_EQ(osh_heap_total(heap.h), kSize) << "only made room";
	EXPECT_EQ(osh_heap_alloc(heap.h, 64, 64), OSH_HEAP_NONE);
	osh_heap_add(heap.h, kNext, 2 * kSize);
	EXPECT_EQ(osh_heap_end(heap.h), kNext + 2 * kSize);
	EXPECT_EQ(osh_heap_total(heap.h), 3 * kSize);
	EXPECT_EQ(osh_heap_longest(heap.h), 2 * kSize);
	EXPECT_EQ(osh_heap_alloc(heap.h, 2 * kSize + 1, 64), OSH_HEAP_NONE);
	EXPECT_EQ(osh_heap_alloc(heap.h, 2 * kSize, 64), kNext);
	EXPECT_TRUE(osh_heap_inside(heap.h, kNext, 2 * kSize));
	EXPECT_FALSE(osh_heap_inside(heap.h, kSize, 1)) << "between the regions";
	EXPECT_FALSE(osh_heap_free(heap.h, kSize));
	EXPECT_EQ(osh_heap_used(heap.h), 3 * kSize);
}

TEST(Heap, RegionsThatTouchAreNotJoined)
{
	constexpr size_t kSize = 4096;
	Heap heap(kSize);

	for (size_t at = kSize; at < 4 * kSize; at += kSize) {
		ASSERT_TRUE(osh_heap_make_room(heap.h, at + kSize));
		osh_heap_add(heap.h, at, kSize);
	}
	for (size_t i = 0; i < 4; i++)
		EXPECT_NE(osh_heap_alloc(heap.h, kSize, 64), OSH_HEAP_NONE);
	EXPECT_EQ(osh_heap_alloc(heap.h, 64, 64), OSH_HEAP_NONE);
	for (size_t at : { 2, 1, 3, 0 })
		EXPECT_TRUE(osh_heap_free(heap.h, at * kSize));
	EXPECT_EQ(osh_heap_longest(heap.h), kSize);
	EXPECT_EQ(osh_heap_alloc(heap.h, kSize + 64, 64), OSH_HEAP_NONE);
	size_t a = osh_heap_alloc(heap.h, 64, 64);
	EXPECT_FALSE(osh_heap_resize(heap.h, a, kSize + 64));
	EXPECT_TRUE(osh_heap_resize(heap.h, a, kSize));
}

TEST(Heap, HeapsThatGrewAlikeGiveEqualOffsets)
{
	constexpr size_t kMore = 1 << 18;
	Heap a(1 << 16), b(1 << 16);
	std::mt19937 random(7);
	std::vector<size_t> held;
	size_t grown = 0;

	for (int i = 0; i < 20000; i++) {
		if (!held.empty() && random() % 3 == 0) {
			size_t k = random() % held.size();

			EXPECT_TRUE(osh_heap_free(a.h, held[k]));
			EXPECT_TRUE(osh_heap_free(b.h, held[k]));
			held.erase(held.begin() + static_cast<long>(k));
			continue;
		}
		size_t n = 1 + random() % 20000, align = size_t(64) << random() % 6;
		size_t at = osh_heap_alloc(a.h, n, align);

		ASSERT_EQ(osh_heap_alloc(b.h, n, align), at);
		if (at != OSH_HEAP_NONE) {
			ASSERT_EQ(at % align, 0u);
			held.push_back(at);
		} else if (grown++ < 6) {
			for (struct osh_heap *h : { a.h, b.h }) {
				size_t end = osh_heap_end(h);

				ASSERT_TRUE(osh_heap_make_room(h, end + 65536 + kMore));
				osh_heap_add(h, end + 65536, kMore);
			}
		}
	}
	EXPECT_GE(grown, 6u);
	for (size_t at : held)
		EXPECT_TRUE(osh_heap_free(a.h, at));
	EXPECT_EQ(osh_heap_used(a.h), 0u);
	EXPECT_EQ(osh_heap_longest(a.h), kMore);
}

TEST(Heap, APieceGrowsWhereThereIsRoom)
{
	Heap heap(4096);
	size_t a = osh_heap_alloc(heap.h, 64, 64), b = osh_heap_alloc(heap.h, 64, 64);

	EXPECT_FALSE(osh_heap_resize(heap.h, a, 128));
	EXPECT_EQ(osh_heap_length(heap.h, a), 64u);
	EXPECT_TRUE(osh_heap_resize(heap.h, b, 4096 - 64));
	EXPECT_EQ(osh_heap_longest(heap.h), 0u);
	EXPECT_TRUE(osh_heap_resize(heap.h, b, 65));
	EXPECT_EQ(osh_heap_length(heap.h, b), 128u);
	EXPECT_EQ(osh_heap_used(heap.h), 192u);
	EXPECT_TRUE(osh_heap_inside(heap.h, b + 127, 1));
	EXPECT_FALSE(osh_heap_inside(heap.h, b + 127, 2));
	EXPECT_FALSE(osh_heap_inside(heap.h, b + 128, 1));
}

// Random calls, checked against a map of what is in use, on two heaps at once.
TEST(Heap, RandomCallsKeepThePiecesApart)
{
	constexpr size_t kBytes = 1 << 20;
	std::mt19937 random(1);
	Heap one(kBytes), two(kBytes);
	std::map<size_t, size_t> used;

	for (int i = 0; i < 100000; i++) {
		if (random() % 2 == 0 || used.empty()) {
			size_t n = 1 + (random() % 64 == 0 ? random() % 100000 : random() % 3000);
			size_t alignment = size_t(8) << (random() % 10);
			size_t at = osh_heap_alloc(one.h, n, alignment);
			ASSERT_EQ(osh_heap_alloc(two.h, n, alignment), at);
			if (at == OSH_HEAP_NONE)
				continue;
			ASSERT_EQ(at % alignment, 0u);
			ASSERT_LE(at + n, kBytes);
			auto next = used.lower_bound(at);
			if (next != used.end()) {
				ASSERT_LE(at + n, next->first);
			}
			if (next != used.begin()) {
				ASSERT_LE(std::prev(next)->first + std::prev(next)->second, at);
			}
			used[at] = osh_heap_length(one.h, at);
			ASSERT_GE(used[at], n);
		} else {
			auto it = used.begin();
			std::advance(it, random() % used.size());
			if (random() % 3 == 0) {
				size_t n = 1 + random() % 5000;
				bool done = osh_heap_resize(one.h, it->first, n);
				ASSERT_EQ(osh_heap_resize(two.h, it->first, n), done);
				it->second = osh_heap_length(one.h, it->first);
				ASSERT_TRUE(!done || it->second >= n);
			} else {
				ASSERT_TRUE(osh_heap_free(one.h, it->first));
				ASSERT_TRUE(osh_heap_free(two.h, it->first));
				used.erase(it);
			}
		}
	}
	for (auto &[at, n] : used)
		ASSERT_TRUE(osh_heap_free(one.h, at));
	EXPECT_EQ(osh_heap_used(one.h), 0u);
	EXPECT_EQ(osh_heap_longest(one.h), kBytes);
}

} // namespace
