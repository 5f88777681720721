/* SPDX-License-Identifier: BSD-2-Clause */
/* Polling a completion queue: the list of its busy work queues. */
#include <errno.h>

#include "u_time.h"
#include "vi_cq.h"
#include "vi_nic.h"
#include "vi_provider.h"
#include "vi_vi.h"
#include "vi_wait.h"

/* ---- the hot list --------------------------------------------------------------------------- */

void vi_cq_mark(struct vi_wq *wq)
{
	struct vi_cq *cq = wq->cq;
	struct vi_wq *first;

	if (u_likely(atomic_load_explicit(&wq->hot, memory_order_relaxed) != 0))
		return;
	atomic_store_explicit(&wq->hot, 1, memory_order_relaxed);
	first = atomic_load_explicit(&cq->marked, memory_order_relaxed);
	do {
		wq->mark_next = first;
		/* A: mark_next before the head; pairs with take_marked(). */
	} while (!atomic_compare_exchange_weak_explicit(
		&cq->marked, &first, wq, memory_order_release, memory_order_relaxed));
}

static U_COLD void take_marked(struct vi_cq *cq)
{
	/* R: pairs with vi_cq_mark(). */
	struct vi_wq *wq = atomic_exchange_explicit(&cq->marked, NULL, memory_order_acquire);
	struct vi_wq *next;

	for (; wq != NULL; wq = next) {
		next = wq->mark_next;
		wq->idle = 0;
		cq->hot[cq->hot_count++] = wq;
	}
}

static void poll_marked(struct vi_cq *cq)
{
	if (u_unlikely(atomic_load_explicit(&cq->marked, memory_order_relaxed) != NULL))
		take_marked(cq);
}

static uint32_t wq_entries(const struct vi_wq *wq)
{
	/* R: pairs with advance_done(): the descriptors are complete before their entry is seen. */
	return atomic_load_explicit(&wq->done, memory_order_acquire) -
	       atomic_load_explicit(&wq->reaped, memory_order_relaxed);
}

static void remove_hot(struct vi_cq *cq, uint32_t i)
{
	cq->hot[i] = cq->hot[--cq->hot_count];
	if (cq->hot_next >= cq->hot_count)
		cq->hot_next = 0;
}

/* The i-th queue of this poll. */
static uint32_t index_from_next(const struct vi_cq *cq, uint32_t i)
{
	uint32_t index = cq->hot_next + i;

	return index < cq->hot_count ? index : index - cq->hot_count;
}

static inline void take_from(struct vi_cq *cq, uint32_t index)
{
	struct vi_wq *wq = cq->hot[index];

	atomic_store_explicit(&wq->reaped,
			      atomic_load_explicit(&wq->reaped, memory_order_relaxed) + 1,
			      memory_order_relaxed);
	wq->idle = 0;
	cq->hot_next = index + 1 < cq->hot_count ? index + 1 : 0;
}

bool vi_cq_take(struct vi_cq *cq, struct vi_wq **wq_out)
{
	poll_marked(cq);
	for (uint32_t i = 0; i < cq->hot_count; i++) {
		uint32_t index = index_from_next(cq, i);
		struct vi_wq *wq = cq->hot[index];

		if (wq_entries(wq) != 0) {
			take_from(cq, index);
			*wq_out = wq;
			return true;
		}
	}
	return false;
}

bool vi_cq_has_entry(struct vi_cq *cq)
{
	poll_marked(cq);
	for (uint32_t i = 0; i < cq->hot_count; i++) {
		if (wq_entries(cq->hot[i]) != 0)
			return true;
	}
	return false;
}

uint64_t vi_cq_count(struct vi_cq *cq)
{
	uint64_t count = 0;

	poll_marked(cq);
	for (uint32_t i = 0; i < cq->hot_count; i++)
		count += wq_entries(cq->hot[i]);
	return count;
}

/* ---- polling -------------------------------------------------------------------------------- */

/* May this queue be forgotten until it completes something?  Then it is not hot any more. */
static bool cool_down(struct vi_wq *wq)
{
	struct u_biased *lock = wq->is_recv ? &wq->vi->rx_lock : &wq->vi->tx_lock;
	uint32_t done;
	bool cold;

	if (!u_biased_try(lock))
		return false;
	/* Under the queue's lock nothing completes: no entry can slip between check and store. */
	done = atomic_load_explicit(&wq->done, memory_order_relaxed);
	cold = wq_entries(wq) == 0 && (wq->is_recv || done == wq->tail);
	if (cold)
		atomic_store_explicit(&wq->hot, 0, memory_order_relaxed);
	u_biased_drop(lock);
	return cold;
}

static void forget(struct vi_vi *vi)
{
	const struct vi_fast_ops *fast = vi->fast;

	if (fast->unpolled != NULL)
		fast->unpolled(vi);
	fast->progress(vi);
}

static U_COLD void evict_idle(struct vi_cq *cq)
{
	for (uint32_t i = 0; i < cq->hot_count;) {
		struct vi_wq *wq = cq->hot[i];

		if (wq->idle >= VI_CQ_IDLE_POLLS && cool_down(wq)) {
			remove_hot(cq, i);
			forget(wq->vi);
			continue;
		}
		if (wq->idle >= VI_CQ_IDLE_POLLS)
			wq->idle = 0;
		i++;
	}
}

/* Both queues of a VI on the same CQ: the receive queue's turn makes progress for both. */
static bool progressed_elsewhere(const struct vi_cq *cq, const struct vi_wq *wq)
{
	return !wq->is_recv && wq->vi->rq.cq == cq &&
	       atomic_load_explicit(&wq->vi->rq.hot, memory_order_relaxed) != 0;
}

/* Consumes slots that came for a receive queue of the hot list. */
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

/* Makes progress for a queue of the hot list.  False: that can have completed nothing. */
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

/* One round over the hot list; completions that progress brings are taken at once. */
static bool progress_and_take(struct vi_cq *cq, struct vi_wq **wq_out)
{
	uint32_t index = cq->hot_next;
	bool idle = false, found = false;

	for (uint32_t i = cq->hot_count; i > 0; i--) {
		struct vi_wq *wq = cq->hot[index];

		if (wq_entries(wq) != 0 || (progress_queue(cq, wq) && wq_entries(wq) != 0)) {
			take_from(cq, index);
			*wq_out = wq;
			found = true;
			break;
		}
		idle |= ++wq->idle >= VI_CQ_IDLE_POLLS;
		if (++index >= cq->hot_count)
			index = 0;
	}
	/* Also with an entry: a round that takes long enough always finds one. */
	if (u_unlikely(idle))
		evict_idle(cq);
	if (!found)
		u_poll_empty();
	return found;
}

/*
 * With more hot queues than this, entries that are there are sought before progress is made on
 * all. On one it is made all the same, in turn: entries may never run out.
 */
#define FEW_HOT 4u

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

static inline int poll_once(struct vi_cq *cq, struct vi_wq **wq_out)
{
	poll_marked(cq);
	if (u_unlikely(cq->hot_count > FEW_HOT) && progress_one_and_take(cq, wq_out))
		return 1;
	if (progress_and_take(cq, wq_out))
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

struct wait_arg {
	struct vi_cq *cq;
	uint64_t id;
	uint64_t *vi_out;
	bool *is_recv_out;
};

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

/* ---- leaving -------------------------------------------------------------------------------- */

void vi_cq_unlist(struct vi_cq *cq, struct vi_wq *wq)
{
	poll_marked(cq);
	for (uint32_t i = 0; i < cq->hot_count; i++) {
		if (cq->hot[i] == wq) {
			remove_hot(cq, i);
			break;
		}
	}
	atomic_store_explicit(&wq->hot, 0, memory_order_relaxed);
}
