/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The dispatcher of a NIC: events and armed handlers that wait for its thread (vi_dispatch.c),
 * which is started when it is first needed.  Everything is under the event lock, the last in the
 * order of locks, which is never held for long.
 */
#include <errno.h>
#include <stdlib.h>

#include "u_futex.h"
#include "u_thread.h"
#include "vi_event_priv.h"
#include "vi_objects.h"

#define EVENTS_MANY (VI_EVENTS_MAX / 2) /* if that many wait, an equal one is not added */

uint32_t vi_event_op(VIP_ERROR_CODE code)
{
	switch (code) {
	case VIP_ERROR_RECVQ_EMPTY:
		return VIP_STATUS_OP_RECEIVE;
	case VIP_ERROR_RDMAW_PROT:
	case VIP_ERROR_RDMAW_DATA:
	case VIP_ERROR_RDMAW_ABORT:
	case VIP_ERROR_RDMA_TRANSPORT:
		return VIP_STATUS_OP_RDMA_WRITE;
	case VIP_ERROR_RDMAR_PROT:
		return VIP_STATUS_OP_RDMA_READ;
	default:
		return VIP_STATUS_OP_SEND;
	}
}

static void wake_thread(struct vi_dispatcher *d)
{
	atomic_fetch_add_explicit(&d->work, 1, memory_order_release);
	u_futex_wake(&d->work, 1, UINT32_MAX, true);
}

/* Starts the thread, if it does not run.  0 or -ENOSPC.  Caller holds the event lock. */
static int start_locked(struct vi_dispatcher *d)
{
	if (d->started)
		return 0;
	if (u_thread_start(&d->thread, "vi-event", d->main, d) != 0)
		return -ENOSPC;
	d->started = true;
	return 0;
}

/* Is the caller the dispatcher's thread, in a handler? */
static bool is_self(const struct vi_dispatcher *d)
{
	return d->started && pthread_equal(d->thread, pthread_self());
}

/* ---- for the rest of core ------------------------------------------------------------------- */

struct vi_dispatcher *vi_event_create(struct vi_nic *nic, void *(*main)(void *))
{
	struct vi_dispatcher *d = calloc(1, sizeof(*d));

	if (d == NULL)
		return NULL;
	d->nic = nic;
	d->main = main;
	return d;
}

void vi_event_destroy(struct vi_dispatcher *d)
{
	bool started;
	bool self;

	if (d == NULL)
		return;
	u_lock_take(&d->lock);
	d->stop = true;
	started = d->started;
	self = is_self(d);
	d->detached = self;
	u_lock_drop(&d->lock);
	if (self) {
		u_thread_detach(pthread_self());
		return;
	}
	if (started) {
		wake_thread(d);
		u_thread_join(d->thread);
	}
	free(d);
}

int vi_event_start(struct vi_nic *nic)
{
	struct vi_dispatcher *d = nic->dispatcher;
	int err;

	u_lock_take(&d->lock);
	err = start_locked(d);
	u_lock_drop(&d->lock);
	return err;
}

int vi_event_handler(struct vi_nic *nic, vi_error_handler *handler, void *context)
{
	struct vi_dispatcher *d = nic->dispatcher;
	int err = 0;

	u_lock_take(&d->lock);
	if (handler != NULL)
		err = start_locked(d);
	if (err == 0) {
		d->handler = handler;
		d->context = context;
	}
	u_lock_drop(&d->lock);
	return err;
}

/* Is an event that names the same objects, descriptor and error in the queue?  Caller holds the event lock. */
static bool queued_already(const struct vi_dispatcher *d, const struct vi_event *e)
{
	for (uint32_t i = d->first; i != d->last; i++) {
		const struct vi_event *q = &d->events[i % VI_EVENTS_MAX];

		if (q->vi == e->vi && q->cq == e->cq && q->desc == e->desc &&
		    q->resource == e->resource && q->code == e->code && q->op == e->op)
			return true;
	}
	return false;
}

/*
 * Queues the event, unless many wait and an equal one is among them.  If the queue is full, marks the VI for
 * CONN_LOST, and counts any other event as lost.  Caller holds the event lock.
 */
static void queue_event(struct vi_dispatcher *d, struct vi_vi *vi, const struct vi_event *e)
{
	uint32_t waiting = d->last - d->first;

	if (waiting >= EVENTS_MANY && queued_already(d, e))
		return;
	if (waiting < VI_EVENTS_MAX) {
		d->events[d->last++ % VI_EVENTS_MAX] = *e;
	} else if (vi != NULL && e->code == VIP_ERROR_CONN_LOST) {
		atomic_store_explicit(&vi->conn_lost, e->quiet ? VI_LOST_QUIET : 1,
				      memory_order_relaxed);
		d->check_for_lost = true;
	} else {
		d->lost++;
	}
}

/*
 * Queues the event, and starts or wakes the thread; if it cannot be started, the event waits.  `vi` may be NULL.
 * Takes the event lock.
 */
static void raise(struct vi_nic *nic, struct vi_vi *vi, const struct vi_event *e)
{
	struct vi_dispatcher *d = nic->dispatcher;

	u_lock_take(&d->lock);
	queue_event(d, vi, e);
	/* Without a thread the event waits for the next attempt to start one. */
	start_locked(d);
	u_lock_drop(&d->lock);
	wake_thread(d);
}

U_COLD void vi_event_raise(struct vi_nic *nic, struct vi_vi *vi, VIP_RESOURCE_CODE resource,
			   VIP_ERROR_CODE code)
{
	const struct vi_event e = {
		.vi = vi != NULL ? atomic_load_explicit(&vi->id, memory_order_relaxed) : 0,
		.resource = resource,
		.code = code,
		.op = vi_event_op(code),
	};

	raise(nic, vi, &e);
}

U_COLD void vi_event_raise_broken(struct vi_vi *vi, VIP_ERROR_CODE code, bool quiet)
{
	const struct vi_event e = {
		.vi = atomic_load_explicit(&vi->id, memory_order_relaxed),
		.resource = VIP_RESOURCE_VI,
		.code = code,
		.op = vi_event_op(code),
		.quiet = quiet,
	};

	raise(vi->nic, vi, &e);
}

U_COLD void vi_event_raise_desc(struct vi_wq *wq, VIP_DESCRIPTOR *desc, uint32_t op,
				VIP_RESOURCE_CODE resource, VIP_ERROR_CODE code)
{
	struct vi_vi *vi = wq->vi;
	const struct vi_event e = {
		.vi = atomic_load_explicit(&vi->id, memory_order_relaxed),
		.cq = wq->cq != NULL ? atomic_load_explicit(&wq->cq->id, memory_order_relaxed) : 0,
		.desc = desc,
		.resource = resource,
		.code = code,
		.op = op,
	};

	raise(vi->nic, vi, &e);
}

U_COLD void vi_event_ready(struct vi_nic *nic, struct vi_ready *ready)
{
	struct vi_dispatcher *d = nic->dispatcher;
	bool added = false;

	u_lock_take(&d->lock);
	if (!ready->queued) {
		ready->queued = added = true;
		ready->next = NULL;
		if (d->ready_last != NULL)
			d->ready_last->next = ready;
		else
			d->ready_first = ready;
		d->ready_last = ready;
	}
	u_lock_drop(&d->lock);
	if (added)
		wake_thread(d);
}

/* Takes the entry off the list, if it is there.  Caller holds the event lock. */
static void drop_ready(struct vi_dispatcher *d, struct vi_ready *gone)
{
	struct vi_ready **at = &d->ready_first;

	if (!gone->queued)
		return;
	d->ready_last = NULL;
	while (*at != NULL) {
		if (*at == gone) {
			*at = gone->next;
			continue;
		}
		d->ready_last = *at;
		at = &(*at)->next;
	}
	gone->queued = false;
}

/* Drops the queued events that are of this VI or of this CQ; 0: of none.  Caller holds the event lock. */
static void drop_events(struct vi_dispatcher *d, uint64_t vi, uint64_t cq)
{
	uint32_t last = d->first;

	for (uint32_t i = d->first; i != d->last; i++) {
		const struct vi_event *e = &d->events[i % VI_EVENTS_MAX];

		if ((vi != 0 && e->vi == vi) || (cq != 0 && e->cq == cq))
			continue;
		d->events[last++ % VI_EVENTS_MAX] = *e;
	}
	d->last = last;
}

static bool is_running(const struct vi_dispatcher *d, uint64_t vi, uint64_t cq)
{
	return (vi != 0 && d->now_vi == vi) || (cq != 0 && d->now_cq == cq);
}

/*
 * Waits until no handler of this VI or CQ (ids, 0: none) runs; not in the dispatcher's own thread.  Called and returns
 * with the event lock held, but drops it while such a handler runs.
 */
static void wait_for_handler(struct vi_dispatcher *d, uint64_t vi, uint64_t cq)
{
	while (is_running(d, vi, cq) && !is_self(d)) {
		uint32_t returned = atomic_load_explicit(&d->returned, memory_order_acquire);

		u_lock_drop(&d->lock);
		u_futex_wait(&d->returned, returned, UINT32_MAX, -1, true);
		u_lock_take(&d->lock);
	}
}

void vi_event_forget_vi(struct vi_vi *vi, uint64_t id)
{
	struct vi_dispatcher *d = vi->nic->dispatcher;

	u_lock_take(&d->lock);
	drop_events(d, id, 0);
	drop_ready(d, &vi->sq.ready);
	drop_ready(d, &vi->rq.ready);
	wait_for_handler(d, id, 0);
	u_lock_drop(&d->lock);
}

void vi_event_forget_cq(struct vi_cq *cq, uint64_t id)
{
	struct vi_dispatcher *d = cq->nic->dispatcher;

	u_lock_take(&d->lock);
	drop_events(d, 0, id);
	drop_ready(d, &cq->ready);
	wait_for_handler(d, 0, id);
	u_lock_drop(&d->lock);
}
