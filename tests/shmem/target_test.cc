// SPDX-License-Identifier: BSD-2-Clause
// From an address in an extent of the heap to the place that a far PE has for it, with the test as the far PE.
#include <gtest/gtest.h>

#include <vector>

#define _Noreturn [[noreturn]] // which C++ does not have
extern "C" {
#include "osh_target.h"
}

namespace {

constexpr uint64_t kHeap = 0x10000, kExtent = 0x900000; // of the far PE
constexpr VIP_MEM_HANDLE kHeapHandle = 7, kExtentHandle = 11;

struct Get {
	const struct osh_ctx *ctx;
	uint64_t remote;
	VIP_MEM_HANDLE handle;
};
std::vector<Get> gets;
uint8_t heap[4096], extent[4096];

} // namespace

extern "C" void __wrap_osh_far_get(const char *, struct osh_ctx *ctx, const struct osh_target *t,
				   void *dest, size_t n, bool)
{
	ASSERT_EQ(n, sizeof(osh_remote));
	gets.push_back({ ctx, t->remote, t->handle });
	*static_cast<osh_remote *>(dest) = { kExtent, kExtentHandle };
}

TEST(Target, AFarPeIsAskedOnceAndByTheContextOfTheOperation)
{
	static osh_peer peers[2];
	static osh_peer_extent extents[2];
	struct osh_ctx one = {}, other = {};
	struct osh_target t;

	osh_pe.n = 2;
	osh_pe.peers = peers;
	osh_pe.segments = OSH_DATA;
	osh_pe.seg[OSH_HEAP] = { heap, sizeof(heap), 1 };
	osh_pe.seg[OSH_EXTENT] = { extent, sizeof(extent), 2 };
	osh_pe.extents_at = 512;
	osh_pe.extent[0].peers = extents;
	osh_pe.extents = 1;
	peers[1].seg[OSH_HEAP] = { kHeap, kHeapHandle };
	EXPECT_EQ(osh_target("test", &one, heap + 16, 8, 1, &t), nullptr);
	EXPECT_EQ(t.remote, kHeap + 16);
	EXPECT_TRUE(gets.empty()) << "the place of the heap is known from the start";
	for (struct osh_ctx *ctx : { &one, &other }) {
		EXPECT_EQ(osh_target("test", ctx, extent + 8, 8, 1, &t), nullptr);
		EXPECT_EQ(t.pe, 1);
		EXPECT_EQ(t.remote, kExtent + 8);
		EXPECT_EQ(t.handle, kExtentHandle);
	}
	ASSERT_EQ(gets.size(), 1u);
	EXPECT_EQ(gets[0].ctx, &one) << "another context may have no connection to that PE";
	EXPECT_EQ(gets[0].remote, kHeap + 512 + offsetof(osh_extent_table, at));
	EXPECT_EQ(gets[0].handle, kHeapHandle);
}
