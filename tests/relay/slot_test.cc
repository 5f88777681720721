// SPDX-License-Identifier: BSD-2-Clause
// Slots, buffered payload, credit and errors that a relay forwards, step by step.
#include <deque>

#include "relay_rig.h"

using namespace relay_test;

namespace {

class Slot : public ::testing::TestWithParam<Kind> {
protected:
	Slot() : rig(GetParam(), 1, RL_BLOCK, true), circuit(rig) {}

	// Expects that the fragment came through the relay, was consumed, and its credit came back.
	void passes(unsigned int from, const Fragment &f)
	{
		Node &a = circuit.node[from], &b = circuit.node[1 - from];
		Fragment came;

		ASSERT_TRUE(a.room(f));
		a.send(f);
		rig.settle();
		ASSERT_TRUE(b.take(&came));
		ASSERT_TRUE(same(f, came));
		b.give_credit(b.consumed);
		rig.settle();
		ASSERT_EQ(a.credit(), a.sent);
	}

	void passes_both_ways(const Fragment &f)
	{
		ASSERT_NO_FATAL_FAILURE(passes(0, f));
		ASSERT_NO_FATAL_FAILURE(passes(1, f));
	}

	static bool loses_rings() { return GetParam().faults[0] != 0; }

	// Random messages both ways, with credit at random times.
	void streams(uint32_t slots);

	std::mt19937 rng{ seed() };
	Rig rig;
	Circuit circuit;
};

TEST_P(Slot, EveryLengthInline)
{
	uint8_t whole = W_F_FIRST | W_F_LAST;

	for (uint32_t n = 0; n <= W_INLINE_MAX; n++) {
		passes_both_ways(fragment(rng, W_OP_SEND, whole, n));
		passes_both_ways(fragment(rng, W_OP_READ_RESP, whole, n));
		passes_both_ways(fragment(rng, W_OP_SEND, whole | W_F_IMM | W_F_ACK, n, 0xabcd));
	}
	for (uint32_t n = 0; n <= W_INLINE_MAX - sizeof(struct w_rdma); n++)
		passes_both_ways(fragment(rng, W_OP_WRITE, whole, n));
}

TEST_P(Slot, RingFragments)
{
	uint32_t most = w_frag_max(kPayload);
	uint8_t whole = W_F_FIRST | W_F_LAST | W_F_BUFFERED;

	for (uint32_t n : { 1u, 63u, 64u, 65u, 127u, 1000u, most - 1, most }) {
		passes_both_ways(fragment(rng, W_OP_SEND, whole, n));
		passes_both_ways(fragment(rng, W_OP_WRITE, whole | W_F_ACK, n));
		passes_both_ways(fragment(rng, W_OP_WRITE, W_F_FIRST | W_F_BUFFERED, n, 2 * n + 7));
		passes_both_ways(fragment(rng, W_OP_WRITE, W_F_BUFFERED, n));
		passes_both_ways(fragment(rng, W_OP_WRITE, W_F_LAST, 7));
	}
}

// Payloads that begin the payload buffer again, between others that do not.
TEST_P(Slot, RewoundFragments)
{
	uint32_t most = w_frag_max(kPayload);
	uint8_t whole = W_F_FIRST | W_F_LAST | W_F_BUFFERED;

	for (uint32_t n : { 1u, 64u, 1000u, most }) {
		passes_both_ways(fragment(rng, W_OP_SEND, whole | W_F_REWOUND | W_F_ACK, n));
		passes_both_ways(fragment(rng, W_OP_SEND, whole | W_F_REWOUND, n));
		passes_both_ways(fragment(rng, W_OP_SEND, whole, 500));
		passes_both_ways(fragment(rng, W_OP_WRITE, whole | W_F_REWOUND, n));
	}
	EXPECT_EQ(rig.counters().broken, 0u);
}

TEST_P(Slot, ReadsAndAborts)
{
	for (uint32_t length : { 0u, 1u, UINT32_MAX })
		for (size_t bytes : { sizeof(struct w_rdma), sizeof(struct w_read_req) })
			passes_both_ways(fragment(rng, W_OP_READ_REQ,
						  W_F_FIRST | W_F_LAST | W_F_ACK,
						  static_cast<uint32_t>(bytes), 0, length));
	for (uint32_t size : { 4u, 8u })
		passes_both_ways(fragment(rng, W_OP_ATOMIC_REQ, W_F_FIRST | W_F_LAST,
					  sizeof(struct w_atomic_req), 0, size));
	passes_both_ways(fragment(rng, W_OP_SEND, W_F_FIRST | W_F_IMM, 5, UINT32_MAX));
	passes_both_ways(fragment(rng, W_OP_ABORT, W_F_LAST, 0));
	passes_both_ways(fragment(rng, W_OP_WRITE, W_F_FIRST | W_F_BUFFERED, 100, 101));
	passes_both_ways(fragment(rng, W_OP_NOP, W_F_ACK, 0));
	passes_both_ways(fragment(rng, W_OP_ABORT, W_F_LAST, 0));
	EXPECT_EQ(rig.counters().broken, 0u);
}

// The relay starts in the middle of a connection, which came from a path without relays: its bytes are there.
TEST_P(Slot, PlacedMessages)
{
	uint8_t whole = W_F_FIRST | W_F_LAST | W_F_PLACED;

	for (uint32_t n : { 1u, 112u, 4096u, 16u << 20, UINT32_MAX }) {
		passes_both_ways(fragment(rng, W_OP_SEND, whole, n));
		passes_both_ways(fragment(rng, W_OP_SEND, whole | W_F_IMM | W_F_ACK, n, 0xabcd));
		passes_both_ways(fragment(rng, W_OP_WRITE, whole | W_F_IMM | W_F_ACK, n, 0xabcd));
		passes_both_ways(fragment(rng, W_OP_READ_RESP, whole, n));
	}
	EXPECT_EQ(rig.counters().broken, 0u);
}

TEST_P(Slot, PackedMessages)
{
	uint8_t whole = W_F_FIRST | W_F_LAST | W_F_PACKED;

	for (uint32_t n = 1; n <= W_INLINE_MAX / 2; n++) {
		for (uint32_t count : { 2u, W_INLINE_MAX / n / 2 + 1, W_INLINE_MAX / n }) {
			passes_both_ways(fragment(rng, W_OP_SEND, whole, n, count));
			passes_both_ways(fragment(rng, W_OP_SEND, whole | W_F_ACK, n, count));
		}
	}
	EXPECT_EQ(rig.counters().broken, 0u);
}

void Slot::streams(uint32_t slots)
{
	Stream stream[2] = { Stream(seed()), Stream(seed() + 1) };
	std::deque<Fragment> under_way[2];
	Fragment next[2] = { stream[0].next(), stream[1].next() }, came;
	uint32_t total = 0;

	for (uint32_t round = 0; total < slots; round++) {
		unsigned int i = rng() % 2;
		Node &a = circuit.node[i], &b = circuit.node[1 - i];

		ASSERT_LT(round, 100 * slots) << "it stands still";
		for (uint32_t n = rng() % kSlots; n > 0 && a.room(next[i]); n--) {
			a.send(next[i]);
			under_way[i].push_back(std::move(next[i]));
			next[i] = stream[i].next();
			total++;
		}
		if (rng() % 2)
			rig.pass();
		for (uint32_t n = rng() % kSlots; n > 0 && b.take(&came); n--) {
			ASSERT_FALSE(under_way[i].empty());
			ASSERT_TRUE(same(under_way[i].front(), came)) << "slot " << b.consumed - 1;
			under_way[i].pop_front();
		}
		if (rng() % 2)
			b.give_credit(b.consumed);
		ASSERT_LE(a.credit() - b.consumed + kSlots, kSlots) << "credit that nobody gave";
	}
	for (unsigned int i = 0; i < 2; i++) {
		rig.settle();
		while (circuit.node[1 - i].take(&came)) {
			ASSERT_TRUE(same(under_way[i].front(), came));
			under_way[i].pop_front();
		}
		EXPECT_TRUE(under_way[i].empty());
		circuit.node[1 - i].give_credit(circuit.node[1 - i].consumed);
		rig.settle();
		EXPECT_EQ(circuit.node[i].credit(), circuit.node[i].sent);
	}
	EXPECT_EQ(rig.counters().slots, total);
	EXPECT_EQ(rig.counters().broken, 0u);
	EXPECT_TRUE(circuit.guards_hold());
}

TEST_P(Slot, StreamsWrapFifoAndRing)
{
	SCOPED_TRACE("VIADUCT_SEED=" + std::to_string(seed()));
	streams(5000);
	EXPECT_GT(circuit.node[0].tx_cursor, 20 * uint64_t{ kPayload });
}

// Slots are counted in 32 bits, their sequence has 30, the number in a notify request 29.
TEST_P(Slot, NumbersWrap)
{
	for (uint64_t top : { 1ull << 29, 1ull << 30, 1ull << 31, 3ull << 30, 1ull << 32 }) {
		SCOPED_TRACE(top);
		Circuit fresh(rig);
		uint32_t start = static_cast<uint32_t>(top - 20);

		fresh.start_at(start);
		for (uint32_t n = start; n != start + 40; n++) {
			Fragment f = fragment(rng, W_OP_SEND, W_F_FIRST | W_F_LAST, n % 113), came;

			fresh.node[1].arm(W_NOTIFY_SLOT, n);
			fresh.node[1].rung();
			ASSERT_TRUE(fresh.node[0].room(f));
			fresh.node[0].send(f);
			rig.settle();
			ASSERT_TRUE(fresh.node[1].take(&came)) << n;
			ASSERT_TRUE(same(f, came));
			EXPECT_TRUE(fresh.node[1].rung() || loses_rings()) << n;
			if (n % 4 == 0)
				fresh.node[1].give_credit(n + 1);
			rig.settle();
		}
		EXPECT_EQ(rig.counters().broken, 0u);
	}
}

// Every buffer of both ways is full at once: no slot waits for another.
TEST_P(Slot, FullBothWaysDrains)
{
	std::vector<std::unique_ptr<Circuit>> many;
	uint8_t whole = W_F_FIRST | W_F_LAST;

	for (int i = 0; i < 6; i++)
		many.push_back(std::make_unique<Circuit>(rig));
	for (int round = 0; round < 3; round++) {
		for (auto &c : many) {
			for (auto &node : c->node) {
				Fragment big = fragment(rng, W_OP_SEND, whole | W_F_BUFFERED,
							kPayload / kSlots);
				for (uint32_t i = 0; i < kSlots; i++) {
					ASSERT_TRUE(node.room(big));
					node.send(big);
				}
				EXPECT_FALSE(node.room(fragment(rng, W_OP_SEND, whole, 0)));
			}
		}
		rig.settle();
		for (auto &c : many) {
			for (auto &node : c->node) {
				Fragment came;

				for (uint32_t i = 0; i < kSlots; i++)
					ASSERT_TRUE(node.take(&came));
				EXPECT_FALSE(node.take(&came));
				node.give_credit(node.consumed);
			}
		}
		rig.settle();
		for (auto &c : many)
			EXPECT_EQ(c->node[0].credit(), c->node[0].sent);
	}
}

TEST_P(Slot, CreditPassesWithoutSlots)
{
	uint8_t whole = W_F_FIRST | W_F_LAST;
	Node &a = circuit.node[0], &b = circuit.node[1];
	Fragment came;

	for (uint32_t i = 0; i < kSlots; i++)
		a.send(fragment(rng, W_OP_SEND, whole, 8));
	rig.settle();
	EXPECT_EQ(a.credit(), 0u) << "given by the relay, not by the receiver";
	for (uint32_t i = 1; i <= kSlots; i++) {
		ASSERT_TRUE(b.take(&came));
		b.give_credit(i);
		rig.settle();
		EXPECT_EQ(a.credit(), i);
		EXPECT_EQ(b.credit(), 0u);
	}
}

// ---- errors -------------------------------------------------------------------------------------

TEST_P(Slot, AnErrorComesAfterAllBeforeIt)
{
	uint8_t whole = W_F_FIRST | W_F_LAST;
	Node &a = circuit.node[0], &b = circuit.node[1];
	uint64_t word = w_error_word(3, 0, W_ERR_SENDER);
	Fragment came;

	b.send(fragment(rng, W_OP_SEND, whole, 1));
	rig.settle();
	ASSERT_TRUE(a.take(&came));
	for (uint32_t i = 0; i < 4; i++)
		a.send(fragment(rng, W_OP_SEND, whole | W_F_BUFFERED, 500));
	a.give_credit(1);
	a.fail(word);
	b.rung();
	rig.pass();
	EXPECT_EQ(b.error(), word);
	EXPECT_EQ(a.error(), 0u) << "it came back";
	EXPECT_EQ(b.credit(), 1u);
	for (uint32_t i = 0; i < 4; i++)
		EXPECT_TRUE(b.take(&came));
	EXPECT_TRUE(b.rung() || loses_rings()) << "armed or not, who gets a report is rung";
}

TEST_P(Slot, NothingFollowsAnError)
{
	uint8_t whole = W_F_FIRST | W_F_LAST;
	Node &a = circuit.node[0], &b = circuit.node[1];
	uint64_t word = w_error_word(0, 0, W_ERR_NO_DESC);
	Fragment came, f = fragment(rng, W_OP_SEND, whole, 9);

	a.fail(word);
	rig.settle();
	a.send(f);
	a.fail(w_error_word(9, 0, W_ERR_PROTOCOL));
	rig.settle();
	EXPECT_FALSE(b.take(&came));
	EXPECT_EQ(b.error(), word) << "said once";
	b.send(f);
	rig.settle();
	EXPECT_TRUE(a.take(&came)) << "the other way is open until its node breaks off too";
	EXPECT_TRUE(same(f, came));
	b.fail(word);
	rig.settle();
	EXPECT_EQ(a.error(), word);
	EXPECT_EQ(rig.counters().broken, 0u);
}

// ---- drain --------------------------------------------------------------------------------------

TEST_P(Slot, DrainForwardsOneSide)
{
	uint8_t whole = W_F_FIRST | W_F_LAST;
	Node &a = circuit.node[0], &b = circuit.node[1];
	uint64_t word = w_error_word(2, 0, W_ERR_SENDER);
	Fragment came;

	for (uint32_t i = 0; i < kSlots; i++)
		a.send(fragment(rng, W_OP_SEND, whole, 112));
	b.send(fragment(rng, W_OP_SEND, whole, 3));
	rl_drain(circuit.rl, 0);
	for (uint32_t i = 0; i < kSlots; i++)
		ASSERT_TRUE(b.take(&came));
	EXPECT_FALSE(a.take(&came));
	b.give_credit(kSlots);
	b.fail(word);
	rl_drain(circuit.rl, 1);
	EXPECT_TRUE(a.take(&came));
	EXPECT_EQ(a.credit(), kSlots);
	EXPECT_EQ(a.error(), word);
}

TEST_P(Slot, WhatBreaksInADrainIsReported)
{
	circuit.node[0].send_raw(header(99, 0, 0));
	rl_drain(circuit.rl, 0);
	EXPECT_EQ(rig.counters().broken, 1u);
	EXPECT_EQ(rig.notified, 1u);
	EXPECT_EQ(rl_broken(rig.relay), &circuit);
	rl_drain(circuit.rl, 1);
	EXPECT_EQ(rig.pass(), 0u);
	EXPECT_EQ(rl_broken(rig.relay), nullptr);
}

INSTANTIATE_TEST_SUITE_P(Ports, Slot, ::testing::Values(kPlain, kStrict, kLossy, kLossyStrict),
			 name_of);

} // namespace
