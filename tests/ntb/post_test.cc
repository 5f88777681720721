// SPDX-License-Identifier: BSD-2-Clause
// Posts by way of the regions that a queue used last: they let no byte of other memory through.
#include <gtest/gtest.h>

#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <random>
#include <string>
#include <thread>
#include <vector>

extern "C" {
#include "nvi_loop.h"
#include "w_slot.h"
}
#include "eventually.h"

namespace {

constexpr size_t kPage = 4096, kDescs = 8;
constexpr uint32_t kLen = 8;

constexpr unsigned kWrites = 100;

// Slots that complete nothing come as fast as they are consumed: the taker cannot know their number.
TEST(TakeMany, EndsThoughSlotsThatCompleteNothingComeWithoutEnd)
{
	alignas(64) static VIP_DESCRIPTOR descs[kWrites + 1];
	static uint8_t from[64], to[64];
	VIP_DESCRIPTOR *taken[8];
	VIPX_COUNTERS counters{};
	nvi_loop_cfg cfg = {};

	cfg.slots = 128;
	cfg.payload_bytes = 16384;
	cfg.level = VIP_SERVICE_RELIABLE_DELIVERY;
	cfg.port = "emu";
	cfg.seed = 7;
	nvi_loop *loop = nvi_loop_open(&cfg);
	ASSERT_NE(loop, nullptr);
	VIP_MEM_HANDLE h = nvi_loop_register(loop, descs, sizeof(descs));
	VIP_MEM_HANDLE hf = nvi_loop_register(loop, from, sizeof(from));
	VIP_MEM_HANDLE ht = nvi_loop_register(loop, to, sizeof(to));
	VIP_DESCRIPTOR *r = &descs[kWrites];

	r->CS.SegCount = 1;
	r->CS.Length = r->DS[0].Local.Length = sizeof(to);
	r->DS[0].Local.Data.Address = to;
	r->DS[0].Local.Handle = ht;
	ASSERT_EQ(nvi_loop_post_recv(loop, 1, r, h), 0);
	for (unsigned i = 0; i < kWrites; i++) {
		VIP_DESCRIPTOR *d = &descs[i];

		d->CS.SegCount = 2;
		d->CS.Control = VIP_CONTROL_OP_RDMAWRITE;
		d->CS.Length = d->DS[1].Local.Length = 8;
		d->DS[0].Remote.Data.Address = to;
		d->DS[0].Remote.Handle = ht;
		d->DS[1].Local.Data.Address = from;
		d->DS[1].Local.Handle = hf;
		ASSERT_EQ(nvi_loop_post_send(loop, 0, d, h), 0);
	}
	EXPECT_EQ(nvi_loop_take_recvs(loop, 1, taken, 8), 0);
	counters.Size = sizeof(counters);
	nvi_loop_counters(loop, 1, &counters);
	EXPECT_GT(counters.SlotsReceived, 0u);
	EXPECT_LE(counters.SlotsReceived, 64u) << "as much as VipRecvDone takes in at most";
	nvi_loop_lose(loop, 0);
	nvi_loop_lose(loop, 1);
	nvi_loop_deregister(loop, descs, h);
	nvi_loop_deregister(loop, from, hf);
	nvi_loop_deregister(loop, to, ht);
	nvi_loop_close(loop);
}

class Post : public ::testing::TestWithParam<int> {
protected:
	void SetUp() override
	{
		nvi_loop_cfg cfg = {};

		cfg.slots = 16;
		cfg.payload_bytes = 16384;
		cfg.level = static_cast<VIP_RELIABILITY_LEVEL>(GetParam());
		cfg.port = "emu";
		cfg.seed = 7;
		cfg.max_transfer = 2048;
		loop = nvi_loop_open(&cfg);
		ASSERT_NE(loop, nullptr);
		desc_handle = nvi_loop_register(loop, descs, sizeof(descs));
		handle = nvi_loop_register(loop, memory + 512, 2048);
		ASSERT_NE(desc_handle, 0u);
		ASSERT_NE(handle, 0u);
		std::memset(memory, 0x11, sizeof(memory));
	}

	void TearDown() override
	{
		if (loop == nullptr)
			return;
		nvi_loop_lose(loop, 0);
		nvi_loop_lose(loop, 1);
		nvi_loop_deregister(loop, memory + 512, handle);
		nvi_loop_deregister(loop, descs, desc_handle);
		nvi_loop_close(loop);
	}

	VIP_DESCRIPTOR *build(unsigned i, const void *at, uint32_t len, VIP_MEM_HANDLE h)
	{
		VIP_DESCRIPTOR *d = &descs[i];

		std::memset(static_cast<void *>(d), 0, sizeof(*d));
		d->CS.SegCount = 1;
		d->CS.Length = d->DS[0].Local.Length = len;
		d->DS[0].Local.Data.AddressBits = reinterpret_cast<uintptr_t>(at);
		d->DS[0].Local.Handle = h;
		return d;
	}

	// One message from the region, so that the queues' caches hold it.
	void warm()
	{
		VIP_DESCRIPTOR *r = build(6, memory + 1024, kLen, handle), *d;
		VIP_DESCRIPTOR *s = build(7, memory + 512, kLen, handle);

		ASSERT_EQ(nvi_loop_post_recv(loop, 1, r, desc_handle), 0);
		ASSERT_EQ(nvi_loop_post_send(loop, 0, s, desc_handle), 0);
		ASSERT_LT(nvi_loop_settle(loop, 1000), 1000);
		ASSERT_EQ(nvi_loop_recv_done(loop, 1, &d), 1);
		ASSERT_EQ(nvi_loop_send_done(loop, 0, &d), 1);
	}

	// Sends a message from `s`; returns its status.
	void send(VIP_DESCRIPTOR *s, uint32_t *status_out)
	{
		VIP_DESCRIPTOR *r = build(0, memory + 1024, 1024, handle), *d;

		ASSERT_EQ(nvi_loop_post_recv(loop, 1, r, desc_handle), 0);
		ASSERT_EQ(nvi_loop_post_send(loop, 0, s, desc_handle), 0);
		ASSERT_LT(nvi_loop_settle(loop, 1000), 1000);
		ASSERT_GT(nvi_loop_send_done(loop, 0, &d), 0);
		ASSERT_EQ(d, s);
		*status_out = s->CS.Status & VIP_STATUS_ERROR_MASK;
		if (*status_out != 0 && nvi_loop_state(loop, 1) == VIP_STATE_CONNECTED) {
			EXPECT_EQ(nvi_loop_recv_done(loop, 1, &d), 0) << "it came nevertheless";
			nvi_loop_lose(loop, 0);
			nvi_loop_lose(loop, 1);
		}
		EXPECT_GT(nvi_loop_recv_done(loop, 1, &d), 0);
		if (nvi_loop_state(loop, 1) != VIP_STATE_CONNECTED) {
			ASSERT_EQ(nvi_loop_reconnect(loop), 0);
		}
	}

	alignas(kPage) uint8_t memory[kPage];
	alignas(64) VIP_DESCRIPTOR descs[kDescs];
	nvi_loop *loop = nullptr;
	VIP_MEM_HANDLE handle = 0, desc_handle = 0;
};

TEST_P(Post, DataAtTheEdgesOfItsRegion)
{
	uint8_t *const first = memory + 512, *const end = first + 2048;
	const uint32_t bad = VIP_STATUS_PROTECTION_ERROR, fine = 0;
	const struct {
		const char *what;
		const uint8_t *at;
		uint32_t len;
		VIP_MEM_HANDLE handle;
		uint32_t status;
	} rows[] = {
		{ "the first byte", first, 1, handle, fine },
		{ "the last byte", end - 1, 1, handle, fine },
		{ "the last 112 bytes", end - 112, 112, handle, fine },
		{ "no byte", first, 0, handle, fine },
		{ "one byte too many", end - 111, 112, handle, bad },
		{ "the byte before", first - 1, 1, handle, bad },
		{ "the byte behind", end, 1, handle, bad },
		{ "around the end of memory", reinterpret_cast<uint8_t *>(-8L), 16, handle, bad },
		{ "the whole of it, and more", first, 2049, handle, VIP_STATUS_LENGTH_ERROR },
		{ "handle 0", first, kLen, 0, bad },
		{ "handle ~0", first, kLen, UINT32_MAX, bad },
		{ "a later handle", first, kLen, handle + (1u << 18), bad },
	};

	for (const auto &row : rows) {
		uint32_t status = 0;

		SCOPED_TRACE(row.what);
		ASSERT_NO_FATAL_FAILURE(warm());
		ASSERT_NO_FATAL_FAILURE(send(build(1, row.at, row.len, row.handle), &status));
		EXPECT_EQ(status, row.status);
	}
}

TEST_P(Post, DescriptorsAtTheEdgesOfTheirRegion)
{
	VIP_MEM_HANDLE part = nvi_loop_register(loop, &descs[2], 2 * sizeof(descs[0]) + 63);
	VIP_MEM_HANDLE small = nvi_loop_register(loop, &descs[2], 63);
	VIP_DESCRIPTOR *d;

	for (unsigned i = 0; i < kDescs; i++)
		build(i, memory + 512, kLen, handle);
	for (int round = 0; round < 3; round++) {
		for (unsigned i : { 2u, 3u }) {
			EXPECT_EQ(nvi_loop_post_recv(loop, 1, &descs[i], part), 0);
			EXPECT_EQ(nvi_loop_post_send(loop, 0, &descs[i], part), 0);
		}
		for (unsigned i : { 1u, 4u, 5u }) {
			EXPECT_EQ(nvi_loop_post_recv(loop, 1, &descs[i], part), -EINVAL) << i;
			EXPECT_EQ(nvi_loop_post_send(loop, 0, &descs[i], part), -EINVAL) << i;
		}
		auto *odd = reinterpret_cast<VIP_DESCRIPTOR *>(
			reinterpret_cast<uint8_t *>(&descs[2]) + 32);
		EXPECT_EQ(nvi_loop_post_send(loop, 0, odd, part), -EINVAL);
		EXPECT_EQ(nvi_loop_post_send(loop, 0, &descs[2], small), -EINVAL);
		EXPECT_EQ(nvi_loop_post_recv(loop, 1, &descs[2], small), -EINVAL);
	}
	nvi_loop_lose(loop, 0);
	nvi_loop_lose(loop, 1);
	while (nvi_loop_send_done(loop, 0, &d) > 0 || nvi_loop_recv_done(loop, 1, &d) > 0)
		;
	nvi_loop_deregister(loop, &descs[2], part);
	nvi_loop_deregister(loop, &descs[2], small);
}

// If lines are not demoted, an answer asks for credit, and if the next message finds all consumed, it lies at
// the beginning of the payload buffer; else messages follow each other there.  All arrive complete.
class Answers : public Post {
protected:
	static constexpr uint32_t kMost = 1024, kSlots = 16, kRing = 16384;

	// A round: up to three messages from end 0, and an answer.
	void round(std::mt19937 &gen)
	{
		VIP_DESCRIPTOR *d;
		uint32_t count = 1 + gen() % 3;
		std::vector<uint8_t> theirs(count * kMost, 0xee);
		VIP_MEM_HANDLE h = nvi_loop_register(loop, theirs.data(), theirs.size());

		lens.resize(count);
		for (uint32_t i = 0; i < count; i++) {
			lens[i] = W_INLINE_MAX + 1 + gen() % (kMost - W_INLINE_MAX);
			memory[512 + i] = static_cast<uint8_t>(gen());
			post(1, build(i, &theirs[i * kMost], kMost, h));
		}
		for (uint32_t i = 0; i < count; i++)
			post(0, build(4 + i, memory + 512 + i, lens[i], handle), true);
		look();
		ASSERT_LT(nvi_loop_settle(loop, 1000), 1000);
		for (uint32_t i = 0; i < count; i++) {
			ASSERT_EQ(nvi_loop_recv_done(loop, 1, &d), 1);
			ASSERT_EQ(d->CS.Length, lens[i]);
			ASSERT_EQ(std::memcmp(&theirs[i * kMost], memory + 512 + i, lens[i]), 0);
			ASSERT_EQ(nvi_loop_send_done(loop, 0, &d), 1);
		}
		nvi_loop_deregister(loop, theirs.data(), h);
		all_known = answered && count == 1;
		post(0, build(0, memory + 512, 4, handle));
		post(1, build(4, memory + 512, 4, handle), true);
		ASSERT_LT(nvi_loop_settle(loop, 1000), 1000);
		ASSERT_EQ(nvi_loop_recv_done(loop, 0, &d), 1);
		ASSERT_EQ(nvi_loop_send_done(loop, 1, &d), 1);
		answered = true;
	}

	void post(int end, VIP_DESCRIPTOR *d, bool send = false)
	{
		ASSERT_EQ(send ? nvi_loop_post_send(loop, end, d, desc_handle)
			       : nvi_loop_post_recv(loop, end, d, desc_handle),
			  0);
	}

	// The place of the first message of the round.
	void look()
	{
		uint64_t len;
		const uint8_t *payload = nvi_loop_inbound(loop, 1, &len) + w_slice_payload(kSlots);
		uint32_t at = demotes && lens[0] <= kRing - end ? end : 0;

		if (demotes || all_known || GetParam() == VIP_SERVICE_RELIABLE_RECEPTION) {
			EXPECT_EQ(std::memcmp(payload + at, memory + 512, lens[0]), 0);
		}
		for (uint32_t n : lens) {
			uint32_t need = (n + 63) / 64 * 64;
			end = (need > kRing - end ? 0 : end) + need;
		}
	}

	std::vector<uint32_t> lens;
	bool demotes = false;
	bool all_known = true; // end 0 knows that all it sent was consumed
	bool answered = false;
	uint32_t end = 0; // position of the payloads, if the buffer were never begun again
};

INSTANTIATE_TEST_SUITE_P(Levels, Answers,
			 ::testing::Values(VIP_SERVICE_UNRELIABLE, VIP_SERVICE_RELIABLE_DELIVERY,
					   VIP_SERVICE_RELIABLE_RECEPTION));

TEST_P(Answers, ThePayloadBufferIsBegunAnewWhenAllIsConsumed)
{
	std::mt19937 gen(5);

	nvi_loop_set_demotes(loop, 0, 0);
	for (int i = 0; i < 400 && !HasFatalFailure(); i++)
		round(gen);
}

TEST_P(Answers, PayloadsLieBehindOneAnotherWhereLinesAreDemoted)
{
	std::mt19937 gen(5);

	demotes = true;
	nvi_loop_set_demotes(loop, 0, 1);
	for (int i = 0; i < 400 && !HasFatalFailure(); i++)
		round(gen);
}

// At reliable reception a send waits until it was consumed; at other levels one that is too short to be
// placed is complete when it is stored.
TEST_P(Post, AShortSendIsCompleteWhenItIsStored)
{
	const bool waits = GetParam() == VIP_SERVICE_RELIABLE_RECEPTION;
	VIP_DESCRIPTOR *d;

	for (uint32_t n : { 4u, uint32_t{ W_INLINE_MAX }, W_INLINE_MAX + 1u, 1024u, 2048u }) {
		ASSERT_EQ(nvi_loop_post_recv(loop, 1, build(0, memory + 512, 2048, handle),
					     desc_handle),
			  0);
		ASSERT_EQ(nvi_loop_post_send(loop, 0, build(4, memory + 512, n, handle),
					     desc_handle),
			  0);
		EXPECT_EQ(nvi_loop_send_done(loop, 0, &d), waits ? 0 : 1) << n;
		ASSERT_LT(nvi_loop_settle(loop, 1000), 1000);
		if (waits) {
			EXPECT_EQ(nvi_loop_send_done(loop, 0, &d), 1) << n;
		}
		ASSERT_EQ(nvi_loop_recv_done(loop, 1, &d), 1);
		EXPECT_EQ(d->CS.Length, n);
	}
}

// A thread sends from a page that another thread deregisters and unmaps.
TEST_P(Post, DeregisteredMemoryIsNotRead)
{
	std::atomic<uint8_t *> page{ nullptr };
	std::atomic<VIP_MEM_HANDLE> page_handle{ 0 };
	std::atomic<unsigned> sent{ 0 }, refused{ 0 };
	std::atomic<bool> stop{ false };

	if (GetParam() != VIP_SERVICE_UNRELIABLE)
		GTEST_SKIP() << "the first refusal would break the connection";
	std::thread poster([&] {
		VIP_DESCRIPTOR *d;

		while (!stop) {
			VIP_DESCRIPTOR *r = build(0, memory + 1024, kLen, handle);
			VIP_DESCRIPTOR *s = build(1, page, kLen, page_handle);

			if (nvi_loop_post_recv(loop, 1, r, desc_handle) != 0 ||
			    nvi_loop_post_send(loop, 0, s, desc_handle) != 0)
				break;
			while (nvi_loop_send_done(loop, 0, &d) == 0)
				nvi_loop_progress(loop, 0);
			if (s->CS.Status & VIP_STATUS_ERROR_MASK) {
				s = build(1, memory + 512, kLen, handle);
				nvi_loop_post_send(loop, 0, s, desc_handle);
				nvi_loop_send_done(loop, 0, &d);
				refused++;
			} else {
				sent++;
			}
			while (nvi_loop_poll_recv(loop, 1, &d) == 0)
				;
		}
	});
	for (int i = 0; i < 300; i++) {
		void *mine = mmap(nullptr, kPage, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		unsigned before = sent, refused_before;

		ASSERT_NE(mine, MAP_FAILED);
		page = static_cast<uint8_t *>(mine);
		page_handle = nvi_loop_register(loop, mine, kPage);
		EXPECT_TRUE(eventually([&] { return sent > before + 50; }));
		nvi_loop_deregister(loop, mine, page_handle);
		// A late load would now end the test with a signal.
		munmap(mine, kPage);
		refused_before = refused;
		EXPECT_TRUE(eventually([&] { return refused > refused_before + 1; }));
	}
	stop = true;
	poster.join();
}

// The peer rewrites the header of the slot that is being consumed.  After the receive's memory no
// page is mapped.
TEST_P(Post, ASlotThatChangesPlacesNothingBehindTheReceive)
{
	const uint32_t lens[] = { 0, 1, 48, 49, 100, 101, 112, 113, 4096, 4097, 20000, UINT32_MAX };
	constexpr uint32_t kRoom = 100, kSlots = 16;
	uint8_t *pages = static_cast<uint8_t *>(mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE,
						     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	uint8_t *target = pages + kPage - kRoom;
	std::atomic<w_slot *> slot{ nullptr };
	std::atomic<bool> stop{ false }, idle{ true };
	unsigned received = 0;
	VIP_DESCRIPTOR *d;

	ASSERT_NE(pages, MAP_FAILED);
	ASSERT_EQ(munmap(pages + kPage, kPage), 0);
	VIP_MEM_HANDLE room = nvi_loop_register(loop, target, kRoom);
	std::thread peer([&] {
		std::mt19937 gen(1);

		while (!stop) {
			w_slot *s = slot;

			idle = s == nullptr;
			if (idle)
				continue;
			__atomic_store_n(&s->head.frag, lens[gen() % std::size(lens)],
					 __ATOMIC_RELAXED);
			__atomic_store_n(&s->head.flags,
					 static_cast<uint8_t>(W_F_FIRST | W_F_LAST |
							      (gen() % 2 ? W_F_IMM : 0) |
							      (gen() % 2 ? W_F_BUFFERED : 0) |
							      (gen() % 2 ? W_F_REWOUND : 0) |
							      (gen() % 2 ? W_F_PACKED : 0)),
					 __ATOMIC_RELAXED);
			__atomic_store_n(&s->head.arg, gen() % 4, __ATOMIC_RELAXED);
		}
	});
	for (uint32_t n = 0, round = 0; round < 500; n++, round++) {
		uint64_t len;
		auto *fifo =
			reinterpret_cast<w_slot *>(nvi_loop_inbound(loop, 1, &len) + W_SLICE_FIFO);
		w_slot *s = &fifo[n % kSlots];

		VIP_DESCRIPTOR *r = build(0, target, kRoom, room);
		ASSERT_EQ(nvi_loop_post_recv(loop, 1, r, desc_handle), 0);
		s->head.op = W_OP_SEND;
		s->head.flags = W_F_FIRST | W_F_LAST;
		s->head.reserved = 0;
		s->head.arg = 0;
		s->head.frag = 8;
		slot = s;
		while (idle)
			std::this_thread::yield();
		__atomic_store_n(&s->head.seq, w_seq(n), __ATOMIC_RELEASE);
		while (nvi_loop_poll_recv(loop, 1, &d) == 0 &&
		       nvi_loop_state(loop, 1) == VIP_STATE_CONNECTED)
			;
		slot = nullptr;
		while (!idle)
			std::this_thread::yield();
		if (nvi_loop_state(loop, 1) == VIP_STATE_CONNECTED) {
			received++;
			EXPECT_LE(r->CS.Length, kRoom);
			continue;
		}
		while (nvi_loop_recv_done(loop, 1, &d) > 0)
			;
		ASSERT_EQ(nvi_loop_reconnect(loop), 0);
		n = UINT32_MAX;
	}
	stop = true;
	peer.join();
	EXPECT_NE(received, 0u);
	nvi_loop_lose(loop, 0);
	nvi_loop_lose(loop, 1);
	nvi_loop_deregister(loop, target, room);
	munmap(pages, kPage);
}

std::string LevelName(const ::testing::TestParamInfo<int> &info)
{
	return info.param == VIP_SERVICE_UNRELIABLE	     ? "unreliable"
	       : info.param == VIP_SERVICE_RELIABLE_DELIVERY ? "delivery"
							     : "reception";
}

INSTANTIATE_TEST_SUITE_P(Levels, Post,
			 ::testing::Values(VIP_SERVICE_UNRELIABLE, VIP_SERVICE_RELIABLE_DELIVERY,
					   VIP_SERVICE_RELIABLE_RECEPTION),
			 LevelName);

} // namespace
