/* SPDX-License-Identifier: BSD-2-Clause */
/* Waiting: poll, then yield, then sleep. */
#include <sched.h>

#include "u_futex.h"
#include "u_time.h"
#include "vi_core.h"
#include "vi_provider.h"

#define ADAPTIVE_POLLS 12u  /* about a microsecond: a peer that is at it */
#define ADAPTIVE_YIELDS 20u /* a peer that wants this very processor */
/* A yield that took less found nobody; one that took more met one who does not yield back. */
#define YIELD_ALONE_NS 1000
#define YIELD_SHARED_NS 50000
#define SPIN_POLLS 256u /* well below 50 us: then others get their turn */
/*
 * The first cap on a sleep is longer than a tick: to set the processor's next timer, and to take
 * it back, costs 10 us each in a virtual machine.  Where wake-ups get lost it is short.
 */
#define SLEEP_FIRST_NS INT64_C(16000000)
#define SLEEP_LOSSY_NS INT64_C(1000000)
#define SLEEP_MOST_NS INT64_C(256000000)
#define LOSSY_SLEEPS 64u /* so many are short after one that its cap ended */

static int poll_paused(int (*try)(void *), void *arg, uint32_t count)
{
	int got = 0;

	while (got == 0 && count-- > 0) {
		u_pause();
		got = try(arg);
	}
	return got;
}

static int poll_yielding(int (*try)(void *), void *arg, uint32_t count)
{
	int got = 0;

	while (got == 0 && count-- > 0) {
		sched_yield();
		got = try(arg);
	}
	return got;
}

static int64_t sooner(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* A sleep that its cap ended, and for which something had come, was not rung for. */
static void learn_from_sleep(struct vi_nic *nic, bool capped, bool came)
{
	uint32_t lossy = atomic_load_explicit(&nic->lossy_sleeps, memory_order_relaxed);

	if (capped && came)
		atomic_store_explicit(&nic->lossy_sleeps, LOSSY_SLEEPS, memory_order_relaxed);
	else if (lossy > 0)
		atomic_store_explicit(&nic->lossy_sleeps, lossy - 1, memory_order_relaxed);
}

static int64_t first_cap(const struct vi_nic *nic)
{
	return atomic_load_explicit(&nic->lossy_sleeps, memory_order_relaxed) != 0 ? SLEEP_LOSSY_NS
										   : SLEEP_FIRST_NS;
}

/* Sleeps once, and tries.  What ended the sleep has been taken in: it does not wait for the arming. */
static int sleep_once(struct vi_nic *nic, uint32_t ticket, int (*try)(void *), void *arg,
		      int64_t deadline, int64_t cap)
{
	int64_t until = sooner(deadline, u_now_ns() + cap);
	int got;

	atomic_fetch_add_explicit(&nic->sleeps, 1, memory_order_relaxed);
	U_TRACE(sleep_begins, nic, ticket);
	nic->ops->sleep(nic, ticket, until);
	U_TRACE(sleep_ended, nic, ticket);
	got = try(arg);
	learn_from_sleep(nic, until < deadline && u_now_ns() >= until, got != 0);
	return got;
}

/*
 * Arm, look once more, sleep.  What comes after the arming ends the sleep, so
 * the cap on its length is only the last defence.
 */
static int sleep_until(struct vi_nic *nic, int (*try)(void *), void *arg, int64_t deadline)
{
	const struct vi_provider_ops *ops = nic->ops;
	int64_t cap = first_cap(nic);
	int got = 0;

	while (got == 0) {
		uint32_t ticket = ops->arm(nic);

		got = try(arg);
		if (got == 0 && ops->progress(nic) > 0) {
			got = try(arg);
			cap = first_cap(nic);
		}
		if (got != 0 || u_time_left(deadline) == 0)
			return got;
		got = sleep_once(nic, ticket, try, arg, deadline, cap);
		cap = sooner(cap * 2, SLEEP_MOST_NS);
	}
	return got;
}

static int sleep_on(struct vi_nic *nic, _Atomic uint32_t *sleepers, int (*try)(void *), void *arg,
		    int64_t deadline)
{
	int got;

	if (sleepers == NULL)
		return sleep_until(nic, try, arg, deadline);
	atomic_fetch_add_explicit(sleepers, 1, memory_order_seq_cst);
	/* Who completes from here on sees the sleeper, or the look after the arming sees it. */
	u_membarrier_own();
	got = sleep_until(nic, try, arg, deadline);
	atomic_fetch_sub_explicit(sleepers, 1, memory_order_relaxed);
	return got;
}

/*
 * A yield that came back soon, but not at once: the peer, which waits too, has this very
 * processor, and polling only keeps it from answering.  Fewer polls next time, else all again.
 */
static void learn_from_yield(struct vi_nic *nic, uint32_t polls, int64_t took_ns)
{
	bool shared = took_ns >= YIELD_ALONE_NS && took_ns < YIELD_SHARED_NS;
	uint32_t next = shared ? polls / 2 : ADAPTIVE_POLLS;

	if (next != polls)
		atomic_store_explicit(&nic->adaptive_polls, next, memory_order_relaxed);
}

static int wait_adaptive(struct vi_nic *nic, _Atomic uint32_t *sleepers, int (*try)(void *),
			 void *arg, int64_t deadline)
{
	uint32_t polls = atomic_load_explicit(&nic->adaptive_polls, memory_order_relaxed);
	int got = poll_paused(try, arg, polls);
	int64_t start;

	if (got == 0) {
		start = u_now_ns();
		sched_yield();
		learn_from_yield(nic, polls, u_now_ns() - start);
		got = try(arg);
	}
	if (got == 0)
		got = poll_yielding(try, arg, ADAPTIVE_YIELDS - 1);
	return got != 0 ? got : sleep_on(nic, sleepers, try, arg, deadline);
}

void vi_wait_init(struct vi_nic *nic, enum vi_wait_mode mode)
{
	nic->wait_mode = mode;
	atomic_store_explicit(&nic->adaptive_polls, ADAPTIVE_POLLS, memory_order_relaxed);
	atomic_store_explicit(&nic->lossy_sleeps, 0, memory_order_relaxed);
}

static int wait_awake(int (*try)(void *), void *arg, int64_t deadline, uint32_t polls)
{
	int got = 0;

	while (got == 0 && u_time_left(deadline) != 0) {
		got = poll_paused(try, arg, polls);
		if (got == 0)
			got = poll_yielding(try, arg, 1);
	}
	return got;
}

int vi_wait_on(struct vi_nic *nic, _Atomic uint32_t *sleepers, int (*try)(void *), void *arg,
	       int64_t deadline)
{
	int got = try(arg);

	if (got != 0 || u_time_left(deadline) == 0)
		return got;
	switch (nic->wait_mode) {
	case VI_WAIT_SPIN:
		return wait_awake(try, arg, deadline, SPIN_POLLS);
	case VI_WAIT_YIELD:
		return wait_awake(try, arg, deadline, 0);
	case VI_WAIT_BLOCK:
		return sleep_on(nic, sleepers, try, arg, deadline);
	default:
		return wait_adaptive(nic, sleepers, try, arg, deadline);
	}
}

int vi_wait(struct vi_nic *nic, int (*try)(void *), void *arg, int64_t deadline)
{
	return vi_wait_on(nic, NULL, try, arg, deadline);
}
