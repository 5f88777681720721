// SPDX-License-Identifier: BSD-2-Clause
// A node that breaks the rules: its circuit is stopped, counted and reported; others go on.
#include <cstring>

#include "relay_rig.h"

using namespace relay_test;

namespace {

class Hostile : public ::testing::TestWithParam<Kind> {
protected:
	Hostile() : rig(GetParam(), 1, RL_BLOCK, true), good(rig) {}

	void good_goes_on()
	{
		for (unsigned int i = 0; i < 2; i++) {
			Node &a = good.node[i], &b = good.node[1 - i];
			Fragment f = fragment(rng, W_OP_SEND, W_F_FIRST | W_F_LAST | W_F_BUFFERED,
					      1 + rng() % 1024);
			Fragment came;

			ASSERT_TRUE(a.room(f));
			a.send(f);
			a.ring_surely(rig.here[i]);
			rig.settle();
			ASSERT_TRUE(b.take(&came));
			ASSERT_TRUE(same(f, came));
			b.give_credit(b.consumed);
			rig.settle();
		}
		EXPECT_TRUE(good.guards_hold());
	}

	// Expects that nothing of it was forwarded, and that it is reported once.
	void is_stopped(Circuit &bad)
	{
		uint64_t before = rig.counters().broken;
		uint32_t told = rig.notified;

		rig.settle();
		ASSERT_EQ(rig.counters().broken, before + 1);
		EXPECT_EQ(rig.notified, told + 1);
		EXPECT_EQ(rl_broken(rig.relay), &bad);
		EXPECT_EQ(rl_broken(rig.relay), nullptr);
		EXPECT_TRUE(bad.guards_hold());
		good_goes_on();
	}

	std::mt19937 rng{ seed() };
	Rig rig;
	Circuit good;
};

struct Wrong {
	const char *what;
	struct w_slot before, slot; // `before`: a correct one, unless its op is 0
};

/* Slots that no relay forwards; the receiver checks whether a slot may come now. */
std::vector<Wrong> wrong_slots()
{
	const uint8_t F = W_F_FIRST, L = W_F_LAST, R = W_F_BUFFERED, P = W_F_PLACED, K = W_F_PACKED;
	const uint32_t most = w_frag_max(kPayload);
	const struct w_slot none = {};
	struct w_slot reserved = header(W_OP_SEND, F | L, 4);

	reserved.head.reserved = 1;
	return {
		{ "op 0", none, header(0, F | L, 0) },
		{ "op 8", none, header(8, F | L, 0) },
		{ "op 255", none, header(255, F | L, 0) },
		{ "rewound, but inline", none, header(W_OP_SEND, F | L | W_F_REWOUND, 4) },
		{ "rewound, but empty", none, header(W_OP_SEND, F | L | R | W_F_REWOUND, 0) },
		{ "rewound and placed", none, header(W_OP_SEND, F | L | P | W_F_REWOUND, 100) },
		{ "rewound and packed", none, header(W_OP_SEND, F | L | K | W_F_REWOUND, 4, 2) },
		{ "all flags", none, header(W_OP_SEND, 0xff, 4) },
		{ "reserved", none, reserved },
		{ "inline too long", none, header(W_OP_SEND, F | L, W_INLINE_MAX + 1) },
		{ "inline far too long", none, header(W_OP_SEND, F | L, UINT32_MAX) },
		{ "write too long for its rdma", none, header(W_OP_WRITE, F | L, 97) },
		{ "empty in the ring", none, header(W_OP_SEND, F | L | R, 0) },
		{ "too long for the ring", none, header(W_OP_SEND, F | L | R, most + 1) },
		{ "far too long for the ring", none, header(W_OP_SEND, F | L | R, UINT32_MAX) },
		{ "placed in the ring", none, header(W_OP_SEND, F | L | R | P, 100) },
		{ "placed in part", none, header(W_OP_SEND, F | P, 100) },
		{ "placed, but empty", none, header(W_OP_SEND, F | L | P, 0) },
		{ "a placed write that takes no receive", none, header(W_OP_WRITE, F | L | P, 9) },
		{ "a placed answer, but empty", none, header(W_OP_READ_RESP, F | L | P, 0) },
		{ "a part of a placed answer", none, header(W_OP_READ_RESP, L | P, 9) },
		{ "a placed answer in the ring", none, header(W_OP_READ_RESP, F | L | R | P, 9) },
		{ "a placed request", none, header(W_OP_READ_REQ, F | L | P, 16) },
		{ "packed alone", none, header(W_OP_SEND, F | L | K, 4, 1) },
		{ "packed, but none", none, header(W_OP_SEND, F | L | K, 4, 0) },
		{ "packed, but empty", none, header(W_OP_SEND, F | L | K, 0, 2) },
		{ "one packed too many", none, header(W_OP_SEND, F | L | K, 4, 29) },
		{ "packed far too many", none, header(W_OP_SEND, F | L | K, 1, UINT32_MAX) },
		{ "packed too long", none, header(W_OP_SEND, F | L | K, 57, 2) },
		{ "a packed product of 2^32", none, header(W_OP_SEND, F | L | K, 65536, 65536) },
		{ "packed far too long", none, header(W_OP_SEND, F | L | K, 1u << 31, 2) },
		{ "packed, not first", none, header(W_OP_SEND, L | K, 4, 2) },
		{ "packed, not last", none, header(W_OP_SEND, F | K, 4, 2) },
		{ "packed with immediate data", none,
		  header(W_OP_SEND, F | L | K | W_F_IMM, 4, 2) },
		{ "packed in the ring", none, header(W_OP_SEND, F | L | K | R, 4, 2) },
		{ "packed and placed", none, header(W_OP_SEND, F | L | K | P, 4, 2) },
		{ "packed writes", none, header(W_OP_WRITE, F | L | K, 4, 2) },
		{ "packed answers", none, header(W_OP_READ_RESP, F | L | K, 4, 2) },
	};
}

TEST_P(Hostile, EveryWrongHeader)
{
	for (const Wrong &w : wrong_slots()) {
		for (unsigned int side = 0; side < 2; side++) {
			SCOPED_TRACE(w.what);
			Circuit bad(rig);
			Node &other = bad.node[1 - side];
			Fragment came;

			if (w.before.head.op != 0) {
				bad.node[side].send_raw(w.before);
				rig.settle();
				ASSERT_TRUE(other.take(&came));
			}
			bad.node[side].send_raw(w.slot);
			is_stopped(bad);
			EXPECT_FALSE(other.take(&came)) << "it was forwarded";
		}
	}
}

TEST_P(Hostile, MoreSlotsThanCredit)
{
	Circuit bad(rig);
	struct w_slot ok = header(W_OP_SEND, W_F_FIRST | W_F_LAST, 4);

	for (uint32_t i = 0; i < kSlots; i++)
		bad.node[0].send_raw(ok);
	rig.settle();
	EXPECT_EQ(rig.counters().broken, 0u);
	bad.node[0].send_raw(ok);
	is_stopped(bad);
}

TEST_P(Hostile, CreditForWhatWasNotSent)
{
	for (uint32_t credit : { 1u, kSlots, 0x80000000u, UINT32_MAX }) {
		Circuit bad(rig);

		bad.node[0].give_credit(credit);
		is_stopped(bad);
		EXPECT_EQ(bad.node[1].credit(), 0u);
	}
}

TEST_P(Hostile, CreditThatGoesBackOrPast)
{
	for (uint32_t credit : { 2u, 0u, 6u, 3u + 0x80000000u }) {
		Circuit bad(rig);

		for (uint32_t i = 0; i < 5; i++)
			bad.node[0].send_raw(header(W_OP_SEND, W_F_FIRST | W_F_LAST, 4));
		rig.settle();
		bad.node[1].give_credit(3);
		rig.settle();
		ASSERT_EQ(bad.node[0].credit(), 3u);
		bad.node[1].give_credit(credit);
		is_stopped(bad);
		EXPECT_EQ(bad.node[0].credit(), 3u);
	}
}

// The receiver knows which errors exist; slots of a node that lies are still checked first.
TEST_P(Hostile, ErrorWords)
{
	for (uint64_t word : { uint64_t{ 1 }, UINT64_MAX, uint64_t{ 0xffffffff } << 32 }) {
		Circuit odd(rig);

		odd.node[0].fail(word);
		rig.settle();
		EXPECT_EQ(odd.node[1].error(), word);
		good_goes_on();
	}
	Circuit bad(rig);
	bad.node[0].send_raw(header(77, 0, 0));
	bad.node[0].fail(1);
	is_stopped(bad);
	EXPECT_EQ(bad.node[1].error(), 0u);
}

TEST_P(Hostile, SequencesThatAreNotDue)
{
	Circuit odd(rig);
	Fragment came;

	for (uint32_t seq : { 0u, 1u, w_seq(1), w_seq(kSlots), UINT32_MAX }) {
		struct w_slot slot = header(99, 0xff, UINT32_MAX);

		atomic_store(&slot.head.seq, seq);
		odd.node[0].scribble(W_SLICE_FIFO, &slot, sizeof(slot));
		EXPECT_EQ(rig.pass(), 0u);
	}
	EXPECT_FALSE(odd.node[1].take(&came));
	EXPECT_EQ(rig.counters().broken, 0u);
}

TEST_P(Hostile, AnyDoorbellWord)
{
	Circuit odd(rig);

	for (uint32_t i = 0; i < 200; i++) {
		odd.node[1].arm(static_cast<uint32_t>(rng()), static_cast<uint32_t>(rng()));
		odd.node[0].send_raw(header(W_OP_SEND, W_F_FIRST | W_F_LAST, 4));
		rig.settle();
		odd.node[1].give_credit(odd.node[0].sent);
		rig.settle();
	}
	EXPECT_EQ(rig.counters().broken, 0u);
	EXPECT_LE(rig.counters().rings, 400u) << "at most one for slots and one for credit";
}

TEST_P(Hostile, ManyAtOnceAreAllReported)
{
	std::vector<std::unique_ptr<Circuit>> bad;

	for (int i = 0; i < 20; i++)
		bad.push_back(std::make_unique<Circuit>(rig));
	for (int i = 0; i < 20; i += 2)
		bad[static_cast<size_t>(i)]->node[i / 2 % 2].send_raw(header(0, 0, 0));
	rig.settle();
	EXPECT_EQ(rig.counters().broken, 10u);
	bad[4]->remove(); // before the break was reported
	for (int i = 0; i < 9; i++) {
		auto *c = static_cast<Circuit *>(rl_broken(rig.relay));

		ASSERT_NE(c, nullptr);
		c->remove();
	}
	EXPECT_EQ(rl_broken(rig.relay), nullptr);
	EXPECT_EQ(rig.counters().circuits, 11u);
	good_goes_on();
}

// Both nodes store anything anywhere, over slots that are right for a while.
TEST_P(Hostile, RandomStores)
{
	SCOPED_TRACE("VIADUCT_SEED=" + std::to_string(seed()));
	for (int generation = 0; generation < 60; generation++) {
		Circuit bad(rig);
		Stream stream[2] = { Stream(rng()), Stream(rng()) };

		for (int step = 0; step < 60; step++) {
			unsigned int i = rng() % 2;
			Node &node = bad.node[i];
			uint8_t bytes[64];

			for (auto &b : bytes)
				b = static_cast<uint8_t>(rng());
			switch (rng() % 6) {
			case 0:
				node.scribble(rng() % (w_slice_bytes(kSlots, kPayload) - 64), bytes,
					      rng() % 64);
				break;
			case 1: {
				struct w_slot s;
				memcpy(&s, bytes, sizeof(bytes));
				s.head.op = static_cast<uint8_t>(1 + rng() % 5);
				s.head.flags &= W_F_KNOWN;
				s.head.reserved = 0;
				s.head.frag %= 2048;
				node.send_raw(s);
				break;
			}
			case 2:
				node.give_credit(static_cast<uint32_t>(rng() % 12));
				break;
			default:
				node.send(stream[i].next());
			}
			if (rng() % 4 == 0)
				rig.pass();
			if (rng() % 16 == 0)
				rig.arm();
			if (rng() % 16 == 0)
				port_peer_db_ring(node.port, UINT32_MAX);
		}
		rig.settle();
		ASSERT_TRUE(bad.guards_hold());
		good_goes_on();
	}
	EXPECT_GT(rig.counters().broken, 10u);
}

INSTANTIATE_TEST_SUITE_P(Ports, Hostile, ::testing::Values(kPlain, kStrict, kLossy), name_of);

} // namespace
