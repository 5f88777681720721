/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * model: the queues of stores and rings under way, and the thread that lands them when they are
 * due.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "port_deco.h"
#include "port_model_priv.h"
#include "u_cancel.h"
#include "u_thread.h"
#include "u_time.h"

/* Returns the queue whose first item is due first; NULL: all are empty. */
static struct model_fifo *next_due(struct model *m)
{
	struct model_fifo *best = NULL;

	for (unsigned int q = 0; q < MODEL_QUEUES; q++) {
		struct model_fifo *f = &m->fifo[q];

		if (f->landed == f->pushed)
			continue;
		if (best == NULL ||
		    model_item_at(f, f->landed)->due < model_item_at(best, best->landed)->due)
			best = f;
	}
	return best;
}

/* Stores the item's bytes through its map, combined stores as the single words that were stored, and fences. */
static void land_store(const struct model_item *item)
{
	uint32_t step = item->combined ? sizeof(uint64_t) : item->n;

	for (uint32_t at = 0; at < item->n; at += step)
		deco_put(item->out, item->dst + at, item->data + at, step);
	u_out_fence(item->out);
}

/* Carries the item out on the port below.  Called with the lock held. */
static void land(struct model *m, const struct model_item *item)
{
	switch (item->kind) {
	case MODEL_STORE:
		land_store(item);
		break;
	case MODEL_SPAD:
		port_peer_spad_write(m->port.inner, item->n, item->word);
		break;
	case MODEL_RING:
		port_peer_db_ring(m->port.inner, item->n);
		break;
	}
}

/* Sleeps until `due` or until an item is queued; drops the lock meanwhile. */
static void sleep_until(struct model *m, int64_t due)
{
	struct timespec ts = { .tv_sec = due / 1000000000, .tv_nsec = due % 1000000000 };

	pthread_cond_timedwait(&m->work, &m->lock, &ts);
}

/* The thread: lands items when they are due, until m->stop is set. */
static void *deliver(void *arg)
{
	struct model *m = arg;
	bool in_turn = false; /* the thread is awake for a stream of stores, not for a single one */

	prctl(PR_SET_TIMERSLACK, 1UL);
	pthread_mutex_lock(&m->lock);
	while (!m->stop) {
		struct model_fifo *f = next_due(m);
		struct model_item *item;
		int64_t now;

		if (f == NULL) {
			pthread_cond_wait(&m->work, &m->lock);
			continue;
		}
		item = model_item_at(f, f->landed);
		now = u_now_ns();
		if (item->due > now) {
			if (in_turn && item->due < now + model_grain(&m->time))
				sleep_until(m, now + model_grain(&m->time));
			else
				sleep_until(m, item->due);
			in_turn = false;
			continue;
		}
		land(m, item);
		f->landed++;
		in_turn = true;
		pthread_cond_broadcast(&m->landed);
	}
	pthread_mutex_unlock(&m->lock);
	return NULL;
}

/*
 * Starts the thread, which must not have been started: the caller has looked at m->started.  That is at the first
 * store of a process, so an agent that only watches has no thread.  0 or -errno; then the next store tries again.
 * Caller holds the lock.
 */
static U_COLD int start(struct model *m)
{
	int err;

	for (unsigned int q = 0; q < MODEL_QUEUES; q++) {
		struct model_fifo *f = &m->fifo[q];

		if (f->items == NULL)
			f->items = calloc(MODEL_ITEMS, sizeof(*f->items));
		if (f->items == NULL)
			return -ENOMEM;
	}
	err = u_thread_start(&m->thread, "vi-model", deliver, m);
	m->started = err == 0;
	return err;
}

/* Waits until an item has landed.  Called with the lock held, which is dropped meanwhile. */
static void wait_landed(struct model *m)
{
	const int cancel U_AT_END(u_cancel_back) = u_cancel_off();

	pthread_cond_wait(&m->landed, &m->lock);
}

struct model_item *model_claim(struct model *m, enum model_queue q)
{
	struct model_fifo *f = &m->fifo[q];

	if (u_unlikely(!m->started) && start(m) != 0)
		return NULL;
	while (f->pushed - f->landed == MODEL_ITEMS)
		wait_landed(m);
	return model_item_at(f, f->pushed);
}

void model_commit(struct model *m, enum model_queue q)
{
	struct model_fifo *f = &m->fifo[q];

	if (f->pushed++ == f->landed)
		pthread_cond_signal(&m->work);
}

void model_drain(struct model *m)
{
	uint64_t pushed[MODEL_QUEUES];

	for (unsigned int q = 0; q < MODEL_QUEUES; q++)
		pushed[q] = m->fifo[q].pushed;
	for (unsigned int q = 0; q < MODEL_QUEUES; q++) {
		while ((int64_t)(pushed[q] - m->fifo[q].landed) > 0)
			wait_landed(m);
	}
}
