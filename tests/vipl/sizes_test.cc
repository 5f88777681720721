/* SPDX-License-Identifier: BSD-2-Clause */
/* Every size, operation, level and segmentation, with verified content. */
#include "harness.h"

#include <numeric>

using namespace conf;

namespace {

enum Op { SEND, SEND_IMMEDIATE, WRITE, WRITE_IMMEDIATE, READ, OPS };
const char *const kOps[] = { "send", "send with immediate data", "RDMA write",
			     "RDMA write with immediate data", "RDMA read" };

/* Cuts `length` bytes at `p` into `count` segments of uneven lengths, some empty. */
std::vector<Seg> cut(char *p, size_t length, unsigned count, VIP_MEM_HANDLE h)
{
	std::vector<Seg> segs;
	for (unsigned i = 0; i < count; i++) {
		size_t n = i + 1 == count
				   ? length
				   : length / (count - i) + (i % 3 == 0 ? length / (4 * count) : 0);
		if (n > length)
			n = length;
		if (i % 5 == 4 && i + 1 != count)
			n = n < 3 ? n : 3;
		segs.push_back({ p, h, n });
		p += n;
		length -= n;
	}
	return segs;
}

/* One transfer of `length` bytes between `near` and `far`, begun by side a, checked byte for byte. */
void transfer(Link &l, Op op, Mem &near, Mem &far, size_t length, unsigned segs_a, unsigned segs_b,
	      uint64_t seed)
{
	char *from = op == READ ? far.data : near.data, *to = op == READ ? near.data : far.data;
	fill(from, length, seed);
	if (length)
		memset(to, 0, length);
	std::vector<Seg> mine = cut(near.data, length, segs_a, near.h);
	VIP_DESCRIPTOR *recv = nullptr, *desc = nullptr;
	VIP_UINT16 imm = op == SEND_IMMEDIATE || op == WRITE_IMMEDIATE ? VIP_CONTROL_IMMEDIATE : 0;
	if (op == SEND || op == SEND_IMMEDIATE) {
		recv = make(l.b, 0, cut(far.data, length, segs_b, far.h));
		l.post_recv_b(recv);
		desc = l.send_a(mine, imm, 99);
	} else if (op == READ) {
		desc = l.read_a(mine, { far.data, far.h });
	} else {
		if (imm)
			recv = l.recv_b(0);
		desc = l.write_a(mine, { far.data, far.h }, imm, 99);
	}
	static const VIP_UINT32 done[] = { VIP_STATUS_OP_SEND, VIP_STATUS_OP_SEND,
					   VIP_STATUS_OP_RDMA_WRITE, VIP_STATUS_OP_RDMA_WRITE,
					   VIP_STATUS_OP_RDMA_READ };
	ASSERT_EQ(desc, take_send(*l.va, 60000));
	ASSERT_TRUE(has_status(desc, done[op]));
	if (!recv && op == WRITE)
		ASSERT_TRUE(l.works());
	if (recv) {
		ASSERT_EQ(recv, take_recv(*l.vb, 60000));
		ASSERT_TRUE(
			has_status(recv, (op == WRITE_IMMEDIATE ? VIP_STATUS_OP_REMOTE_RDMA_WRITE
								: VIP_STATUS_OP_RECEIVE) |
						 (imm ? VIP_STATUS_IMMEDIATE : 0)));
		ASSERT_EQ(length, recv->CS.Length);
	}
	ASSERT_TRUE(same(to, length, seed));
}

/* As transfer(), with memory of its own at an offset, between guards. */
void transfer_once(Link &l, Op op, size_t length, unsigned segs_a, unsigned segs_b, size_t offset,
		   uint64_t seed)
{
	Mem near(l.na, length ? length : 1, false, false, nullptr, offset);
	Mem far(l.nb, length ? length : 1, true, true, nullptr, offset ? 64 - offset % 64 : 0);
	transfer(l, op, near, far, length, segs_a, segs_b, seed);
	ASSERT_TRUE(same(op == READ ? far.data : near.data, length, seed))
		<< "the source is not changed";
}

/* Does this process run its n-th combination?  VIPL_TEST_SIZES=K/N is the K-th of N shares; unset: all. */
bool is_in_share(uint64_t n)
{
	static const char *text = getenv("VIPL_TEST_SIZES");
	unsigned share = 0, shares = 1;

	if (text && (sscanf(text, "%u/%u", &share, &shares) != 2 || share >= shares))
		abort();
	return n % shares == share;
}

void all_ops(const Level &level, size_t max_transfer, const std::vector<size_t> &sizes,
	     const std::vector<unsigned> &segs, const std::vector<size_t> &offsets)
{
	LinkOptions o;
	o.max_transfer = max_transfer;
	Link l(level.value, o);
	uint64_t seed = 1;
	for (int op = 0; op < OPS; op++) {
		if (op == READ && !offers_read(level))
			continue;
		for (size_t size : sizes)
			for (unsigned count : segs)
				for (size_t offset : offsets) {
					if (!is_in_share(seed++))
						continue;
					RULE(std::string("VIPL 4.1: ") + kOps[op] + " of " +
					     std::to_string(size) + " bytes in " +
					     std::to_string(count) + " segments, " + level.name);
					transfer_once(l, static_cast<Op>(op), size, count,
						      (count * 7) % 252 + 1, offset, seed);
					l.a.used = l.b.used = 0;
					if (::testing::Test::HasFatalFailure())
						return;
				}
	}
}

struct Sizes : ::testing::TestWithParam<int> {};

} // namespace

TEST_P(Sizes, Small)
{
	const std::vector<size_t> sizes = { 0,	 1,   2,   7,	8,   15,  16,  31,  32,	 39,
					    40,	 41,  47,  48,	49,  55,  56,  57,  63,	 64,
					    65,	 95,  96,  97,	111, 112, 113, 127, 128, 129,
					    175, 176, 177, 191, 192, 193, 239, 240, 241, 255,
					    256, 257, 511, 512, 513, 1000 };
	all_ops(levels()[GetParam()], 1u << 20, sizes, { 1, 2, 5 }, { 0, 1, 31 });
}

TEST_P(Sizes, Pages)
{
	all_ops(levels()[GetParam()], 1u << 20,
		{ 2047,	 2048,	2049,  4095,  4096,  4097,  8191,  8192,  8193,	  16383,  16384,
		  16385, 32767, 32768, 32769, 65472, 65535, 65536, 65537, 131071, 131072, 131073 },
		{ 1, 3, 252 }, { 0, 13 });
}

TEST_P(Sizes, Megabyte)
{
	size_t mib = 1u << 20;
	all_ops(levels()[GetParam()], 2 * mib, { mib - 1, mib, mib + 1 }, { 1, 2, 64, 252 },
		{ 0, 5 });
}

TEST_P(Sizes, Segments)
{
	std::vector<unsigned> counts(252);
	std::iota(counts.begin(), counts.end(), 1u);
	all_ops(levels()[GetParam()], 1u << 20, { 10007 }, counts, { 3 });
}

TEST_P(Sizes, ExactlyTheMaximumOfTheVi)
{
	for (size_t max : { 1, 63, 64, 65, 100, 4095, 32768, 65536, 100000 }) {
		all_ops(levels()[GetParam()], max, { max, max - 1 }, { 1, 2 }, { 0 });
	}
}

INSTANTIATE_TEST_SUITE_P(Level, Sizes, ::testing::Values(0, 1, 2));

/* The maximum transfer size of the NIC; takes some seconds and 2 GiB of memory. */
TEST(SlowSizes, MaxTransferSize)
{
	size_t max = nic(0).attrs.MaxTransferSize;
	Mem near(nic(0), max, false, false, nullptr, 1), far(nic(1), max, true, true, nullptr, 63);
	uint64_t seed = 42;
	for (auto &level : levels())
		for (int op : { SEND, WRITE, READ }) {
			if (op == READ && !offers_read(level))
				continue;
			RULE(std::string("VIPL 4.3: ") + kOps[op] + " of MaxTransferSize, " +
			     level.name);
			LinkOptions o;
			o.max_transfer = max;
			Link l(level.value, o);
			transfer(l, static_cast<Op>(op), near, far, max, op == SEND ? 252 : 1, 3,
				 seed++);
			if (HasFatalFailure())
				return;
		}
}
