/* SPDX-License-Identifier: BSD-2-Clause */
#include "u_idle.h"

#include "u_base.h"

/* The number of polls before the first yield; 0: none. */
static uint32_t most_polls(enum u_idle_mode mode)
{
	switch (mode) {
	case U_IDLE_SPIN:
		return U_IDLE_SPIN_POLLS;
	case U_IDLE_ADAPTIVE:
		return U_IDLE_POLLS;
	default:
		return 0;
	}
}

/* The past may be shared with other threads, so a value is stored only if it changes. */
static void set_past(_Atomic uint32_t *field, uint32_t value)
{
	if (atomic_load_explicit(field, memory_order_relaxed) != value)
		atomic_store_explicit(field, value, memory_order_relaxed);
}

void u_idle_past_init(struct u_idle_past *past, enum u_idle_mode mode)
{
	atomic_store_explicit(&past->polls, most_polls(mode), memory_order_relaxed);
	atomic_store_explicit(&past->sleeps, 0, memory_order_relaxed);
	atomic_store_explicit(&past->lossy, 0, memory_order_relaxed);
}

/* Is there contention?  Called once for each wait: it counts the U_IDLE_SLEEPS waits down that sleep at once. */
static bool sleeps_at_once(struct u_idle *i)
{
	uint32_t sleeps = atomic_load_explicit(&i->past->sleeps, memory_order_relaxed);

	if (sleeps == 0)
		return false;
	atomic_store_explicit(&i->past->sleeps, sleeps - 1, memory_order_relaxed);
	return true;
}

void u_idle_yielded(struct u_idle *i, int64_t took_ns)
{
	uint32_t polls = atomic_load_explicit(&i->past->polls, memory_order_relaxed);
	bool alone = took_ns < U_IDLE_ALONE_NS;

	i->shared = !alone;
	if (i->mode == U_IDLE_ADAPTIVE)
		polls = alone || took_ns >= U_IDLE_SHARED_NS ? U_IDLE_POLLS : polls / 2;
	set_past(&i->past->polls, polls);
	i->left = alone || i->mode == U_IDLE_SPIN ? polls : 0;
	if (alone)
		return;
	i->given_ns += took_ns;
	if (i->given_ns >= U_IDLE_CROWDED_NS) {
		i->given_ns = 0;
		set_past(&i->past->sleeps, U_IDLE_SLEEPS);
	}
}

enum u_idle_step u_idle_offer(struct u_idle *i)
{
	int64_t before;

	if (i->mode == U_IDLE_BLOCK || (i->mode != U_IDLE_SPIN && sleeps_at_once(i)))
		return U_IDLE_SLEEP;
	before = u_now_ns();
	if (i->since == 0)
		i->since = before;
	if (i->mode == U_IDLE_ADAPTIVE && before - i->since >= U_IDLE_NS)
		return U_IDLE_SLEEP;
	u_yield();
	i->now = u_now_ns();
	u_idle_yielded(i, i->now - before);
	return U_IDLE_YIELDED;
}

int64_t u_idle_cap(const struct u_idle *i)
{
	if (i->cap != 0)
		return i->cap;
	return atomic_load_explicit(&i->past->lossy, memory_order_relaxed) != 0
		       ? U_IDLE_CAP_LOSSY_NS
		       : U_IDLE_CAP_NS;
}

void u_idle_slept(struct u_idle *i, bool capped, bool came)
{
	uint32_t lossy = atomic_load_explicit(&i->past->lossy, memory_order_relaxed);

	if (capped && came)
		set_past(&i->past->lossy, U_IDLE_LOSSY_SLEEPS);
	else if (lossy > 0)
		set_past(&i->past->lossy, lossy - 1);
	if (came)
		u_idle_moved(i);
	else
		i->cap = (int64_t)u_min64((uint64_t)u_idle_cap(i) * 2, U_IDLE_CAP_MOST_NS);
}
