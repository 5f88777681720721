/* SPDX-License-Identifier: BSD-2-Clause */
/* The hot list of a completion queue.  Caller holds cq->lock where nothing else is said. */
#ifndef VI_CQ_LIST_H
#define VI_CQ_LIST_H

#include "vi_objects.h"
#include "vi_provider.h"

/* Takes one entry without polling.  Caller holds cq->lock. */
bool vi_cq_take(struct vi_cq *cq, struct vi_wq **wq_out);

/* Does any queue of the hot list have an entry, and how many are there?  Caller holds cq->lock. */
bool vi_cq_has_entry(struct vi_cq *cq);
uint64_t vi_cq_count(struct vi_cq *cq);

/* Takes a queue off the hot list.  Caller holds cq->lock. */
void vi_cq_unlist(struct vi_cq *cq, struct vi_wq *wq);

/*
 * wq, which has a CQ, completed something or deserves polling: puts it on the
 * hot list, where a poll visits it.  Caller holds the queue's lock.  A provider marks the queues of a
 * VI that connected.  When a queue leaves the hot list, progress is made on its VI once
 * more, with wq->hot 0.
 */
void vi_cq_mark(struct vi_wq *wq);

/*
 * The word that polls compare for a receive queue with a CQ is not right any more: the next poll visits the queue
 * instead.  Caller holds rx_lock.  True: before the word's memory goes, vi_cq_grace() is due.
 */
bool vi_cq_unwatch(struct vi_wq *wq);
/*
 * As vi_cq_unwatch() for a thread that does not get rx_lock: polls do it when the thread that holds the lock has
 * dropped it.  It may store the word that the queue is watched for once more before.
 */
void vi_cq_unwatch_later(struct vi_wq *wq);
/* Waits until polls that began before vi_cq_unwatch() have ended.  Caller holds no lock. */
void vi_cq_grace(struct vi_cq *cq);

/* Polls of its CQ by which wq was watched; meanwhile no poll visits it.  No lock is needed. */
uint32_t vi_cq_watches(const struct vi_wq *wq);

/* ---- for units of completion queues -------------------------------------------------------- */

/* Moves the queues of `marked` to the hot list. */
void vi_cq_take_marked(struct vi_cq *cq);

static inline void vi_cq_poll_marked(struct vi_cq *cq)
{
	if (u_unlikely(atomic_load_explicit(&cq->marked, memory_order_relaxed) != NULL))
		vi_cq_take_marked(cq);
}

/* Moves queues of vi_cq_unwatch_later() to `marked`, those whose locks are free. */
void vi_cq_take_missed(struct vi_cq *cq);

static inline uint32_t vi_wq_entries(const struct vi_wq *wq)
{
	/* R: pairs with advance_done(): the descriptors are complete before their entry is seen. */
	return atomic_load_explicit(&wq->done, memory_order_acquire) -
	       atomic_load_explicit(&wq->reaped, memory_order_relaxed);
}

static inline uint32_t vi_cq_polls(const struct vi_cq *cq)
{
	return atomic_load_explicit(&cq->polls, memory_order_relaxed);
}

/* Takes one entry of the queue, which has one. */
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

/* Takes one entry of the queue at `index`, where the poll after this one does not start. */
static inline void vi_cq_take_from(struct vi_cq *cq, uint32_t index)
{
	struct vi_wq *wq = cq->hot[index];

	vi_wq_reap(wq);
	wq->idle = 0;
	cq->hot_next = index + 1 < cq->hot_count ? index + 1 : 0;
}

/* Takes the queue at `index` off the list, whose last queue takes its place. */
void vi_cq_remove_hot(struct vi_cq *cq, uint32_t index);

/* A queue that is on no list is to be visited, behind those of cq->due. */
static inline void vi_cq_append_due(struct vi_cq *cq, struct vi_wq *wq)
{
	wq->mark_next = NULL;
	if (cq->due == NULL)
		cq->due = wq;
	else
		cq->due_last->mark_next = wq;
	cq->due_last = wq;
}

/* From now on polls compare this word for the queue; or none. */
void vi_cq_watch_word(struct vi_cq *cq, struct vi_wq *wq, const struct vi_watch *word);
void vi_cq_watch_nothing(struct vi_cq *cq, const struct vi_wq *wq);

static inline struct u_biased *vi_wq_lock(struct vi_wq *wq)
{
	return wq->is_recv ? &wq->vi->rx_lock : &wq->vi->tx_lock;
}

/*
 * If the queue at `index` may be forgotten until it completes something: takes it off the list, makes progress on
 * its VI once more, and returns true.
 */
bool vi_cq_cool_down(struct vi_cq *cq, uint32_t index);

#endif
