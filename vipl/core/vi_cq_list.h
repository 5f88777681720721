/* SPDX-License-Identifier: BSD-2-Clause */
/* The hot list of a completion queue.  The caller holds cq->lock unless a comment says otherwise. */
#ifndef VI_CQ_LIST_H
#define VI_CQ_LIST_H

#include "vi_objects.h"
#include "vi_provider.h"

/* Takes one entry without polling; false: there is none.  Caller holds cq->lock. */
bool vi_cq_take(struct vi_cq *cq, struct vi_wq **wq_out);

/* Does any queue of the CQ have an entry?  Takes and polls none.  Caller holds cq->lock. */
bool vi_cq_has_entry(struct vi_cq *cq);
/* The number of entries of all queues of the CQ.  Caller holds cq->lock. */
uint64_t vi_cq_count(struct vi_cq *cq);

/* Takes a queue off the hot list, if it is there or marked; nobody may mark it later.  Caller holds cq->lock. */
void vi_cq_unlist(struct vi_cq *cq, struct vi_wq *wq);

/*
 * Puts wq, which has a CQ, on the hot list, where a poll visits it: it completed something, or a completion is to be
 * expected.  Caller holds the queue's lock.  A provider marks the queues of a VI that connected.  When a queue leaves
 * the hot list, progress is made on its VI once more, with wq->hot 0.  Does nothing if it is there, unless it is
 * watched.
 */
void vi_cq_mark(struct vi_wq *wq);

/*
 * The word that polls compare for a receive queue with a CQ is no longer valid: the next poll visits the queue
 * instead.  Caller holds rx_lock.  True: call vi_cq_grace() before the word's memory goes.  False: polls compare none.
 */
bool vi_cq_unwatch(struct vi_wq *wq);
/*
 * As vi_cq_unwatch() for a thread that cannot get rx_lock: a poll does it after the thread that holds the lock has
 * dropped it.  Until then that thread may store once more the word for which the queue is watched.
 */
void vi_cq_unwatch_later(struct vi_wq *wq);
/* Waits until polls that began before vi_cq_unwatch() have ended.  Caller holds no lock. */
void vi_cq_grace(struct vi_cq *cq);

/* The number of polls of its CQ if wq is watched, so that no poll visits it, else 0.  No lock is needed. */
uint32_t vi_cq_watches(const struct vi_wq *wq);

/* ---- only for the units of completion queues ------------------------------------------------ */

/*
 * Moves the queues of `marked` to the hot list, from where polls visit them: they are no longer watched.  Caller holds
 * cq->lock.
 */
void vi_cq_take_marked(struct vi_cq *cq);

/* As vi_cq_take_marked(), if any queue is marked. */
static inline void vi_cq_poll_marked(struct vi_cq *cq)
{
	if (u_unlikely(atomic_load_explicit(&cq->marked, memory_order_relaxed) != NULL))
		vi_cq_take_marked(cq);
}

/*
 * Moves the queues of vi_cq_unwatch_later() whose locks are free to `marked`; the others stay for the next call.
 * Caller holds cq->lock.
 */
void vi_cq_take_missed(struct vi_cq *cq);

/* Returns how many completions of the queue polls of its CQ have not reported yet.  No lock is needed. */
static inline uint32_t vi_wq_entries(const struct vi_wq *wq)
{
	/* R: pairs with advance_done(): the descriptors are complete before their entry is seen. */
	return atomic_load_explicit(&wq->done, memory_order_acquire) -
	       atomic_load_explicit(&wq->reaped, memory_order_relaxed);
}

/* Returns the number of polls that were made while `many`. */
static inline uint32_t vi_cq_polls(const struct vi_cq *cq)
{
	return atomic_load_explicit(&cq->polls, memory_order_relaxed);
}

/*
 * Counts one entry of the queue, which has one, as reported; its descriptor stays on the queue.  Caller holds
 * cq->lock.
 */
static inline void vi_wq_reap(struct vi_wq *wq)
{
	atomic_store_explicit(&wq->reaped,
			      atomic_load_explicit(&wq->reaped, memory_order_relaxed) + 1,
			      memory_order_relaxed);
}

/*
 * Takes all entries of a queue without complete descriptors: they have been taken already, or the VI is being
 * destroyed.  Caller holds the queue's lock, too.
 */
static inline void vi_wq_reap_all(struct vi_wq *wq)
{
	atomic_store_explicit(&wq->reaped, atomic_load_explicit(&wq->done, memory_order_relaxed),
			      memory_order_relaxed);
}

/*
 * Takes one entry, by vi_wq_reap(), of the queue at `index`, which has one; the next poll starts after that queue.
 * Caller holds cq->lock.
 */
static inline void vi_cq_take_from(struct vi_cq *cq, uint32_t index)
{
	struct vi_wq *wq = cq->hot[index];

	vi_wq_reap(wq);
	wq->idle = 0;
	cq->hot_next = index + 1 < cq->hot_count ? index + 1 : 0;
}

/*
 * Takes the queue at `index` off the list, off cq->due and out of the table of words; the last queue of the list takes
 * its place.  Leaves wq->hot to the caller, who holds cq->lock.
 */
void vi_cq_remove_hot(struct vi_cq *cq, uint32_t index);

/*
 * Appends a queue that is neither on cq->due nor marked to cq->due: it is visited after those that are there.  Only
 * while cq->many; caller holds cq->lock.
 */
static inline void vi_cq_append_due(struct vi_cq *cq, struct vi_wq *wq)
{
	wq->mark_next = NULL;
	if (cq->due == NULL)
		cq->due = wq;
	else
		cq->due_last->mark_next = wq;
	cq->due_last = wq;
}

/* From now on polls compare this word for the queue; the caller sets wq->hot, and holds cq->lock. */
void vi_cq_watch_word(struct vi_cq *cq, struct vi_wq *wq, const struct vi_watch *word);
/* From now on polls compare no word for the queue.  Caller holds cq->lock. */
void vi_cq_watch_nothing(struct vi_cq *cq, const struct vi_wq *wq);

static inline struct u_biased *vi_wq_lock(struct vi_wq *wq)
{
	return wq->is_recv ? &wq->vi->rx_lock : &wq->vi->tx_lock;
}

/*
 * If the queue at `index` may be forgotten until it completes something: takes it off the list, makes progress on its
 * VI once more, and returns true.  False: nothing was done.  Caller holds cq->lock, and no lock of the VI.
 */
bool vi_cq_cool_down(struct vi_cq *cq, uint32_t index);

#endif
