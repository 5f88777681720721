// SPDX-License-Identifier: BSD-2-Clause The protocols between threads and processes under the
// memory model of C11, which allows what a weakly ordered processor does: stores seen late and out
// of order, loads that return old values.  Relacy runs every interleaving and, for each load, every
// value that it may return.  Each weakened variant must be refuted: a fence or an order without
// which everything still holds is not needed.
//
// docs/memory-order.md names the functions that each test stands for.
#include <gtest/gtest.h>

#include <ostream>

#include <relacy/relacy.hpp>

/* Macros of Relacy, for memory that its threads allocate. */
#undef new
#undef delete

namespace {

using rl::mo_acquire;
using rl::mo_relaxed;
using rl::mo_release;
using rl::mo_seq_cst;

template <typename Suite> bool holds()
{
	std::ostream nowhere(nullptr);
	rl::test_params params;

	params.search_type = rl::sched_full;
	params.output_stream = &nowhere;
	params.progress_stream = &nowhere;
	params.execution_depth_limit = 10000;
	return rl::simulate<Suite>(params);
}

#define FULL_FENCE() rl::atomic_thread_fence(mo_seq_cst, $)

/*
 * membarrier(): every other thread that runs passes a full fence between two of its steps.  Its own
 * state stands for the kernel's and is no part of the model; only one simulated thread runs at a
 * time.
 */
template <unsigned Threads> class Barrier {
public:
	void reset()
	{
		for (unsigned i = 0; i < Threads; i++)
			asked[i] = ended[i] = false;
	}

	/* A thread that relies on the barrier calls this before each step. */
	void step(unsigned me)
	{
		if (asked[me]) {
			FULL_FENCE();
			asked[me] = false;
		}
	}

	void end(unsigned me)
	{
		step(me);
		FULL_FENCE();
		ended[me] = true;
	}

	void call(unsigned me)
	{
		FULL_FENCE();
		for (unsigned i = 0; i < Threads; i++)
			if (i != me && !ended[i])
				asked[i] = true;
		for (unsigned i = 0; i < Threads; i++)
			while (i != me && asked[i] && !ended[i])
				rl::yield(1, $);
		FULL_FENCE();
	}

private:
	bool asked[Threads], ended[Threads];
};

// ---- slots and credit ----

enum { SLOT_GOOD, SLOT_PLAIN_SEQ, SLOT_PLAIN_POLL, SLOT_PLAIN_CREDIT, SLOT_PLAIN_ROOM };

/* One slot, used twice: the second message may not be stored before the first was read. */
template <int Kind> struct Slot : rl::test_suite<Slot<Kind>, 2> {
	rl::var<int> payload;
	rl::atomic<int> seq, credit;

	void before()
	{
		payload($) = 0;
		seq($) = 0;
		credit($) = 0;
	}

	void send()
	{
		for (int n = 1; n <= 2; n++) {
			while (credit.load(Kind == SLOT_PLAIN_ROOM ? mo_relaxed : mo_acquire, $) !=
			       n - 1)
				rl::yield(1, $);
			payload($) = n * 10;
			seq.store(n, Kind == SLOT_PLAIN_SEQ ? mo_relaxed : mo_release, $);
		}
	}

	void receive()
	{
		for (int n = 1; n <= 2; n++) {
			while (seq.load(Kind == SLOT_PLAIN_POLL ? mo_relaxed : mo_acquire, $) != n)
				rl::yield(1, $);
			RL_ASSERT(payload($) == n * 10);
			credit.store(n, Kind == SLOT_PLAIN_CREDIT ? mo_relaxed : mo_release, $);
		}
	}

	void thread(unsigned index)
	{
		if (index == 0)
			send();
		else
			receive();
	}
};

TEST(LitmusSlot, PublishedWholeAndNotReusedEarly)
{
	EXPECT_TRUE(holds<Slot<SLOT_GOOD>>());
	EXPECT_FALSE(holds<Slot<SLOT_PLAIN_SEQ>>());
	EXPECT_FALSE(holds<Slot<SLOT_PLAIN_POLL>>());
	EXPECT_FALSE(holds<Slot<SLOT_PLAIN_CREDIT>>());
	EXPECT_FALSE(holds<Slot<SLOT_PLAIN_ROOM>>());
}

// ---- u_out_fence() ----

/* Two relaxed stores with a fence between them; the peer loads the words in the opposite order. */
template <bool Fence> struct OutFence : rl::test_suite<OutFence<Fence>, 2> {
	rl::atomic<int> first, second;

	void before()
	{
		first($) = 0;
		second($) = 0;
	}

	void thread(unsigned index)
	{
		if (index == 0) {
			first.store(1, mo_relaxed, $);
			if (Fence)
				rl::atomic_thread_fence(mo_release, $);
			second.store(1, mo_relaxed, $);
		} else if (second.load(mo_acquire, $) == 1) {
			RL_ASSERT(first.load(mo_relaxed, $) == 1);
		}
	}
};

TEST(LitmusOut, FenceOrdersStores)
{
	EXPECT_TRUE(holds<OutFence<true>>());
	EXPECT_FALSE(holds<OutFence<false>>());
}

// ---- going to sleep: notify requests, arming, credit -------------------------------------------

enum {
	WAKE_BARRIER,	 /* the sleeper's membarrier */
	WAKE_FENCES,	 /* both sides fence: no membarrier, or the request asked for it */
	WAKE_NONE,	 /* neither side fences */
	WAKE_HALF_PEER,	 /* only the sender fences */
	WAKE_HALF_OWN,	 /* only the sleeper fences */
	WAKE_NO_RECHECK, /* the sleeper does not check again after arming */
};

/*
 * Thread 0 publishes, then checks whether it has to ring; thread 1 stores its notify request, then
 * checks once more.  Slots and notify requests, credit and notify requests, `done` and `sleepers`,
 * `tx_waiting` and `armed` all follow this pattern.
 */
template <int Kind> struct Wake : rl::test_suite<Wake<Kind>, 2> {
	static const bool barrier = Kind == WAKE_BARRIER || Kind == WAKE_NO_RECHECK;
	rl::atomic<int> seq, notify;
	Barrier<2> members;
	bool rang, sleeps;

	void before()
	{
		seq($) = 0;
		notify($) = 0;
		members.reset();
		rang = sleeps = false;
	}

	void thread(unsigned index)
	{
		if (index == 0) {
			members.step(0);
			seq.store(1, mo_release, $);
			if (Kind == WAKE_FENCES || Kind == WAKE_HALF_PEER)
				FULL_FENCE();
			members.step(0);
			rang = notify.load(mo_relaxed, $) != 0;
			members.end(0);
			return;
		}
		notify.store(1, mo_release, $);
		if (barrier)
			members.call(1);
		else if (Kind == WAKE_FENCES || Kind == WAKE_HALF_OWN)
			FULL_FENCE();
		sleeps = Kind == WAKE_NO_RECHECK || seq.load(mo_acquire, $) == 0;
	}

	void after() { RL_ASSERT(!sleeps || rang); }
};

TEST(LitmusWake, WhoSleepsIsRungFor)
{
	EXPECT_TRUE(holds<Wake<WAKE_BARRIER>>());
	EXPECT_TRUE(holds<Wake<WAKE_FENCES>>());
	EXPECT_FALSE(holds<Wake<WAKE_NONE>>());
	EXPECT_FALSE(holds<Wake<WAKE_HALF_PEER>>());
	EXPECT_FALSE(holds<Wake<WAKE_HALF_OWN>>());
	EXPECT_FALSE(holds<Wake<WAKE_NO_RECHECK>>());
}

/*
 * Without membarrier: raising the counter of sleepers by a sequentially consistent operation is not
 * a fence before the check of `done`, which is a weaker load.
 */
template <bool Fence> struct Sleepers : rl::test_suite<Sleepers<Fence>, 2> {
	rl::atomic<int> done, sleepers;
	bool woke, sleeps;

	void before()
	{
		done($) = 0;
		sleepers($) = 0;
		woke = sleeps = false;
	}

	void thread(unsigned index)
	{
		if (index == 0) {
			done.store(1, mo_release, $);
			FULL_FENCE();
			woke = sleepers.load(mo_relaxed, $) != 0;
		} else {
			sleepers.fetch_add(1, mo_seq_cst, $);
			if (Fence)
				FULL_FENCE();
			sleeps = done.load(mo_acquire, $) == 0;
		}
	}

	void after() { RL_ASSERT(!sleeps || woke); }
};

TEST(LitmusWake, SleepersFenceWhereMembarrierIsMissing)
{
	EXPECT_TRUE(holds<Sleepers<true>>());
	EXPECT_FALSE(holds<Sleepers<false>>());
}

/* The interrupt word: ringing and sleeping rely on sequentially consistent operations alone. */
template <bool Strong> struct Interrupt : rl::test_suite<Interrupt<Strong>, 2> {
	static const rl::memory_order order = Strong ? mo_seq_cst : rl::mo_acq_rel;
	static const rl::memory_order look = Strong ? mo_seq_cst : mo_acquire;
	rl::atomic<int> seq, sleepers;
	bool woke, sleeps;

	void before()
	{
		seq($) = 0;
		sleepers($) = 0;
		woke = sleeps = false;
	}

	void thread(unsigned index)
	{
		if (index == 0) {
			seq.fetch_add(1, order, $);
			woke = sleepers.load(look, $) != 0;
		} else {
			sleepers.fetch_or(1, order, $);
			/* The kernel compares after a full fence. */
			if (Strong)
				FULL_FENCE();
			sleeps = seq.load(look, $) == 0;
		}
	}

	void after() { RL_ASSERT(!sleeps || woke); }
};

TEST(LitmusWake, InterruptWord)
{
	EXPECT_TRUE(holds<Interrupt<true>>());
	EXPECT_FALSE(holds<Interrupt<false>>());
}

// ---- the biased lock ----

enum {
	BIASED_GOOD,
	BIASED_NO_BARRIER,
	BIASED_NO_RECHECK,
	BIASED_NO_WAIT,
	BIASED_PLAIN_LEAVE,
	BIASED_PLAIN_SEEN
};

/* Thread 0 owns the bias and takes the lock twice, if it still does; thread 1 revokes the bias. */
template <int Kind> struct Biased : rl::test_suite<Biased<Kind>, 2> {
	rl::atomic<int> owner, seq;
	rl::var<int> data;
	Barrier<2> members;

	void before()
	{
		owner($) = 1;
		seq($) = 0;
		data($) = 0;
		members.reset();
	}

	void own()
	{
		for (int i = 0; i < 2; i++) {
			const int was = seq.load(mo_relaxed, $);

			members.step(0);
			if (owner.load(mo_relaxed, $) != 1)
				break;
			members.step(0);
			seq.store(was + 1, mo_relaxed, $);
			members.step(0);
			const bool mine = Kind == BIASED_NO_RECHECK ||
					  owner.load(mo_acquire, $) == 1;
			members.step(0);
			if (mine)
				data($) = data($) + 1;
			members.step(0);
			seq.store(was + 2, Kind == BIASED_PLAIN_LEAVE ? mo_relaxed : mo_release, $);
		}
		members.end(0);
	}

	void take_away()
	{
		owner.store(0, mo_relaxed, $);
		if (Kind != BIASED_NO_BARRIER)
			members.call(1);
		while (Kind != BIASED_NO_WAIT &&
		       (seq.load(Kind == BIASED_PLAIN_SEEN ? mo_relaxed : mo_acquire, $) & 1) != 0)
			rl::yield(1, $);
		data($) = data($) + 10;
	}

	void thread(unsigned index)
	{
		if (index == 0)
			own();
		else
			take_away();
	}
};

TEST(LitmusBiased, NobodyMeetsInside)
{
	EXPECT_TRUE(holds<Biased<BIASED_GOOD>>());
	EXPECT_FALSE(holds<Biased<BIASED_NO_BARRIER>>());
	EXPECT_FALSE(holds<Biased<BIASED_NO_RECHECK>>());
	EXPECT_FALSE(holds<Biased<BIASED_NO_WAIT>>());
	EXPECT_FALSE(holds<Biased<BIASED_PLAIN_LEAVE>>());
	EXPECT_FALSE(holds<Biased<BIASED_PLAIN_SEEN>>());
}

enum { GRACE_GOOD, GRACE_NO_BARRIER, GRACE_NO_WAIT };

/*
 * Deregistration: a thread that found the handle under the lock has finished with the memory before
 * it is freed.
 */
template <int Kind> struct Grace : rl::test_suite<Grace<Kind>, 2> {
	rl::atomic<int> seq, handle;
	rl::var<int> memory;
	Barrier<2> members;

	void before()
	{
		seq($) = 0;
		handle($) = 1;
		memory($) = 7;
		members.reset();
	}

	void thread(unsigned index)
	{
		if (index == 0) {
			members.step(0);
			seq.store(1, mo_relaxed, $);
			members.step(0);
			const bool found = handle.load(mo_acquire, $) == 1;
			members.step(0);
			if (found)
				RL_ASSERT(memory($) == 7);
			members.step(0);
			seq.store(2, mo_release, $);
			members.end(0);
			return;
		}
		handle.store(0, mo_relaxed, $);
		if (Kind != GRACE_NO_BARRIER)
			members.call(1);
		while (Kind != GRACE_NO_WAIT && (seq.load(mo_acquire, $) & 1) != 0)
			rl::yield(1, $);
		memory($) = 0;
	}
};

TEST(LitmusBiased, GracePeriod)
{
	EXPECT_TRUE(holds<Grace<GRACE_GOOD>>());
	EXPECT_FALSE(holds<Grace<GRACE_NO_BARRIER>>());
	EXPECT_FALSE(holds<Grace<GRACE_NO_WAIT>>());
}

// ---- tables and lists ----

/* Handles and regions: the fields first, then the id that makes them live. */
template <bool Ordered> struct Table : rl::test_suite<Table<Ordered>, 2> {
	rl::var<int> object;
	rl::atomic<int> id;

	void before() { id($) = 0; }

	void thread(unsigned index)
	{
		if (index == 0) {
			object($) = 5;
			id.store(1, Ordered ? mo_release : mo_relaxed, $);
		} else if (id.load(mo_acquire, $) == 1) {
			RL_ASSERT(object($) == 5);
		}
	}
};

TEST(LitmusTable, WhoSeesTheIdSeesTheObject)
{
	EXPECT_TRUE(holds<Table<true>>());
	EXPECT_FALSE(holds<Table<false>>());
}

/* A CQ's list of queues with new completions: two threads push, one takes. */
template <bool Ordered> struct Marked : rl::test_suite<Marked<Ordered>, 3> {
	rl::var<int> next[2];
	rl::atomic<int> first;

	void before() { first($) = 0; }

	void push(int me)
	{
		int head = first.load(mo_relaxed, $);

		do {
			next[me]($) = head;
		} while (!first.compare_exchange_weak(
			head, me + 1, Ordered ? mo_release : mo_relaxed, $, mo_relaxed, $));
	}

	void thread(unsigned index)
	{
		if (index < 2) {
			push(static_cast<int>(index));
			return;
		}
		int at = first.exchange(0, Ordered ? mo_acquire : mo_relaxed, $);
		for (int n = 0; at != 0; n++) {
			RL_ASSERT(n < 2);
			at = next[at - 1]($);
		}
	}
};

TEST(LitmusTable, MarkedQueues)
{
	EXPECT_TRUE(holds<Marked<true>>());
	EXPECT_FALSE(holds<Marked<false>>());
}

} // namespace
