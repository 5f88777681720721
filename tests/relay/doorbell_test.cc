// SPDX-License-Identifier: BSD-2-Clause
// Doorbells: a node that is armed is rung when it is due, and a thread that sleeps has armed its
// own.
#include "relay_rig.h"

using namespace relay_test;

namespace {

class Doorbell : public ::testing::TestWithParam<Kind> {
protected:
	Doorbell() : rig(GetParam(), 1, RL_BLOCK, true), circuit(rig) { b.rung(); }

	void send(unsigned int from, uint32_t n = 1)
	{
		for (uint32_t i = 0; i < n; i++)
			circuit.node[from].send(
				fragment(rng, W_OP_SEND, W_F_FIRST | W_F_LAST, i % 113));
	}

	std::mt19937 rng{ seed() };
	Rig rig;
	Circuit circuit;
	Node &a = circuit.node[0], &b = circuit.node[1];
};

TEST_P(Doorbell, NobodyRingsAPolledNode)
{
	send(0, 3);
	send(1, 3);
	rig.settle();
	Fragment came;
	while (b.take(&came)) {}
	b.give_credit(b.consumed);
	rig.settle();
	EXPECT_FALSE(b.rung());
	EXPECT_FALSE(a.rung());
	EXPECT_EQ(rig.counters().rings, 0u);
}

TEST_P(Doorbell, RingsOnceWithTheSlotThatIsNamed)
{
	b.arm(W_NOTIFY_SLOT, 3);
	for (uint32_t n = 0; n < 3; n++) {
		send(0);
		rig.settle();
		EXPECT_FALSE(b.rung()) << "slot " << n;
	}
	send(0);
	rig.settle();
	EXPECT_TRUE(b.rung());
	send(0, 2);
	rig.settle();
	EXPECT_FALSE(b.rung()) << "twice for one word";
	EXPECT_EQ(rig.counters().rings, 1u);
	b.arm(W_NOTIFY_SLOT, 6);
	rig.settle();
	EXPECT_FALSE(b.rung()) << "the slot has not come";
	send(0);
	rig.settle();
	EXPECT_TRUE(b.rung());
	EXPECT_FALSE(a.rung());
}

TEST_P(Doorbell, RingsOnceForABatchThatGoesPast)
{
	b.arm(W_NOTIFY_SLOT | W_NOTIFY_FENCE, 2);
	send(0, 6);
	rig.settle();
	EXPECT_TRUE(b.rung());
	EXPECT_EQ(rig.counters().rings, 1u);
}

// A notify request that comes when its slot was published already must be noticed by the end that arms.
TEST_P(Doorbell, RingsWithTheNextSlotWhenArmedLate)
{
	send(0, 2);
	rig.settle();
	b.arm(W_NOTIFY_SLOT, 1);
	rig.settle();
	EXPECT_FALSE(b.rung());
	send(0);
	rig.settle();
	EXPECT_TRUE(b.rung());
}

TEST_P(Doorbell, RingsEachTimeForCredit)
{
	Fragment came;

	send(0, 4);
	rig.settle();
	a.arm(W_NOTIFY_CREDIT, 0);
	a.rung();
	for (uint32_t n = 1; n <= 4; n++) {
		ASSERT_TRUE(b.take(&came));
		b.give_credit(n);
		rig.settle();
		EXPECT_TRUE(a.rung()) << n;
	}
	rig.settle();
	EXPECT_FALSE(a.rung());
	EXPECT_EQ(rig.counters().rings, 4u);
}

// ---- the thread's own doorbells ----------------------------------------------------------------

TEST_P(Doorbell, AnArmedCircuitAsksForTheNextSlot)
{
	Fragment came;

	send(0, 3);
	rig.settle();
	EXPECT_EQ(a.notify(), 0u);
	EXPECT_FALSE(rig.arm());
	EXPECT_EQ(a.notify(), w_notify(W_NOTIFY_SLOT, 3));
	EXPECT_EQ(b.notify(), w_notify(W_NOTIFY_SLOT | W_NOTIFY_CREDIT, 0)) << "credit is out";
	send(0);
	EXPECT_EQ(rig.pass(), 0u) << "it looks at what is polled alone";
	a.ring_if_due();
	rig.settle();
	EXPECT_EQ(b.has_come(), true);
	a.port->ops->flush(a.port);
	rig.here[0]->ops->flush(rig.here[0]);
	EXPECT_EQ(a.notify(), 0u) << "polled again";
	for (int i = 0; i < 4; i++)
		ASSERT_TRUE(b.take(&came));
	b.give_credit(4);
	rig.settle();
	EXPECT_FALSE(rig.arm());
	EXPECT_EQ(b.notify(), w_notify(W_NOTIFY_SLOT, 0)) << "no credit is out";
}

// Other doorbells interrupt the thread all the time, and this one was lost.
TEST_P(Doorbell, WhatWasNotRungForIsFoundInTime)
{
	struct rl_thread *t = &rig.relay->threads[0];
	int64_t now = 1;

	for (uint32_t n = 0; n < 3; n++, now += RL_CHECK_NS) {
		EXPECT_FALSE(rl_thread_check(t, now));
		EXPECT_FALSE(rig.arm());
		send(0);
		port_irq_kick(rig.relay->cfg.irq, ~0u);
		EXPECT_EQ(rig.pass(), 0u);
		EXPECT_FALSE(rl_thread_check(t, now + RL_CHECK_NS - 1)) << "not all the time";
		EXPECT_TRUE(rl_thread_check(t, now + RL_CHECK_NS));
		rig.settle();
		Fragment came;
		EXPECT_TRUE(b.take(&came));
		now += RL_CHECK_NS;
	}
}

TEST_P(Doorbell, CreditWakes)
{
	Fragment came;

	send(0, 2);
	rig.settle();
	EXPECT_FALSE(rig.arm());
	ASSERT_TRUE(b.take(&came));
	b.give_credit_and_ring();
	rig.settle();
	EXPECT_EQ(a.credit(), 1u);
}

TEST_P(Doorbell, AnErrorWakes)
{
	EXPECT_FALSE(rig.arm());
	b.fail(w_error_word(0, 0, W_ERR_PROTOCOL));
	rig.settle();
	EXPECT_NE(a.error(), 0u);
}

// Slots that came before their sender could see the notify request are found by the end that arms.
TEST_P(Doorbell, ArmingFindsWhatCame)
{
	rig.settle();
	send(1);
	EXPECT_TRUE(rig.arm());
	rig.settle();
	EXPECT_TRUE(a.has_come());
	EXPECT_FALSE(rig.arm());
	send(0);
	a.ring_if_due();
	rig.settle();
	EXPECT_TRUE(b.has_come());
}

TEST_P(Doorbell, StaysAwakeAfterADrain)
{
	EXPECT_FALSE(rig.arm());
	send(0);
	rl_drain(circuit.rl, 0);
	a.ring_if_due();
	rig.settle();
	EXPECT_FALSE(rig.arm());
	send(0);
	a.ring_if_due();
	rig.settle();
	Fragment came;
	EXPECT_TRUE(b.take(&came));
	EXPECT_TRUE(b.take(&came)) << "the ring that it needs was used up by the drain";
}

TEST_P(Doorbell, OnlyWhatMovesIsPolledByTheTick)
{
	Circuit other(rig);
	struct rl_thread *t = &rig.relay->threads[0];

	for (int i = 0; i < 2; i++) {
		send(0);
		rig.settle();
		rl_thread_lock(t);
		rl_thread_arm(t, false);
		rl_thread_unlock(t);
	}
	EXPECT_EQ(a.notify(), 0u) << "it moved between two ticks";
	EXPECT_EQ(other.node[0].notify(), w_notify(W_NOTIFY_SLOT, 0));
}

INSTANTIATE_TEST_SUITE_P(Ports, Doorbell, ::testing::Values(kPlain, kStrict), name_of);

} // namespace
