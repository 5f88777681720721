/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Polling a completion queue that has many busy work queues.
 *
 * A poll compares one word for each watched queue, in a dense table and without taking a lock, and visits only queues
 * whose word says that something came; it begins after the queue at which the previous poll ended.  Queues that
 * completed something otherwise, or that cannot be watched, are on cq->due, a fifo.  While that is not empty every
 * second poll begins with the first of them, and a poll compares DUE_WORDS words before it serves them all: so neither
 * kind keeps the other waiting.  In addition one queue is visited in turn for every TURN_WORDS words, so that events
 * which no word shows (an error report of the peer, say) are found, too, and queues that are idle for long leave the
 * list.
 */
#include "vi_cq_many.h"
#include "u_time.h"
#include "vi_cq_list.h"
#include "vi_provider.h"

#define DUE_WORDS 32u
#define TURN_WORDS 2048u
#define MISSED_POLLS 16u

/* From here on polls visit only some of the hot queues: all that are listed go to cq->due.  Caller holds cq->lock. */
static U_COLD void begin_many(struct vi_cq *cq)
{
	cq->many = true;
	cq->turns_due = 0;
	for (uint32_t i = 0; i < cq->hot_count; i++) {
		struct vi_wq *wq = cq->hot[i];

		wq->idle = vi_cq_polls(cq);
		if (atomic_load_explicit(&wq->hot, memory_order_relaxed) == VI_WQ_LISTED)
			vi_cq_append_due(cq, wq);
	}
}

/* ---- visiting a queue ----------------------------------------------------------------------- */

/*
 * Watches the queue if, once `taken` entries have been taken, its word or a mark tells of every further completion.
 * Returns whether it does.  Caller holds its lock and cq->lock.
 */
static bool watch(struct vi_cq *cq, struct vi_wq *wq, uint32_t taken)
{
	struct vi_watch word = { .word = NULL };

	if (vi_wq_entries(wq) > taken)
		return false;
	if (wq->is_recv ? !wq->vi->fast->watch(wq->vi, &word)
			: atomic_load_explicit(&wq->done, memory_order_relaxed) != wq->tail)
		return false;
	if (word.word != NULL)
		vi_cq_watch_word(cq, wq, &word);
	atomic_store_explicit(&wq->hot, VI_WQ_WATCHED, memory_order_relaxed);
	return true;
}

/*
 * Ends the watching, if the queue is watched: it is VI_WQ_LISTED then.  False, and nothing done, only if it is marked.
 * Caller holds its lock and cq->lock.
 */
static bool unwatch(struct vi_cq *cq, struct vi_wq *wq)
{
	uint32_t hot = atomic_load_explicit(&wq->hot, memory_order_relaxed);

	if (hot == VI_WQ_WATCHED) {
		vi_cq_watch_nothing(cq, wq);
		atomic_store_explicit(&wq->hot, VI_WQ_LISTED, memory_order_relaxed);
	}
	return hot != VI_WQ_MARKED;
}

/*
 * Makes progress for a queue that is on no list, if it has no entry.  Then watches it, if watch() can for this
 * `taken`, or else appends it to cq->due.  Returns whether it has an entry.  Takes its lock; if another thread has
 * that, makes no progress on a receive queue, and appends it if it was listed.  Caller holds cq->lock.
 */
static bool visit(struct vi_cq *cq, struct vi_wq *wq, uint32_t taken)
{
	struct vi_vi *vi = wq->vi;
	bool progress = !wq->is_recv && vi_wq_entries(wq) == 0, listed;
	int came = 0;

	listed = atomic_load_explicit(&wq->hot, memory_order_relaxed) == VI_WQ_LISTED;
	if (u_likely(u_biased_try(vi_wq_lock(wq)))) {
		listed = unwatch(cq, wq);
		if (wq->is_recv && vi_wq_entries(wq) == 0) {
			came = vi->fast->poll_recv(vi);
			progress = (came & VI_POLL_PROGRESS) != 0;
		}
		if (listed && (came & VI_POLL_PROGRESS) == 0 && watch(cq, wq, taken))
			listed = progress = false;
		u_biased_drop(vi_wq_lock(wq));
	}
	if (listed)
		vi_cq_append_due(cq, wq);
	if (progress)
		vi->fast->progress(vi);
	return vi_wq_entries(wq) != 0;
}

/* Visits the queue, which is on no list, and takes one entry of it; false: it has none.  Caller holds cq->lock. */
static bool serve(struct vi_cq *cq, struct vi_wq *wq, struct vi_wq **wq_out)
{
	if (!visit(cq, wq, 1))
		return false;
	vi_wq_reap(wq);
	wq->idle = vi_cq_polls(cq);
	*wq_out = wq;
	return true;
}

/* ---- the poll ------------------------------------------------------------------------------- */

/*
 * Compares up to *left words, from where the last comparison ended, and subtracts their number from *left.  Returns
 * the queue whose word says that something came, or NULL.  Caller holds cq->lock.
 */
static struct vi_wq *find_came(struct vi_cq *cq, uint32_t *left)
{
	const struct vi_watch *table = cq->watch;
	const uint32_t count = cq->watch_count;
	uint32_t i = cq->watch_next < count ? cq->watch_next : 0;
	struct vi_wq *came = NULL;
	uint32_t n = *left < count ? *left : count;

	*left -= n;
	while (came == NULL && n > 0) {
		const struct vi_watch *w = &table[i];

		if (u_unlikely(atomic_load_explicit(w->word, memory_order_relaxed) == w->value))
			came = cq->watched[i];
		i = i + 1 < count ? i + 1 : 0;
		n--;
	}
	cq->watch_next = i;
	*left += n;
	return came;
}

/*
 * Compares the next `left` words and serves queues for which something came, up to the first that has an entry; false:
 * none has.  Caller holds cq->lock.
 */
static bool serve_came(struct vi_cq *cq, uint32_t left, struct vi_wq **wq_out)
{
	struct vi_wq *wq;

	while ((wq = find_came(cq, &left)) != NULL)
		if (serve(cq, wq, wq_out))
			return true;
	return false;
}

/* Serves the first queue on cq->due, which is not empty; false: it has no entry.  Caller holds cq->lock. */
static bool serve_first_due(struct vi_cq *cq, struct vi_wq **wq_out)
{
	struct vi_wq *wq = cq->due;

	cq->due = wq->mark_next;
	return serve(cq, wq, wq_out);
}

/*
 * Serves the queues that are on cq->due now, which is not empty, up to the first that has an entry; false: none has.
 * Caller holds cq->lock.
 */
static bool serve_due(struct vi_cq *cq, struct vi_wq **wq_out)
{
	struct vi_wq *last = cq->due_last, *wq;

	do {
		wq = cq->due;
		if (serve_first_due(cq, wq_out))
			return true;
	} while (wq != last);
	return false;
}

/*
 * Visits watched queues in turn, as many as are due, and takes no entry.  Queues that were idle for long leave the
 * list.  Caller holds cq->lock.
 */
static U_COLD void take_turns(struct vi_cq *cq)
{
	while (cq->turns_due >= TURN_WORDS && cq->many) {
		uint32_t index = cq->progress_next < cq->hot_count ? cq->progress_next : 0;
		struct vi_wq *wq = cq->hot[index];

		cq->turns_due -= TURN_WORDS;
		cq->progress_next = index + 1;
		if (vi_cq_polls(cq) - wq->idle >= VI_CQ_IDLE_POLLS && vi_cq_cool_down(cq, index))
			continue;
		if (atomic_load_explicit(&wq->hot, memory_order_relaxed) == VI_WQ_WATCHED)
			visit(cq, wq, 0);
	}
}

/* Queues that could not be taken off the watched ones come onto cq->due, if their locks are free now. */
static inline void take_missed(struct vi_cq *cq)
{
	if (u_unlikely(atomic_load_explicit(&cq->missed, memory_order_relaxed))) {
		vi_cq_take_missed(cq);
		vi_cq_poll_marked(cq);
	}
}

/*
 * Serves queues for which something came or that are due, until one has an entry, which is taken; false: none has.
 * Caller holds cq->lock.
 */
static bool find_entry(struct vi_cq *cq, struct vi_wq **wq_out)
{
	uint32_t poll = vi_cq_polls(cq);

	/* Some polls begin with what no word tells of, since words may tell of messages without end. */
	if (poll % MISSED_POLLS == 0)
		take_missed(cq);
	if (poll % 2 == 0 && cq->due != NULL && serve_first_due(cq, wq_out))
		return true;
	if (cq->due != NULL && (serve_came(cq, DUE_WORDS, wq_out) || serve_due(cq, wq_out)))
		return true;
	if (serve_came(cq, cq->watch_count, wq_out))
		return true;
	take_missed(cq);
	/* Progress on a VI may have completed something on its other queue. */
	vi_cq_poll_marked(cq);
	return cq->due != NULL && serve_due(cq, wq_out);
}

bool vi_cq_poll_many(struct vi_cq *cq, struct vi_wq **wq_out)
{
	bool found;

	if (u_unlikely(!cq->many))
		begin_many(cq);
	atomic_store_explicit(&cq->polls, vi_cq_polls(cq) + 1, memory_order_relaxed);
	found = find_entry(cq, wq_out);
	/* Turns are taken rather when there is no entry; but entries may never run out. */
	cq->turns_due += found ? DUE_WORDS : cq->hot_count;
	if (u_unlikely(cq->turns_due >= (found ? TURN_WORDS * 16 : TURN_WORDS)))
		take_turns(cq);
	if (!found)
		u_poll_empty();
	return found;
}
