/* SPDX-License-Identifier: BSD-2-Clause */
/* The list of the busy work queues of a completion queue. */
#include "vi_cq_list.h"
#include "vi_provider.h"
#include "vi_vi.h"

/* ---- coming --------------------------------------------------------------------------------- */

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
		/* A: mark_next before the head; pairs with vi_cq_take_marked(). */
	} while (!atomic_compare_exchange_weak_explicit(
		&cq->marked, &first, wq, memory_order_release, memory_order_relaxed));
}

U_COLD void vi_cq_take_marked(struct vi_cq *cq)
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

/* ---- entries -------------------------------------------------------------------------------- */

/* The i-th queue of this poll. */
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

/* ---- leaving -------------------------------------------------------------------------------- */

void vi_cq_remove_hot(struct vi_cq *cq, uint32_t index)
{
	cq->hot[index] = cq->hot[--cq->hot_count];
	if (cq->hot_next >= cq->hot_count)
		cq->hot_next = 0;
}

/* Is the queue idle?  Then it is not hot any more. */
static bool make_cold(struct vi_wq *wq)
{
	struct u_biased *lock = wq->is_recv ? &wq->vi->rx_lock : &wq->vi->tx_lock;
	uint32_t done;
	bool cold;

	if (!u_biased_try(lock))
		return false;
	/* Under the queue's lock nothing completes: no entry can slip between check and store. */
	done = atomic_load_explicit(&wq->done, memory_order_relaxed);
	cold = vi_wq_entries(wq) == 0 && (wq->is_recv || done == wq->tail);
	if (cold)
		atomic_store_explicit(&wq->hot, 0, memory_order_relaxed);
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
	for (uint32_t i = 0; i < cq->hot_count; i++) {
		if (cq->hot[i] == wq) {
			vi_cq_remove_hot(cq, i);
			break;
		}
	}
	atomic_store_explicit(&wq->hot, 0, memory_order_relaxed);
}
