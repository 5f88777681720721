/* SPDX-License-Identifier: BSD-2-Clause */
/* Waiting: polls, yields and sleeps as util/u_idle.h says. */
#include "vi_wait.h"
#include "u_cancel.h"
#include "u_idle.h"
#include "u_membarrier.h"
#include "u_time.h"
#include "u_trace.h"
#include "vi_objects.h"
#include "vi_provider.h"

static int64_t sooner(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* A wait that may be long: its condition, and what has to be undone if the thread is cancelled. */
struct waiter {
	struct vi_nic *nic;
	_Atomic uint32_t *sleepers; /* the thread is counted there while `counted` */
	struct vi_ref *held;	    /* by the caller */
	int (*try)(void *arg);
	void *arg;
	int64_t deadline;
	struct u_idle idle;
	int cancel; /* the thread's cancellation state before the wait */
	bool counted;
};

/* Runs when the thread is cancelled: uncounts the sleeper, and drops the caller's reference. */
static void wait_cancelled(void *arg)
{
	struct waiter *w = arg;

	if (w->counted)
		atomic_fetch_sub_explicit(w->sleepers, 1, memory_order_relaxed);
	vi_ref_put(w->held);
}

/*
 * Ends the thread here if it was cancelled, and could be before the wait.  The thread holds only the reference that
 * wait_cancelled() drops, and has taken nothing from a queue.
 */
static void cancellation_point(const struct waiter *w)
{
	if (w->cancel == PTHREAD_CANCEL_DISABLE)
		return;
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	pthread_testcancel();
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
}

/* Runs `wait` so that it may be cancelled at its cancellation points, and nowhere else.  Returns its result. */
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

/*
 * Sleeps once, with the ticket of arm(), up to the cap or the deadline, then tries: sleep() has processed what ended
 * it, so no arming is needed before that.  Returns the value of try().
 */
static int sleep_once(struct waiter *w, uint32_t ticket)
{
	int64_t until = sooner(w->deadline, u_now_ns() + u_idle_cap(&w->idle));
	struct vi_nic *nic = w->nic;
	int got;

	atomic_fetch_add_explicit(&nic->sleeps, 1, memory_order_relaxed);
	U_TRACE(sleep_begins, nic, ticket);
	nic->ops->sleep(nic, ticket, until);
	U_TRACE(sleep_ended, nic, ticket);
	got = w->try(w->arg);
	u_idle_slept(&w->idle, until < w->deadline && u_now_ns() >= until, got != 0);
	return got;
}

/*
 * Arms, checks once more and sleeps, again and again.  A slot that comes after the arming ends the sleep; its length
 * is bounded only as a last defence, and so that a cancelled thread ends in time.  Returns the value of try(), 0 at
 * the deadline.
 */
static int sleep_until(struct waiter *w)
{
	const struct vi_provider_ops *ops = w->nic->ops;
	int got = 0;

	while (got == 0) {
		uint32_t ticket = ops->arm(w->nic);

		got = w->try(w->arg);
		if (got == 0 && ops->progress(w->nic) > 0) {
			got = w->try(w->arg);
			u_idle_moved(&w->idle);
		}
		if (got != 0 || u_time_left(w->deadline) == 0)
			return got;
		cancellation_point(w);
		got = sleep_once(w, ticket);
	}
	return got;
}

/*
 * As sleep_until(), counted as a sleeper, whom other threads then wake.  Returns the value of try(), 0 at the
 * deadline.
 */
static int sleep_on(struct waiter *w)
{
	int got;

	atomic_fetch_add_explicit(w->sleepers, 1, memory_order_seq_cst);
	w->counted = true;
	/* A thread that completes something after this sees the sleeper, or the check after arming sees it. */
	u_membarrier_own();
	got = sleep_until(w);
	w->counted = false;
	atomic_fetch_sub_explicit(w->sleepers, 1, memory_order_relaxed);
	return got;
}

/* Polls until try() returns nonzero, or it is time to sleep, or the deadline has passed: then 0. */
static int poll_first(struct waiter *w)
{
	enum u_idle_step step;
	int got = 0;

	while (got == 0 && (step = u_idle(&w->idle)) != U_IDLE_SLEEP) {
		if (step == U_IDLE_YIELDED) {
			cancellation_point(w);
			if (w->idle.now >= w->deadline)
				break;
		}
		got = w->try(w->arg);
	}
	return got;
}

/* Waits as vi_wait() says.  Returns the value of try(), 0 at the deadline. */
static int poll_then_sleep(struct waiter *w)
{
	int got = poll_first(w);

	return got != 0 ? got : sleep_on(w);
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
		.cancel = PTHREAD_CANCEL_DISABLE,
	};
	int got = try(arg);

	if (got != 0 || u_time_left(deadline) == 0)
		return got;
	u_idle_begin(&w.idle, nic->wait_mode, &nic->idle_past);
	if (nic->wait_mode != U_IDLE_ADAPTIVE)
		return wait_long(&w, poll_then_sleep);
	/* Polling is short: cancellation can wait until it is over. */
	got = poll_first(&w);
	return got != 0 ? got : wait_long(&w, sleep_on);
}
