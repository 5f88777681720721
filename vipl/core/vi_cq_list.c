/* SPDX-License-Identifier: BSD-2-Clause */
/* The list of the busy work queues of a completion queue. */
#include "vi_cq_list.h"
#include "vi_objects.h"
#include "vi_provider.h"

/* ---- queues that come onto the list ---------------------------------------------------------- */

void vi_cq_mark(struct vi_wq *wq)
{
	struct vi_cq *cq = wq->cq;
	struct vi_wq *first;

	/* LISTED or MARKED: it will be visited. */
	if (u_likely((atomic_load_explicit(&wq->hot, memory_order_relaxed) & VI_WQ_LISTED) != 0))
		return;
	atomic_store_explicit(&wq->hot, VI_WQ_MARKED, memory_order_relaxed);
	first = atomic_load_explicit(&cq->marked, memory_order_relaxed);
	do {
		wq->mark_next = first;
		/* A: mark_next before the head; pairs with vi_cq_take_marked(). */
	} while (!atomic_compare_exchange_weak_explicit(
		&cq->marked, &first, wq, memory_order_release, memory_order_relaxed));
}

/* The word of a queue for which polls compare nothing: it is never 1. */
static const _Atomic uint32_t never;

void vi_cq_watch_word(struct vi_cq *cq, struct vi_wq *wq, const struct vi_watch *word)
{
	if (u_unlikely(wq->watch_index == VI_NOT_LISTED)) {
		wq->watch_index = cq->watch_count++;
		cq->watched[wq->watch_index] = wq;
	}
	cq->watch[wq->watch_index] = *word;
}

/* The queue keeps its place in the table, and with that its turn. */
void vi_cq_watch_nothing(struct vi_cq *cq, const struct vi_wq *wq)
{
	if (wq->watch_index != VI_NOT_LISTED)
		cq->watch[wq->watch_index] = (struct vi_watch){ .word = &never, .value = 1 };
}

U_COLD void vi_cq_take_marked(struct vi_cq *cq)
{
	/* R: pairs with vi_cq_mark(). */
	struct vi_wq *wq = atomic_exchange_explicit(&cq->marked, NULL, memory_order_acquire);
	struct vi_wq *next;

	for (; wq != NULL; wq = next) {
		next = wq->mark_next;
		if (wq->hot_index == VI_NOT_LISTED) {
			wq->hot_index = cq->hot_count++;
			cq->hot[wq->hot_index] = wq;
		}
		vi_cq_watch_nothing(cq, wq);
		wq->idle = cq->many ? vi_cq_polls(cq) : 0;
		/* Its lock is not needed: in both states vi_cq_mark() does nothing. */
		atomic_store_explicit(&wq->hot, VI_WQ_LISTED, memory_order_relaxed);
		if (cq->many)
			vi_cq_append_due(cq, wq);
	}
}

bool vi_cq_unwatch(struct vi_wq *wq)
{
	if ((atomic_load_explicit(&wq->hot, memory_order_relaxed) & VI_WQ_WATCHED) == 0)
		return false;
	vi_cq_mark(wq);
	return true;
}

void vi_cq_unwatch_later(struct vi_wq *wq)
{
	/* A: `missed` of the queue before that of the CQ; pairs with vi_cq_take_missed(). */
	atomic_store_explicit(&wq->missed, true, memory_order_relaxed);
	atomic_store_explicit(&wq->cq->missed, true, memory_order_release);
}

U_COLD void vi_cq_take_missed(struct vi_cq *cq)
{
	/* R: pairs with vi_cq_unwatch_later(). */
	if (!atomic_exchange_explicit(&cq->missed, false, memory_order_acquire))
		return;
	for (uint32_t i = 0; i < cq->hot_count; i++) {
		struct vi_wq *wq = cq->hot[i];

		if (!atomic_load_explicit(&wq->missed, memory_order_relaxed))
			continue;
		if (!u_biased_try(vi_wq_lock(wq))) {
			/* An exchange continues the release sequence of a thread that stored true before. */
			atomic_exchange_explicit(&cq->missed, true, memory_order_relaxed);
			continue;
		}
		atomic_store_explicit(&wq->missed, false, memory_order_relaxed);
		vi_cq_unwatch(wq);
		u_biased_drop(vi_wq_lock(wq));
	}
}

uint32_t vi_cq_watches(const struct vi_wq *wq)
{
	if (wq->cq == NULL || atomic_load_explicit(&wq->hot, memory_order_relaxed) != VI_WQ_WATCHED)
		return 0;
	return vi_cq_polls(wq->cq);
}

void vi_cq_grace(struct vi_cq *cq)
{
	u_biased_grace_begin();
	u_biased_grace(&cq->lock);
}

/* ---- entries -------------------------------------------------------------------------------- */

/* The index of the i-th queue that this poll visits.  Caller holds cq->lock. */
static uint32_t index_from_next(const struct vi_cq *cq, uint32_t i)
{
	uint32_t index = cq->hot_next + i;

	return index < cq->hot_count ? index : index - cq->hot_count;
}

bool vi_cq_take(struct vi_cq *cq, struct vi_wq **wq_out)
{
	vi_cq_poll_marked(cq);
	for (uint32_t i = 0; i < cq->hot_count; i++) {
		uint32_t index = index_from_next(cq, i);
		struct vi_wq *wq = cq->hot[index];

		if (vi_wq_entries(wq) != 0) {
			vi_cq_take_from(cq, index);
			if (cq->many)
				wq->idle = vi_cq_polls(cq);
			*wq_out = wq;
			return true;
		}
	}
	return false;
}

bool vi_cq_has_entry(struct vi_cq *cq)
{
	vi_cq_poll_marked(cq);
	for (uint32_t i = 0; i < cq->hot_count; i++) {
		if (vi_wq_entries(cq->hot[i]) != 0)
			return true;
	}
	return false;
}

uint64_t vi_cq_count(struct vi_cq *cq)
{
	uint64_t count = 0;

	vi_cq_poll_marked(cq);
	for (uint32_t i = 0; i < cq->hot_count; i++)
		count += vi_wq_entries(cq->hot[i]);
	return count;
}

/* ---- queues that leave the list -------------------------------------------------------------- */

/* There are few hot queues again: each poll visits them all.  Empties cq->due.  Caller holds cq->lock. */
static U_COLD void end_many(struct vi_cq *cq)
{
	cq->many = false;
	cq->due = cq->due_last = NULL;
	for (uint32_t i = 0; i < cq->hot_count; i++)
		cq->hot[i]->idle = 0;
}

/* Takes the queue off cq->due, if it is there.  Caller holds cq->lock. */
static void remove_due(struct vi_cq *cq, struct vi_wq *gone)
{
	struct vi_wq **at = &cq->due;

	cq->due_last = NULL;
	while (*at != NULL) {
		if (*at == gone) {
			*at = gone->mark_next;
			continue;
		}
		cq->due_last = *at;
		at = &(*at)->mark_next;
	}
}

/* Removes the queue's word from the table, if it has one.  Caller holds cq->lock. */
static void remove_watch(struct vi_cq *cq, struct vi_wq *gone)
{
	const uint32_t index = gone->watch_index, last = cq->watch_count - 1;

	if (index == VI_NOT_LISTED)
		return;
	cq->watch_count--;
	cq->watch[index] = cq->watch[last];
	cq->watched[index] = cq->watched[last];
	cq->watched[index]->watch_index = index;
	gone->watch_index = VI_NOT_LISTED;
}

void vi_cq_remove_hot(struct vi_cq *cq, uint32_t index)
{
	struct vi_wq *gone = cq->hot[index];

	if (cq->many)
		remove_due(cq, gone);
	remove_watch(cq, gone);
	cq->hot[index] = cq->hot[--cq->hot_count];
	cq->hot[index]->hot_index = index;
	gone->hot_index = VI_NOT_LISTED;
	if (cq->hot_next >= cq->hot_count)
		cq->hot_next = 0;
	if (cq->many && cq->hot_count <= VI_CQ_FEW)
		end_many(cq);
}

/*
 * If the queue is idle it becomes VI_WQ_COLD, and the caller takes it off the list; returns true.  False also while
 * another thread holds its lock.  Caller holds cq->lock.
 */
static bool make_cold(struct vi_wq *wq)
{
	struct u_biased *lock = vi_wq_lock(wq);
	uint32_t done;
	bool cold;

	if (!u_biased_try(lock))
		return false;
	/* Under the queue's lock nothing completes: no entry can slip between check and store. */
	done = atomic_load_explicit(&wq->done, memory_order_relaxed);
	cold = vi_wq_entries(wq) == 0 && (wq->is_recv || done == wq->tail) &&
	       atomic_load_explicit(&wq->hot, memory_order_relaxed) != VI_WQ_MARKED;
	if (cold)
		atomic_store_explicit(&wq->hot, VI_WQ_COLD, memory_order_relaxed);
	u_biased_drop(lock);
	return cold;
}

bool vi_cq_cool_down(struct vi_cq *cq, uint32_t index)
{
	struct vi_vi *vi = cq->hot[index]->vi;
	const struct vi_fast_ops *fast;

	if (!make_cold(cq->hot[index]))
		return false;
	vi_cq_remove_hot(cq, index);
	fast = vi->fast;
	if (fast->unpolled != NULL)
		fast->unpolled(vi);
	fast->progress(vi);
	return true;
}

void vi_cq_unlist(struct vi_cq *cq, struct vi_wq *wq)
{
	vi_cq_poll_marked(cq);
	if (wq->hot_index != VI_NOT_LISTED)
		vi_cq_remove_hot(cq, wq->hot_index);
	atomic_store_explicit(&wq->hot, VI_WQ_COLD, memory_order_relaxed);
}
