/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The thread of a dispatcher, `vi-event`, which calls the consumer's handlers, for errors and for
 * completions.  A NIC has one, which starts when it is first needed.  A handler runs with no lock held
 * and may destroy any object, even the NIC: after it returned the thread touches nothing but its
 * dispatcher.
 */
#include <stdlib.h>

#include "u_futex.h"
#include "u_log.h"
#include "u_time.h"
#include "vi_cq_list.h"
#include "vi_cq_notify.h"
#include "vi_dispatch.h"
#include "vi_event_priv.h"
#include "vi_fork.h"
#include "vi_objects.h"
#include "vi_wq_hot.h"

#define LOGS_PER_SECOND 10u /* errors without a handler that are written to the log */

static const char *const error_names[] = {
	[VIP_ERROR_POST_DESC] = "a descriptor could not be queued",
	[VIP_ERROR_CONN_LOST] = "the connection is lost",
	[VIP_ERROR_RECVQ_EMPTY] = "a message met no receive",
	[VIP_ERROR_VI_OVERRUN] = "more descriptors than the queue holds",
	[VIP_ERROR_RDMAW_PROT] = "an RDMA write was refused",
	[VIP_ERROR_RDMAW_DATA] = "an RDMA write had corrupt data",
	[VIP_ERROR_RDMAW_ABORT] = "an RDMA write was not finished",
	[VIP_ERROR_RDMAR_PROT] = "an RDMA read was refused",
	[VIP_ERROR_COMP_PROT] = "the memory of a descriptor was deregistered before it completed",
	[VIP_ERROR_RDMA_TRANSPORT] = "an RDMA operation failed in transit",
	[VIP_ERROR_CATASTROPHIC] = "the agent of the host is gone",
};

/* Logs how many errors were not, if any, and sets both counts back. */
static void report_unlogged(struct vi_dispatcher *own)
{
	if (own->unlogged != 0)
		u_warn("vi", "%u more asynchronous error%s not written down", own->unlogged,
		       own->unlogged == 1 ? " was" : "s were");
	own->logged = own->unlogged = 0;
}

/*
 * Writes an error to the log, as the consumer has no handler.  LOGS_PER_SECOND limits them, so that
 * endless errors of a peer or a program do not fill the disk.
 */
static void log_error(struct vi_dispatcher *own, const VIP_ERROR_DESCRIPTOR *d)
{
	int64_t second = u_now_ns() / INT64_C(1000000000);

	if (second != own->log_second)
		report_unlogged(own);
	own->log_second = second;
	if (own->logged >= LOGS_PER_SECOND) {
		own->unlogged++;
		return;
	}
	own->logged++;
	u_warn("vi", "asynchronous error: %s (VI %p, CQ %p, descriptor %p)",
	       (size_t)d->ErrorCode < U_ARRAY_SIZE(error_names) ? error_names[d->ErrorCode]
								: "unknown",
	       d->ViHandle, d->CQHandle, (void *)d->DescriptorPtr);
}

/* The next task, taken from the dispatcher under its lock.  NOTHING: its object was destroyed. */
enum task_kind { TASK_NONE, TASK_NOTHING, TASK_EVENT, TASK_LOST, TASK_WQ, TASK_CQ, TASK_STOP };

struct task {
	enum task_kind kind;
	struct vi_event event;
	struct vi_ready *ready;
	uint64_t id; /* of ready's VI or CQ when the task was picked; if it differs later, that was destroyed */
	uint64_t nic;
	vi_error_handler *handler;
	void *context;
};

/* Calls the error handler or, if there is none, logs the error, unless it is quiet.  No lock is held. */
static void run_event(struct vi_dispatcher *d, const struct task *t)
{
	VIP_ERROR_DESCRIPTOR desc = {
		.NicHandle = vi_id_handle(t->nic),
		.ViHandle = vi_id_handle(t->event.vi),
		.CQHandle = vi_id_handle(t->event.cq),
		.DescriptorPtr = t->event.desc,
		.OpCode = t->event.op,
		.ResourceCode = t->event.resource,
		.ErrorCode = t->event.code,
	};

	if (t->handler != NULL)
		t->handler(t->context, &desc);
	else if (!t->event.quiet)
		log_error(d, &desc);
}

/*
 * Makes a task of a VI whose loss did not fit into the event queue; false: there is none.  Caller holds nic->lock;
 * takes the event lock.
 */
static bool find_lost(struct vi_dispatcher *d, struct task *t)
{
	for (struct vi_vi *vi = d->nic->vis; vi != NULL; vi = vi->next) {
		uint32_t lost = atomic_exchange_explicit(&vi->conn_lost, 0, memory_order_relaxed);

		if (lost == 0)
			continue;
		t->event.quiet = lost == VI_LOST_QUIET;
		u_lock_take(&d->lock);
		/* Read under the event lock: vi_event_forget_vi() takes it after the id became 0. */
		d->now_vi = atomic_load_explicit(&vi->id, memory_order_relaxed);
		d->check_for_lost = true;
		t->event.vi = d->now_vi;
		u_lock_drop(&d->lock);
		if (t->event.vi != 0)
			return true;
	}
	return false;
}

/* Reports the loss of one VI whose event did not fit into the queue.  Takes nic->lock. */
static void run_lost(struct vi_dispatcher *d, struct task *t)
{
	bool found;

	pthread_mutex_lock(&d->nic->lock);
	found = find_lost(d, t);
	pthread_mutex_unlock(&d->nic->lock);
	t->event.resource = VIP_RESOURCE_VI;
	t->event.code = VIP_ERROR_CONN_LOST;
	t->event.op = vi_event_op(VIP_ERROR_CONN_LOST);
	if (found)
		run_event(d, t);
}

/*
 * If the head of the queue is complete and a handler is armed, takes both off, and calls the handler without a lock.
 * Does nothing if the VI was destroyed.  Takes the queue's lock.
 */
static void run_wq(struct vi_dispatcher *d, const struct task *t)
{
	struct vi_wq *wq = t->ready->wq;
	struct vi_vi *vi = wq->vi;
	struct u_biased *lock = wq->is_recv ? &vi->rx_lock : &vi->tx_lock;
	struct vi_notify *n = NULL;
	VIP_DESCRIPTOR *desc;

	u_biased_take(lock);
	if (atomic_load_explicit(&vi->id, memory_order_relaxed) == t->id &&
	    wq->notify_first != NULL && vi_wq_pop(wq, &desc) > 0) {
		n = vi_notify_take(&wq->notify_first, &wq->notify_last);
		atomic_fetch_sub_explicit(&wq->awaited, 1, memory_order_relaxed);
		atomic_fetch_sub_explicit(&d->nic->notify_armed, 1, memory_order_relaxed);
		if (wq->notify_first != NULL &&
		    wq->head != atomic_load_explicit(&wq->done, memory_order_relaxed))
			vi_event_ready(d->nic, &wq->ready);
	}
	u_biased_drop(lock);
	if (n != NULL)
		n->on_desc(n->context, vi_id_handle(t->nic), vi_id_handle(t->id), desc);
	free(n);
}

/*
 * If the CQ has an entry and a handler is armed, takes both off, and calls the handler without a lock.  Does nothing
 * if the CQ was destroyed.  Takes cq->lock.
 */
static void run_cq(struct vi_dispatcher *d, const struct task *t)
{
	struct vi_cq *cq = t->ready->cq;
	struct vi_notify *n = NULL;
	struct vi_wq *wq;
	uint64_t id = 0;
	bool is_recv = false;

	u_biased_take(&cq->lock);
	while (id == 0 && atomic_load_explicit(&cq->id, memory_order_relaxed) == t->id &&
	       cq->notify_first != NULL && vi_cq_take(cq, &wq))
		id = atomic_load_explicit(&wq->vi->id, memory_order_relaxed);
	if (id != 0) {
		n = vi_notify_take(&cq->notify_first, &cq->notify_last);
		atomic_fetch_sub_explicit(&cq->armed, 1, memory_order_relaxed);
		atomic_fetch_sub_explicit(&d->nic->notify_armed, 1, memory_order_relaxed);
		is_recv = wq->is_recv;
		if (cq->notify_first != NULL)
			vi_event_ready(d->nic, &cq->ready);
	}
	u_biased_drop(&cq->lock);
	if (n != NULL)
		n->on_cq(n->context, vi_id_handle(t->nic), vi_id_handle(id),
			 is_recv ? VIP_TRUE : VIP_FALSE);
	free(n);
}

/* ---- the thread ------------------------------------------------------------------------------ */

/*
 * Takes the first queue or CQ off the list, which is not empty; TASK_NOTHING: it was destroyed.  Caller holds the
 * event lock.
 */
static void pick_ready(struct vi_dispatcher *d, struct task *t)
{
	struct vi_ready *r = d->ready_first;

	d->ready_first = r->next;
	if (d->ready_first == NULL)
		d->ready_last = NULL;
	r->queued = false;
	t->ready = r;
	if (r->wq != NULL) {
		t->kind = TASK_WQ;
		t->id = d->now_vi = atomic_load_explicit(&r->wq->vi->id, memory_order_relaxed);
	} else {
		t->kind = TASK_CQ;
		t->id = d->now_cq = atomic_load_explicit(&r->cq->id, memory_order_relaxed);
	}
	if (t->id == 0)
		t->kind = TASK_NOTHING;
}

/*
 * Takes the oldest event, of which there is one, off the queue, and notes whose handler runs.  Caller holds the event
 * lock.
 */
static void pick_event(struct vi_dispatcher *d, struct task *t)
{
	t->event = d->events[d->first++ % VI_EVENTS_MAX];
	t->kind = TASK_EVENT;
	d->now_vi = t->event.vi;
	d->now_cq = t->event.cq;
}

/*
 * Takes the next task: a stop before all, then errors, then queues and CQs with armed handlers; TASK_NONE: there is
 * none.  Caller holds the event lock.
 */
static void pick(struct vi_dispatcher *d, struct task *t)
{
	t->nic = atomic_load_explicit(&d->nic->id, memory_order_relaxed);
	t->handler = d->handler;
	t->context = d->context;
	t->event = (struct vi_event){ 0 };
	if (d->stop) {
		t->kind = TASK_STOP;
	} else if (d->first != d->last) {
		pick_event(d, t);
	} else if (d->check_for_lost) {
		d->check_for_lost = false;
		t->kind = TASK_LOST;
	} else if (d->ready_first != NULL) {
		pick_ready(d, t);
	} else {
		t->kind = TASK_NONE;
	}
}

/* Does the task, with no lock held; does nothing for other kinds than the four. */
static void run_task(struct vi_dispatcher *d, struct task *t)
{
	switch (t->kind) {
	case TASK_EVENT:
		run_event(d, t);
		break;
	case TASK_LOST:
		run_lost(d, t);
		break;
	case TASK_WQ:
		run_wq(d, t);
		break;
	case TASK_CQ:
		run_cq(d, t);
		break;
	default:
		break;
	}
}

/* The handler has returned: wakes threads that wait for that.  Takes the event lock. */
static void end_turn(struct vi_dispatcher *d)
{
	u_lock_take(&d->lock);
	d->now_vi = d->now_cq = 0;
	u_lock_drop(&d->lock);
	atomic_fetch_add_explicit(&d->returned, 1, memory_order_release);
	u_futex_wake(&d->returned, INT32_MAX, UINT32_MAX, true);
}

/* Logs how many errors did not fit into the queue, if any.  Takes the event lock. */
static void report_lost(struct vi_dispatcher *d)
{
	uint64_t lost;

	u_lock_take(&d->lock);
	lost = d->lost;
	d->lost = 0;
	u_lock_drop(&d->lock);
	if (lost != 0)
		u_warn("vi", "%llu asynchronous error%s came faster than they were handled; lost",
		       (unsigned long long)lost, lost == 1 ? "" : "s");
}

void *vi_dispatch(void *arg)
{
	const uint32_t generation = vi_fork_generation();
	struct vi_dispatcher *d = arg;
	struct task t;
	uint32_t seen;
	bool detached;

	for (;;) {
		/* Read before the check for work: work that comes after the check changes it. */
		seen = atomic_load_explicit(&d->work, memory_order_acquire);
		u_lock_take(&d->lock);
		pick(d, &t);
		detached = d->detached;
		u_lock_drop(&d->lock);
		if (t.kind == TASK_STOP)
			break;
		if (t.kind == TASK_NONE) {
			report_lost(d);
			u_futex_wait(&d->work, seen, UINT32_MAX, -1, true);
			continue;
		}
		run_task(d, &t);
		/* The handler forked, and this is the child: its only thread has nothing left to do. */
		if (vi_fork_generation() != generation)
			return NULL;
		end_turn(d);
	}
	report_unlogged(d);
	if (detached)
		free(d);
	return NULL;
}
