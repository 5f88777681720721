/* SPDX-License-Identifier: BSD-2-Clause */
/* Atomic operations on memory of the other end. */
#include "harness.h"

#include <atomic>

using namespace conf;

namespace {

using Word = uint64_t;

VIPX_ATOMIC_DESCRIPTOR *room(Arena &arena)
{
	static_assert(sizeof(VIPX_ATOMIC_DESCRIPTOR) == 128, "two VIP_DESCRIPTOR");
	auto *d = reinterpret_cast<VIPX_ATOMIC_DESCRIPTOR *>(arena.desc(4));
	memset(d, 0, sizeof(*d));
	return d;
}

/* An operation of side a; its old value is stored at `result` (NULL: nowhere). */
VIP_DESCRIPTOR *operation(Arena &arena, VIPX_ATOMIC_OP op, size_t size, const Remote &to,
			  Word operand, Word compare, void *result)
{
	VIPX_ATOMIC_DESCRIPTOR *d = room(arena);
	d->CS.Control = VIPX_CONTROL_OP_ATOMIC;
	d->CS.ImmediateData = op;
	d->CS.Length = static_cast<VIP_UINT32>(size);
	d->CS.SegCount = result ? 3 : 2;
	d->Remote.Data.Address = to.p;
	d->Remote.Handle = to.h;
	d->Atomic.Operand = operand;
	d->Atomic.Compare = compare;
	d->Result.Data.Address = result;
	d->Result.Handle = arena.mem.h;
	d->Result.Length = static_cast<VIP_UINT32>(size);
	return reinterpret_cast<VIP_DESCRIPTOR *>(d);
}

struct Case {
	VIPX_ATOMIC_OP op;
	const char *name;
	Word operand, compare;
	Word (*then)(Word old, Word operand, Word compare);
};

const Case kCases[] = {
	{ VIPX_ATOMIC_FETCH, "fetch", 7, 8, [](Word old, Word, Word) { return old; } },
	{ VIPX_ATOMIC_SWAP, "swap", ~0x1234567890ull, 0, [](Word, Word o, Word) { return o; } },
	{ VIPX_ATOMIC_COMPARE_SWAP, "compare and swap, equal", 99, 0xf123456789abcdefull,
	  [](Word, Word o, Word) { return o; } },
	{ VIPX_ATOMIC_COMPARE_SWAP, "compare and swap, other", 99, 0x123456789abcdeeull,
	  [](Word old, Word, Word) { return old; } },
	{ VIPX_ATOMIC_ADD, "add", 0xfffffffff0000001ull, 0,
	  [](Word old, Word o, Word) { return old + o; } },
	{ VIPX_ATOMIC_AND, "and", 0xff00ff00ff00ff00ull, 0,
	  [](Word old, Word o, Word) { return old & o; } },
	{ VIPX_ATOMIC_OR, "or", 0x00ff00ff00ff00ffull, 0,
	  [](Word old, Word o, Word) { return old | o; } },
	{ VIPX_ATOMIC_XOR, "xor", 0x0ff00ff00ff00ff0ull, 0,
	  [](Word old, Word o, Word) { return old ^ o; } },
};
constexpr Word kOld = 0xf123456789abcdefull;

/* Memory of side b that allows atomic operations. */
struct Window {
	explicit Window(Link &l, size_t bytes = 4096) : nic(l.nb)
	{
		VIP_MEM_ATTRIBUTES attrs = { l.tag_b(), VIP_TRUE, VIP_TRUE };
		VIP_PVOID at = nullptr;
		EXPECT_RC(VIP_SUCCESS, VipxAllocMem(nic.h, bytes, &attrs, &at, &h));
		p = static_cast<char *>(at);
	}
	~Window() { EXPECT_RC(VIP_SUCCESS, VipxFreeMem(nic.h, p, h)); }
	Window(const Window &) = delete;
	Nic &nic;
	char *p = nullptr;
	VIP_MEM_HANDLE h = 0;
};

std::vector<Level> reliable_levels()
{
	std::vector<Level> some;
	for (auto &level : levels())
		if (offers_read(level))
			some.push_back(level);
	return some;
}

constexpr VIP_UINT32 kDone = VIPX_STATUS_OP_ATOMIC;

} // namespace

TEST(Atomic, EveryOperation)
{
	for (auto &level : reliable_levels())
		for (bool window : { false, true })
			for (size_t size : { 4, 8 })
				for (auto &c : kCases) {
					RULE(std::string("vipl_ext VIPX_CONTROL_OP_ATOMIC: ") +
					     c.name + ", " + std::to_string(size) + " bytes, " +
					     level.name + (window ? ", window memory" : ""));
					Link l(level.value);
					Window w(l);
					Mem plain(l.nb, 4096, true, true);
					char *at = window ? w.p + 64 : plain.data + 64;
					Word got = 0, now = c.then(kOld, c.operand, c.compare),
					     left = kOld;
					/* The bytes next to the operand stay. */
					memcpy(&left, &now, size);
					memcpy(at, &kOld, 8);
					char *result = l.a.bytes(8);
					memset(result, 0, 8);
					VIP_DESCRIPTOR *d = operation(
						l.a, c.op, size, { at, window ? w.h : plain.h },
						c.operand, c.compare, result);
					if (size == 4 && c.op == VIPX_ATOMIC_COMPARE_SWAP &&
					    (c.compare & 0xffffffff) != (kOld & 0xffffffff))
						left = kOld;
					l.post_a(d);
					ASSERT_EQ(d, take_send(*l.va));
					EXPECT_TRUE(has_status(d, kDone));
					memcpy(&got, result, 8);
					EXPECT_EQ(size == 4 ? kOld & 0xffffffff : kOld, got);
					memcpy(&now, at, 8);
					EXPECT_EQ(left, now);
					EXPECT_TRUE(l.works());
				}
}

TEST(Atomic, WithoutResult)
{
	for (auto &level : reliable_levels()) {
		RULE(std::string("vipl_ext VIPX_CONTROL_OP_ATOMIC: complete when executed, ") +
		     level.name);
		Link l(level.value);
		Window w(l);
		Word sum = 0;
		for (Word n = 1; n < 200; n++) {
			VIP_DESCRIPTOR *d =
				operation(l.a, VIPX_ATOMIC_ADD, 8, { w.p, w.h }, n, 0, nullptr);
			l.post_a(d);
			ASSERT_EQ(d, take_send(*l.va));
			EXPECT_TRUE(has_status(d, kDone));
			sum += n;
			EXPECT_EQ(sum,
				  __atomic_load_n(reinterpret_cast<Word *>(w.p), __ATOMIC_RELAXED));
		}
	}
}

TEST(Atomic, ManyUnderWay)
{
	for (auto &level : reliable_levels()) {
		RULE(std::string("vipl_ext VIPX_CONTROL_OP_ATOMIC: many under way, in order, ") +
		     level.name);
		constexpr size_t kMany = 500;
		Link l(level.value);
		Window w(l);
		std::vector<char *> results;
		Word start;
		memcpy(&start, w.p, 8);
		for (size_t i = 0; i < kMany; i++) {
			results.push_back(l.a.bytes(8));
			l.post_a(
				operation(l.a, VIPX_ATOMIC_ADD, 8, { w.p, w.h }, 3, 0, results[i]));
			/* Reads count in the same limit. */
			if (i % 7 == 0)
				l.read_a({ l.seg_a(8) }, { w.p, w.h });
		}
		for (size_t i = 0; i < kMany; i++) {
			VIP_DESCRIPTOR *d = take_send(*l.va);
			Word old;
			ASSERT_NE(nullptr, d);
			EXPECT_TRUE(has_status(d, kDone));
			memcpy(&old, results[i], 8);
			EXPECT_EQ(start + 3 * i, old);
			if (i % 7 == 0) {
				d = take_send(*l.va);
				ASSERT_TRUE(has_status(d, VIP_STATUS_OP_RDMA_READ));
				memcpy(&old, d->DS[1].Local.Data.Address, 8);
				EXPECT_LE(start + 3 * (i + 1), old);
			}
		}
		EXPECT_TRUE(l.works());
	}
}

TEST(Atomic, BehindEarlierWrites)
{
	for (auto &level : reliable_levels())
		for (size_t length : { 8, 3000, 100000 }) {
			RULE(std::string(
				     "vipl_ext VIPX_CONTROL_OP_ATOMIC: executed behind earlier writes, ") +
			     std::to_string(length) + " bytes, " + level.name);
			Link l(level.value);
			Window w(l, 128u << 10);
			char *result = l.a.bytes(8);
			size_t used = l.a.used;
			/* Soon the writes are stores, if memory can be granted. */
			for (Word turn = 1; turn < 100; turn++) {
				Seg from = l.seg_a(length);
				memset(from.p, static_cast<int>(turn), length);
				char *last = w.p + (length & ~7ul) - 8;
				l.write_a({ from }, { w.p, w.h });
				l.post_a(operation(l.a, VIPX_ATOMIC_SWAP, 8, { last, w.h }, 0, 0,
						   result));
				l.write_a({ { from.p, from.h, 8 } }, { w.p, w.h });
				ASSERT_TRUE(has_status(take_send(*l.va), VIP_STATUS_OP_RDMA_WRITE));
				ASSERT_TRUE(has_status(take_send(*l.va), kDone));
				ASSERT_TRUE(has_status(take_send(*l.va), VIP_STATUS_OP_RDMA_WRITE));
				Word want, old;
				memset(&want, static_cast<int>(turn), 8);
				memcpy(&old, result, 8);
				EXPECT_EQ(want, old) << turn;
				l.a.used = used;
			}
		}
}

/* Several VIs, threads of the owner, and, where it can be, a mapping: no operation is lost. */
TEST(Atomic, Count)
{
	for (auto &level : reliable_levels())
		for (size_t size : { 4, 8 }) {
			RULE(std::string(
				     "vipl_ext VIPX_CONTROL_OP_ATOMIC: all who count are counted, ") +
			     std::to_string(size) + " bytes, " + level.name);
			constexpr int kVis = 4, kEach = 300;
			Link first(level.value);
			Window w(first);
			std::vector<std::unique_ptr<Link>> links;
			std::vector<std::thread> threads;
			std::atomic<uint64_t> others{ 0 };
			std::atomic<bool> stop{ false };
			auto count = [&](void *p) {
				while (!stop) {
					if (size == 4)
						__atomic_fetch_add(static_cast<uint32_t *>(p), 1,
								   __ATOMIC_RELAXED);
					else
						__atomic_fetch_add(static_cast<Word *>(p), 1,
								   __ATOMIC_RELAXED);
					others++;
				}
			};
			void *mapped = nullptr;
			VIP_RETURN rc = VipxMapRemote(*first.va, reinterpret_cast<uintptr_t>(w.p),
						      8, w.h, &mapped);
			EXPECT_RC(hops() ? VIP_ERROR_NOT_SUPPORTED : VIP_SUCCESS, rc);
			for (int i = 0; i < kVis; i++)
				links.push_back(std::make_unique<Link>(level.value));
			std::thread local(count, w.p), near([&] {
				if (mapped)
					count(mapped);
			});
			for (auto &l : links)
				threads.emplace_back([&w, &l, size] {
					for (int i = 0; i < kEach; i++)
						l->post_a(operation(l->a, VIPX_ATOMIC_ADD, size,
								    { w.p, w.h }, 1, 0, nullptr));
					for (int i = 0; i < kEach; i++)
						EXPECT_TRUE(has_status(take_send(*l->va), kDone));
				});
			for (auto &t : threads)
				t.join();
			stop = true;
			local.join();
			near.join();
			Word sum = 0;
			memcpy(&sum, w.p, 8);
			EXPECT_EQ(size == 4 ? static_cast<uint32_t>(others + kVis * kEach)
					    : others + kVis * kEach,
				  sum);
		}
}

TEST(Atomic, ScatteredResult)
{
	RULE("vipl_ext VIPX_CONTROL_OP_ATOMIC: the old value is scattered over the segments");
	Link l(VIP_SERVICE_RELIABLE_DELIVERY);
	Window w(l);
	memcpy(w.p, &kOld, 8);
	char *result = l.a.bytes(32);
	auto *d = reinterpret_cast<VIPX_ATOMIC_DESCRIPTOR *>(
		operation(l.a, VIPX_ATOMIC_ADD, 8, { w.p, w.h }, 1, 0, result));
	VIP_DATA_SEGMENT *segs = &d->Result;
	segs[0].Length = 3;
	segs[1] = segs[0];
	segs[1].Data.Address = result + 8;
	segs[1].Length = 0;
	segs[2] = segs[0];
	segs[2].Data.Address = result + 16;
	segs[2].Length = 5;
	d->CS.SegCount = 5;
	l.post_a(reinterpret_cast<VIP_DESCRIPTOR *>(d));
	EXPECT_TRUE(has_status(take_send(*l.va), kDone));
	EXPECT_EQ(0, memcmp(result, &kOld, 3));
	EXPECT_EQ(0, memcmp(result + 16, reinterpret_cast<const char *>(&kOld) + 3, 5));
}

TEST(Atomic, MalformedDescriptors)
{
	struct Bad {
		const char *name;
		void (*spoil)(VIPX_ATOMIC_DESCRIPTOR *);
		VIP_UINT32 error;
	};
	const Bad kinds[] = {
		{ "no operation", [](VIPX_ATOMIC_DESCRIPTOR *d) { d->CS.ImmediateData = 0; },
		  VIP_STATUS_FORMAT_ERROR },
		{ "unknown operation", [](VIPX_ATOMIC_DESCRIPTOR *d) { d->CS.ImmediateData = 8; },
		  VIP_STATUS_FORMAT_ERROR },
		{ "2 bytes", [](VIPX_ATOMIC_DESCRIPTOR *d) { d->CS.Length = d->Result.Length = 2; },
		  VIP_STATUS_FORMAT_ERROR },
		{ "16 bytes",
		  [](VIPX_ATOMIC_DESCRIPTOR *d) { d->CS.Length = d->Result.Length = 16; },
		  VIP_STATUS_FORMAT_ERROR },
		{ "no bytes",
		  [](VIPX_ATOMIC_DESCRIPTOR *d) { d->CS.Length = d->Result.Length = 0; },
		  VIP_STATUS_FORMAT_ERROR },
		{ "no segments", [](VIPX_ATOMIC_DESCRIPTOR *d) { d->CS.SegCount = 0; },
		  VIP_STATUS_FORMAT_ERROR },
		{ "no operands", [](VIPX_ATOMIC_DESCRIPTOR *d) { d->CS.SegCount = 1; },
		  VIP_STATUS_FORMAT_ERROR },
		{ "immediate data",
		  [](VIPX_ATOMIC_DESCRIPTOR *d) { d->CS.Control |= VIP_CONTROL_IMMEDIATE; },
		  VIP_STATUS_FORMAT_ERROR },
		{ "reserved bits", [](VIPX_ATOMIC_DESCRIPTOR *d) { d->CS.Control |= 0x10; },
		  VIP_STATUS_FORMAT_ERROR },
		{ "not aligned", [](VIPX_ATOMIC_DESCRIPTOR *d) { d->Remote.Data.AddressBits += 4; },
		  VIP_STATUS_FORMAT_ERROR },
		{ "a fetch to nowhere",
		  [](VIPX_ATOMIC_DESCRIPTOR *d) {
			  d->CS.ImmediateData = VIPX_ATOMIC_FETCH;
			  d->CS.SegCount = 2;
		  },
		  VIP_STATUS_FORMAT_ERROR },
		{ "result too short", [](VIPX_ATOMIC_DESCRIPTOR *d) { d->Result.Length = 4; },
		  VIP_STATUS_LENGTH_ERROR },
		{ "result too long", [](VIPX_ATOMIC_DESCRIPTOR *d) { d->Result.Length = 9; },
		  VIP_STATUS_LENGTH_ERROR },
		{ "result not registered", [](VIPX_ATOMIC_DESCRIPTOR *d) { d->Result.Handle = 77; },
		  VIP_STATUS_PROTECTION_ERROR },
	};
	for (auto &level : levels())
		for (auto &bad : kinds) {
			RULE(std::string("vipl_ext VIPX_CONTROL_OP_ATOMIC: malformed, ") +
			     bad.name + ", " + level.name);
			Link l(level.value);
			Window w(l);
			VIP_DESCRIPTOR *d = operation(l.a, VIPX_ATOMIC_ADD, 8, { w.p, w.h }, 1, 0,
						      l.a.bytes(16));
			bad.spoil(reinterpret_cast<VIPX_ATOMIC_DESCRIPTOR *>(d));
			l.post_a(d);
			ASSERT_EQ(d, take_send(*l.va));
			EXPECT_TRUE(has_error(d, level.reliable() ? bad.error
								  : VIP_STATUS_FORMAT_ERROR));
			EXPECT_EQ(kDone, d->CS.Status & VIP_STATUS_OP_MASK);
			if (level.reliable())
				EXPECT_TRUE(l.broken());
			else
				EXPECT_TRUE(l.unbroken());
			EXPECT_EQ(0, w.p[0]);
		}
}

TEST(Atomic, UnreliableHasNone)
{
	RULE("vipl_ext VIPX_CONTROL_OP_ATOMIC: at levels of RDMAReadSupport only");
	Link l(VIP_SERVICE_UNRELIABLE);
	Window w(l);
	VIP_DESCRIPTOR *d = operation(l.a, VIPX_ATOMIC_ADD, 8, { w.p, w.h }, 1, 0, nullptr);
	l.post_a(d);
	ASSERT_EQ(d, take_send(*l.va));
	EXPECT_TRUE(has_error(d, VIP_STATUS_FORMAT_ERROR));
	EXPECT_TRUE(l.unbroken());
}

TEST(Atomic, RightsAreNeeded)
{
	const char *const missing[] = {
		"write, of the VI",    "read, of the VI", "write, of the memory",
		"read, of the memory", "the tag",	  "the range",
		"the handle",	       "nothing"
	};
	for (auto &level : reliable_levels())
		for (int lacks = 0; lacks < 8; lacks++) {
			RULE(std::string("vipl_ext VIPX_CONTROL_OP_ATOMIC: refused for want of ") +
			     missing[lacks] + ", " + level.name);
			LinkOptions o;
			o.with_ptags = true;
			o.enable_write = lacks != 0;
			o.enable_read = lacks != 1;
			Link l(level.value, o);
			Ptag other(l.nb);
			Mem m(l.nb, 4096, lacks != 2, lacks != 3, lacks == 4 ? other.h : l.tag_b());
			Word before;
			memcpy(&before, m.data, 8);
			VIP_DESCRIPTOR *d = operation(l.a, VIPX_ATOMIC_ADD, 8,
						      { lacks == 5 ? m.data + 4096 : m.data,
							lacks == 6 ? 0 : m.h },
						      1, 0, l.a.bytes(8));
			l.post_a(d);
			ASSERT_EQ(d, take_send(*l.va));
			Word after;
			memcpy(&after, m.data, 8);
			if (lacks == 7) {
				EXPECT_TRUE(has_status(d, kDone));
				EXPECT_EQ(before + 1, after);
				continue;
			}
			EXPECT_TRUE(has_error(d, VIP_STATUS_RDMA_PROT_ERROR));
			EXPECT_TRUE(l.nb.wait_event(VIP_ERROR_RDMAW_PROT, l.vb->h));
			EXPECT_TRUE(l.broken());
			EXPECT_EQ(before, after);
		}
}

TEST(Atomic, Fence)
{
	RULE("vipl_ext VIPX_CONTROL_OP_ATOMIC: a fence waits for the value");
	Link l(VIP_SERVICE_RELIABLE_DELIVERY);
	Window w(l);
	/* The fenced write sends the old value. */
	char *result = l.a.bytes(8);
	for (Word turn = 0; turn < 100; turn++) {
		l.post_a(operation(l.a, VIPX_ATOMIC_ADD, 8, { w.p, w.h }, 1, 0, result));
		l.write_a({ { result, l.a.mem.h, 8 } }, { w.p + 8, w.h }, VIP_CONTROL_QFENCE);
		VIP_DESCRIPTOR *d =
			operation(l.a, VIPX_ATOMIC_FETCH, 8, { w.p + 8, w.h }, 0, 0, l.a.bytes(8));
		d->CS.Control |= VIP_CONTROL_QFENCE;
		l.post_a(d);
		for (int i = 0; i < 3; i++)
			ASSERT_NE(nullptr, take_send(*l.va));
		Word got;
		memcpy(&got, reinterpret_cast<VIPX_ATOMIC_DESCRIPTOR *>(d)->Result.Data.Address, 8);
		EXPECT_EQ(turn, got);
	}
}

TEST(Atomic, BothWays)
{
	RULE("vipl_ext VIPX_CONTROL_OP_ATOMIC: both ends at once, behind a queue of messages");
	Link l(VIP_SERVICE_RELIABLE_RECEPTION);
	Window w(l, 16384);
	Mem near(l.na, 4096, true, true);
	memset(near.data, 0, 8);
	for (int i = 0; i < 100; i++) {
		l.post_a(operation(l.a, VIPX_ATOMIC_ADD, 8, { w.p, w.h }, 1, 0, l.a.bytes(8)));
		l.write_a({ l.seg_a(5000) }, { w.p + 8192, w.h });
		VIP_DESCRIPTOR *d = operation(l.b, VIPX_ATOMIC_ADD, 8, { near.data, near.h }, 1, 0,
					      l.b.bytes(8));
		EXPECT_RC(VIP_SUCCESS, VipPostSend(*l.vb, d, l.b.mem.h));
	}
	for (int i = 0; i < 100; i++) {
		EXPECT_TRUE(has_status(take_send(*l.va), kDone));
		EXPECT_TRUE(has_status(take_send(*l.va), VIP_STATUS_OP_RDMA_WRITE));
		EXPECT_TRUE(has_status(take_send(*l.vb), kDone));
	}
	EXPECT_EQ(100, w.p[0]);
	EXPECT_EQ(100, near.data[0]);
}

TEST(Atomic, ServedByTheEngine)
{
	RULE("vipl_ext VIPX_CONTROL_OP_ATOMIC: the other end's program makes no call");
	Link l(VIP_SERVICE_RELIABLE_DELIVERY);
	Window w(l);
	std::atomic<bool> stop{ false };
	std::thread computing([&] {
		volatile unsigned long n = 0;
		while (!stop)
			n = n + 1;
	});
	for (int i = 0; i < 20; i++) {
		l.post_a(operation(l.a, VIPX_ATOMIC_ADD, 8, { w.p, w.h }, 1, 0, l.a.bytes(8)));
		EXPECT_TRUE(has_status(take_send(*l.va), kDone));
	}
	stop = true;
	computing.join();
	EXPECT_EQ(20, w.p[0]);
}

TEST(Atomic, ThroughACompletionQueue)
{
	RULE("vipl_ext VIPX_CONTROL_OP_ATOMIC: completes on a CQ as any descriptor");
	Cq cq(nic(0));
	LinkOptions o;
	o.a_scq = cq;
	Link l(VIP_SERVICE_RELIABLE_DELIVERY, o);
	Window w(l);
	VIP_DESCRIPTOR *d[40];
	VIP_ULONG posted;
	for (auto &one : d)
		one = operation(l.a, VIPX_ATOMIC_OR, 4, { w.p, w.h }, 6, 0, l.a.bytes(4));
	EXPECT_RC(VIP_SUCCESS, VipxPostSends(*l.va, d, 40, l.a.mem.h, &posted));
	for (auto &one : d) {
		VIP_VI_HANDLE vi;
		VIP_BOOLEAN recv;
		VIP_DESCRIPTOR *got = nullptr;
		ASSERT_RC(VIP_SUCCESS, VipCQWait(cq, kWaitMs, &vi, &recv));
		EXPECT_RC(VIP_SUCCESS, VipSendDone(vi, &got));
		EXPECT_EQ(one, got);
		EXPECT_TRUE(has_status(got, kDone));
	}
	EXPECT_EQ(std::string("DONE|OP_ATOMIC"), status_text(d[0]->CS.Status));
}
