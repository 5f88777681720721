/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting: poll, then yield, then sleep; under contention, sleep without yielding (u_contention.h).
 */
#include <sched.h>

#include "u_cancel.h"
#include "u_contention.h"
#include "u_futex.h"
#include "u_time.h"
#include "u_trace.h"
#include "vi_nic.h"
#include "vi_provider.h"
#include "vi_wait.h"

#define ADAPTIVE_POLLS 12u    /* about a microsecond: a peer that is at it */
#define ADAPTIVE_YIELDS 20u   /* a peer that wants this very processor */
#define YIELD_SHARED_NS 50000 /* a yield that took more met a thread that does not yield back */
#define SPIN_POLLS 256u	      /* well below 50 us: then others get their turn */
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

/* Ends with its count, with something, or under contention: then it is time to sleep. */
static int poll_yielding(struct u_contention *c, int (*try)(void *), void *arg, uint32_t count)
{
	int got = 0;

	while (got == 0 && count-- > 0 && c->sleeps == 0) {
		u_contention_offer(c, u_now_ns());
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

/* A wait that may be long: what it is for, and what is to be left in order when it is cancelled. */
struct waiter {
	struct vi_nic *nic;
	_Atomic uint32_t *sleepers; /* the thread is counted there while `counted` */
	struct vi_ref *held;	    /* by the caller */
	int (*try)(void *arg);
	void *arg;
	int64_t deadline;
	int cancel; /* the state of cancellation that the thread came with */
	bool counted;
};

static void wait_cancelled(void *arg)
{
	struct waiter *w = arg;

	if (w->counted)
		atomic_fetch_sub_explicit(w->sleepers, 1, memory_order_relaxed);
	vi_ref_put(w->held);
}

/* Nothing is held but what wait_cancelled() gives back, and nothing was taken. */
static void cancellation_point(const struct waiter *w)
{
	if (w->cancel == PTHREAD_CANCEL_DISABLE)
		return;
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	pthread_testcancel();
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
}

/* Runs `wait` so that it may be cancelled at its cancellation points, and nowhere else. */
static int wait_long(struct waiter *w, int (*wait)(struct waiter *))
{
	int got;

	w->cancel = u_cancel_off();
	pthread_cleanup_push(wait_cancelled, w);
	got = wait(w);
	pthread_cleanup_pop(0);
	u_cancel_back(&w->cancel);
	return got;
}

/* Sleeps once, and tries.  What ended the sleep has been taken in: it does not wait for the arming. */
static int sleep_once(const struct waiter *w, uint32_t ticket, int64_t cap)
{
	int64_t until = sooner(w->deadline, u_now_ns() + cap);
	struct vi_nic *nic = w->nic;
	int got;

	atomic_fetch_add_explicit(&nic->sleeps, 1, memory_order_relaxed);
	U_TRACE(sleep_begins, nic, ticket);
	nic->ops->sleep(nic, ticket, until);
	U_TRACE(sleep_ended, nic, ticket);
	got = w->try(w->arg);
	learn_from_sleep(nic, until < w->deadline && u_now_ns() >= until, got != 0);
	return got;
}

/*
 * Arm, checked once more, sleep.  What comes after the arming ends the sleep, so
 * the cap on its length is only the last defence, and the time until a thread
 * that was cancelled ends.
 */
static int sleep_until(struct waiter *w)
{
	const struct vi_provider_ops *ops = w->nic->ops;
	int64_t cap = first_cap(w->nic);
	int got = 0;

	while (got == 0) {
		uint32_t ticket = ops->arm(w->nic);

		got = w->try(w->arg);
		if (got == 0 && ops->progress(w->nic) > 0) {
			got = w->try(w->arg);
			cap = first_cap(w->nic);
		}
		if (got != 0 || u_time_left(w->deadline) == 0)
			return got;
		cancellation_point(w);
		got = sleep_once(w, ticket, cap);
		cap = sooner(cap * 2, SLEEP_MOST_NS);
	}
	return got;
}

static int sleep_on(struct waiter *w)
{
	int got;

	atomic_fetch_add_explicit(w->sleepers, 1, memory_order_seq_cst);
	w->counted = true;
	/* A completion from here on sees the sleeper, or the check after arming sees the completion. */
	u_membarrier_own();
	got = sleep_until(w);
	w->counted = false;
	atomic_fetch_sub_explicit(w->sleepers, 1, memory_order_relaxed);
	return got;
}

/*
 * A yield that came back soon, but not at once: the peer, which waits too, has this very
 * processor, and polling only keeps it from answering.  Fewer polls next time, else all again.
 */
static void learn_from_yield(struct vi_nic *nic, uint32_t polls, int64_t took_ns)
{
	bool shared = took_ns >= U_ALONE_NS && took_ns < YIELD_SHARED_NS;
	uint32_t next = shared ? polls / 2 : ADAPTIVE_POLLS;

	if (next != polls)
		atomic_store_explicit(&nic->adaptive_polls, next, memory_order_relaxed);
}

/* What the threads of a NIC know of contention is a hint that they share. */
static struct u_contention contention_of(const struct vi_nic *nic)
{
	return (struct u_contention){
		.sleeps = atomic_load_explicit(&nic->contention, memory_order_relaxed),
	};
}

static void remember(struct vi_nic *nic, const struct u_contention *c)
{
	if (atomic_load_explicit(&nic->contention, memory_order_relaxed) != c->sleeps)
		atomic_store_explicit(&nic->contention, c->sleeps, memory_order_relaxed);
}

static int wait_adaptive(struct waiter *w)
{
	struct vi_nic *nic = w->nic;
	uint32_t polls = atomic_load_explicit(&nic->adaptive_polls, memory_order_relaxed);
	struct u_contention contention = contention_of(nic);
	int got = poll_paused(w->try, w->arg, polls);

	if (got == 0 && !u_contention_sleeps(&contention)) {
		learn_from_yield(nic, polls, u_contention_offer(&contention, u_now_ns()));
		got = w->try(w->arg);
		if (got == 0)
			got = poll_yielding(&contention, w->try, w->arg, ADAPTIVE_YIELDS - 1);
	}
	remember(nic, &contention);
	return got != 0 ? got : wait_long(w, sleep_on);
}

void vi_wait_init(struct vi_nic *nic, enum vi_wait_mode mode)
{
	nic->wait_mode = mode;
	atomic_store_explicit(&nic->adaptive_polls, ADAPTIVE_POLLS, memory_order_relaxed);
	atomic_store_explicit(&nic->lossy_sleeps, 0, memory_order_relaxed);
	atomic_store_explicit(&nic->contention, 0, memory_order_relaxed);
}

/* Whatever the contention: for a program that has its processors to itself. */
static int wait_spinning(struct waiter *w)
{
	int got = 0;

	while (got == 0 && u_time_left(w->deadline) != 0) {
		cancellation_point(w);
		got = poll_paused(w->try, w->arg, SPIN_POLLS);
		if (got == 0) {
			sched_yield();
			got = w->try(w->arg);
		}
	}
	return got;
}

static int wait_yielding(struct waiter *w)
{
	struct u_contention contention = contention_of(w->nic);
	bool sleep = u_contention_sleeps(&contention);
	int64_t now = u_now_ns();
	int got = 0;

	while (got == 0 && !sleep && now < w->deadline) {
		cancellation_point(w);
		u_contention_offer(&contention, now);
		got = w->try(w->arg);
		sleep = got == 0 && u_contention_sleeps(&contention);
		if (got == 0)
			now = u_now_ns();
	}
	remember(w->nic, &contention);
	return sleep ? sleep_on(w) : got;
}

int vi_wait(struct vi_nic *nic, _Atomic uint32_t *sleepers, struct vi_ref *held, int (*try)(void *),
	    void *arg, int64_t deadline)
{
	struct waiter w = {
		.nic = nic,
		.sleepers = sleepers,
		.held = held,
		.try = try,
		.arg = arg,
		.deadline = deadline,
	};
	int got = try(arg);

	if (got != 0 || u_time_left(deadline) == 0)
		return got;
	switch (nic->wait_mode) {
	case VI_WAIT_SPIN:
		return wait_long(&w, wait_spinning);
	case VI_WAIT_YIELD:
		return wait_long(&w, wait_yielding);
	case VI_WAIT_BLOCK:
		return wait_long(&w, sleep_on);
	default:
		return wait_adaptive(&w);
	}
}
