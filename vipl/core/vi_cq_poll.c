/* SPDX-License-Identifier: BSD-2-Clause */
/* Polling a completion queue and waiting for it. */
#include <errno.h>

#include "u_time.h"
#include "vi_cq_list.h"
#include "vi_cq_many.h"
#include "vi_cq_poll.h"
#include "vi_objects.h"
#include "vi_provider.h"
#include "vi_wait.h"

/* ---- polling -------------------------------------------------------------------------------- */

/*
 * Takes queues in which polls have found nothing for long off the hot list, or, if one may not leave it, counts its
 * polls from 0 again.  Caller holds cq->lock.
 */
static U_COLD void evict_idle(struct vi_cq *cq)
{
	for (uint32_t i = 0; i < cq->hot_count;) {
		struct vi_wq *wq = cq->hot[i];

		if (wq->idle >= VI_CQ_IDLE_POLLS && vi_cq_cool_down(cq, i))
			continue;
		if (wq->idle >= VI_CQ_IDLE_POLLS)
			wq->idle = 0;
		i++;
	}
}

/* If both queues of a VI are on this CQ, the turn of the receive queue makes progress for both. */
static bool progressed_elsewhere(const struct vi_cq *cq, const struct vi_wq *wq)
{
	return !wq->is_recv && wq->vi->rq.cq == cq &&
	       atomic_load_explicit(&wq->vi->rq.hot, memory_order_relaxed) != 0;
}

/*
 * Consumes slots that came for a receive queue of the hot list, and makes progress on the VI if that has more to do.
 * Does nothing while another thread holds rx_lock.  Caller holds cq->lock.
 */
static inline void poll_recv_queue(struct vi_wq *wq)
{
	struct vi_vi *vi = wq->vi;
	int came;

	if (u_unlikely(!u_biased_try(&vi->rx_lock)))
		return;
	came = vi->fast->poll_recv(vi);
	u_biased_drop(&vi->rx_lock);
	if (u_unlikely(came & VI_POLL_PROGRESS))
		vi->fast->progress(vi);
}

/*
 * Makes progress for a queue of the hot list.  False: nothing was done, so nothing has completed.  Caller holds
 * cq->lock.
 */
static inline bool progress_queue(const struct vi_cq *cq, struct vi_wq *wq)
{
	if (wq->is_recv) {
		poll_recv_queue(wq);
		return true;
	}
	if (progressed_elsewhere(cq, wq))
		return false;
	wq->vi->fast->progress(wq->vi);
	return true;
}

/*
 * One round over the hot list, up to the first queue that has an entry, perhaps by progress, which is taken; false:
 * none has.  Caller holds cq->lock.
 */
static bool progress_and_take(struct vi_cq *cq, struct vi_wq **wq_out)
{
	uint32_t index = cq->hot_next;
	bool idle = false, found = false;

	for (uint32_t i = cq->hot_count; i > 0; i--) {
		struct vi_wq *wq = cq->hot[index];

		if (vi_wq_entries(wq) != 0 || (progress_queue(cq, wq) && vi_wq_entries(wq) != 0)) {
			vi_cq_take_from(cq, index);
			*wq_out = wq;
			found = true;
			break;
		}
		idle |= ++wq->idle >= VI_CQ_IDLE_POLLS;
		if (++index >= cq->hot_count)
			index = 0;
	}
	/* Even if an entry was found: busy queues may give every round one. */
	if (u_unlikely(idle))
		evict_idle(cq);
	if (!found)
		u_poll_empty();
	return found;
}

/*
 * With more hot queues than this, a poll takes an existing entry without making progress on all.  It
 * makes progress on one, in turn, in any case: entries may never run out.
 */
#define FEW_HOT 4u

/*
 * Makes progress for one queue of the list, which is not empty, in turn, then takes an entry that exists; false: there
 * is none.  Caller holds cq->lock.
 */
static bool progress_one_and_take(struct vi_cq *cq, struct vi_wq **wq_out)
{
	uint32_t index = cq->progress_next < cq->hot_count ? cq->progress_next : 0;
	struct vi_wq *wq = cq->hot[index];

	cq->progress_next = index + 1;
	progress_queue(cq, wq);
	if (u_unlikely(++wq->idle >= VI_CQ_IDLE_POLLS))
		evict_idle(cq);
	return vi_cq_take(cq, wq_out);
}

/* poll_hot() for a CQ that has more than FEW_HOT hot queues.  Caller holds cq->lock. */
static __attribute__((noinline)) bool poll_more(struct vi_cq *cq, struct vi_wq **wq_out)
{
	if (cq->hot_count > VI_CQ_FEW)
		return vi_cq_poll_many(cq, wq_out);
	return progress_one_and_take(cq, wq_out) || progress_and_take(cq, wq_out);
}

/* Takes an entry, if need be after progress on hot VIs; false: there is none.  Caller holds cq->lock. */
static inline bool poll_hot(struct vi_cq *cq, struct vi_wq **wq_out)
{
	vi_cq_poll_marked(cq);
	return u_unlikely(cq->hot_count > FEW_HOT) ? poll_more(cq, wq_out)
						   : progress_and_take(cq, wq_out);
}

/*
 * As poll_hot(); if there is no entry and the doorbell rang, makes progress on the NIC and looks again.  1: taken; 0:
 * none.  Caller holds cq->lock.
 */
static inline int poll_once(struct vi_cq *cq, struct vi_wq **wq_out)
{
	if (poll_hot(cq, wq_out))
		return 1;
	if (u_likely(!cq->nic->ops->doorbell_rung(cq->nic)))
		return 0;
	cq->nic->ops->progress(cq->nic);
	return vi_cq_take(cq, wq_out);
}

int vi_cq_poll(struct vi_cq *cq, uint64_t id, uint64_t *vi_out, bool *is_recv_out)
{
	u_biased_take(&cq->lock);
	struct vi_wq *wq;
	uint64_t vi = 0;
	int got = -EINVAL;

	/* Entries of a VI that is being destroyed (id 0) vanish with it. */
	while (vi == 0 && u_likely(atomic_load_explicit(&cq->id, memory_order_relaxed) == id)) {
		got = poll_once(cq, &wq);
		if (got == 0)
			break;
		vi = atomic_load_explicit(&wq->vi->id, memory_order_relaxed);
	}
	u_biased_drop(&cq->lock);
	if (vi != 0) {
		*vi_out = vi;
		*is_recv_out = wq->is_recv;
	}
	return got;
}

bool vi_cq_poll_locked(struct vi_cq *cq, bool first, struct vi_wq **wq_out)
{
	return first ? poll_once(cq, wq_out) > 0 : poll_hot(cq, wq_out);
}

struct wait_arg {
	struct vi_cq *cq;
	uint64_t id;
	uint64_t *vi_out;
	bool *is_recv_out;
};

/* vi_cq_poll() for vi_wait(): 1, 0 or -EINVAL; `arg`: a struct wait_arg.  Takes cq->lock. */
static int try_cq(void *arg)
{
	struct wait_arg *w = arg;

	return vi_cq_poll(w->cq, w->id, w->vi_out, w->is_recv_out);
}

int vi_cq_wait(struct vi_cq *cq, int64_t deadline, uint64_t *vi_out, bool *is_recv_out)
{
	struct wait_arg arg = {
		.cq = cq,
		.id = atomic_load_explicit(&cq->id, memory_order_relaxed),
		.vi_out = vi_out,
		.is_recv_out = is_recv_out,
	};

	return vi_wait(cq->nic, &cq->sleepers, &cq->ref, try_cq, &arg, deadline);
}
