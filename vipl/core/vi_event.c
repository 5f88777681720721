/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The dispatcher: one thread per NIC that calls the consumer's handlers.
 *
 * It is started when it is needed first.  Everything here is under the event
 * lock, the last in the order of locks, which nobody holds for long; a handler
 * runs with no lock held and may destroy any object, even the NIC: after a
 * handler returned the dispatcher touches nothing but itself.
 */
#include <errno.h>
#include <stdlib.h>

#include "u_futex.h"
#include "u_log.h"
#include "u_thread.h"
#include "u_time.h"
#include "vi_core.h"

#define EVENTS_MAX 256u		     /* a power of two */
#define LOST_QUIET 2u		     /* vi->conn_lost */
#define LOGS_PER_SECOND 10u	     /* of the default handler */
#define EVENTS_MANY (EVENTS_MAX / 2) /* so many waiting: the same again adds nothing */

struct event {
	uint64_t vi, cq; /* ids, 0 for none */
	VIP_DESCRIPTOR *desc;
	VIP_RESOURCE_CODE resource;
	VIP_ERROR_CODE code;
	uint32_t op; /* VIP_STATUS_OP_ bits */
	bool quiet;  /* nothing was lost: not for the default handler */
};

struct vi_dispatcher {
	struct u_lock lock; /* the event lock */
	struct vi_nic *nic;
	vi_error_handler *handler;
	void *context;
	struct event events[EVENTS_MAX];
	uint32_t first, last; /* counters, masked on use */
	uint64_t lost;
	bool check_for_lost; /* a VI has conn_lost set */
	struct vi_ready *ready_first, *ready_last;
	/* The default handler's, only on the thread. */
	int64_t log_second;
	uint32_t logged, unlogged;
	uint64_t now_vi, now_cq; /* what the running handler is about */
	bool started, stop, detached;
	pthread_t thread;
	_Atomic uint32_t work;	   /* futex: bumped for the thread */
	_Atomic uint32_t returned; /* futex: bumped when a handler has returned */
};

/* ---- lists of handlers ----------------------------------------------------------------------- */

void vi_notify_append(struct vi_notify **first, struct vi_notify **last, struct vi_notify *n)
{
	n->next = NULL;
	if (*last != NULL)
		(*last)->next = n;
	else
		*first = n;
	*last = n;
}

static struct vi_notify *notify_take(struct vi_notify **first, struct vi_notify **last)
{
	struct vi_notify *n = *first;

	*first = n->next;
	if (*first == NULL)
		*last = NULL;
	return n;
}

uint32_t vi_notify_cancel(struct vi_notify **first, struct vi_notify **last)
{
	uint32_t count = 0;

	while (*first != NULL) {
		free(notify_take(first, last));
		count++;
	}
	return count;
}

/* ---- the thread's work ----------------------------------------------------------------------- */

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

static void report_unlogged(struct vi_dispatcher *own)
{
	if (own->unlogged != 0)
		u_warn("vi", "%u more asynchronous errors were not written down", own->unlogged);
	own->logged = own->unlogged = 0;
}

/* A peer or a program that errs without end does not fill the disk. */
static void default_handler(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *d)
{
	struct vi_dispatcher *own = context;
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

/* Of an error that names no descriptor. */
static uint32_t code_op(VIP_ERROR_CODE code)
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

/* What to do next, taken from the dispatcher under its lock.  NOTHING: it is gone already. */
enum task_kind { TASK_NONE, TASK_NOTHING, TASK_EVENT, TASK_LOST, TASK_WQ, TASK_CQ, TASK_STOP };

struct task {
	enum task_kind kind;
	struct event event;
	struct vi_ready *ready;
	uint64_t id; /* of ready's VI or CQ when it was picked: who finds another comes too late */
	uint64_t nic;
	vi_error_handler *handler;
	void *context;
};

static void run_event(const struct task *t)
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

	if (!t->event.quiet || t->handler != default_handler)
		t->handler(t->context, &desc);
}

/* Names a VI whose loss did not fit into the queue. Caller holds nic->lock. */
static bool find_lost(struct vi_dispatcher *d, struct task *t)
{
	for (struct vi_vi *vi = d->nic->vis; vi != NULL; vi = vi->next) {
		uint32_t lost = atomic_exchange_explicit(&vi->conn_lost, 0, memory_order_relaxed);

		if (lost == 0)
			continue;
		t->event.quiet = lost == LOST_QUIET;
		u_lock_take(&d->lock);
		/* Read under the event lock: vi_event_forget_vi() comes after the id is 0. */
		d->now_vi = atomic_load_explicit(&vi->id, memory_order_relaxed);
		d->check_for_lost = true;
		t->event.vi = d->now_vi;
		u_lock_drop(&d->lock);
		if (t->event.vi != 0)
			return true;
	}
	return false;
}

static void run_lost(struct vi_dispatcher *d, struct task *t)
{
	bool found;

	pthread_mutex_lock(&d->nic->lock);
	found = find_lost(d, t);
	pthread_mutex_unlock(&d->nic->lock);
	t->event.resource = VIP_RESOURCE_VI;
	t->event.code = VIP_ERROR_CONN_LOST;
	t->event.op = code_op(VIP_ERROR_CONN_LOST);
	if (found)
		run_event(t);
}

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
		n = notify_take(&wq->notify_first, &wq->notify_last);
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
		n = notify_take(&cq->notify_first, &cq->notify_last);
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

static void pick_event(struct vi_dispatcher *d, struct task *t)
{
	t->event = d->events[d->first++ % EVENTS_MAX];
	t->kind = TASK_EVENT;
	d->now_vi = t->event.vi;
	d->now_cq = t->event.cq;
}

/* Caller holds the event lock. */
static void pick(struct vi_dispatcher *d, struct task *t)
{
	t->nic = atomic_load_explicit(&d->nic->id, memory_order_relaxed);
	t->handler = d->handler;
	t->context = d->context;
	t->event = (struct event){ 0 };
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

static void run_task(struct vi_dispatcher *d, struct task *t)
{
	switch (t->kind) {
	case TASK_EVENT:
		run_event(t);
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

static void end_turn(struct vi_dispatcher *d)
{
	u_lock_take(&d->lock);
	d->now_vi = d->now_cq = 0;
	u_lock_drop(&d->lock);
	atomic_fetch_add_explicit(&d->returned, 1, memory_order_release);
	u_futex_wake(&d->returned, INT32_MAX, UINT32_MAX, true);
}

static void report_lost(struct vi_dispatcher *d)
{
	uint64_t lost;

	u_lock_take(&d->lock);
	lost = d->lost;
	d->lost = 0;
	u_lock_drop(&d->lock);
	if (lost != 0)
		u_warn("vi", "%llu asynchronous errors came faster than they were handled; lost",
		       (unsigned long long)lost);
}

static void *dispatch(void *arg)
{
	const uint32_t generation = vi_fork_generation();
	struct vi_dispatcher *d = arg;
	struct task t;
	uint32_t seen;
	bool detached;

	for (;;) {
		/* Read before looking: work that comes after the check changes it. */
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
		/* The handler forked, and this is the child: its only thread has no more to do. */
		if (vi_fork_generation() != generation)
			return NULL;
		end_turn(d);
	}
	report_unlogged(d);
	if (detached)
		free(d);
	return NULL;
}

static void wake_thread(struct vi_dispatcher *d)
{
	atomic_fetch_add_explicit(&d->work, 1, memory_order_release);
	u_futex_wake(&d->work, 1, UINT32_MAX, true);
}

/* Caller holds the event lock. */
static int start_locked(struct vi_dispatcher *d)
{
	if (d->started)
		return 0;
	if (u_thread_start(&d->thread, "vi-event", dispatch, d) != 0)
		return -ENOSPC;
	d->started = true;
	return 0;
}

static bool is_self(const struct vi_dispatcher *d)
{
	return d->started && pthread_equal(d->thread, pthread_self());
}

/* ---- for the rest of core ------------------------------------------------------------------- */

struct vi_dispatcher *vi_event_create(struct vi_nic *nic)
{
	struct vi_dispatcher *d = calloc(1, sizeof(*d));

	if (d == NULL)
		return NULL;
	d->nic = nic;
	d->handler = default_handler;
	d->context = d;
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
		pthread_detach(pthread_self());
		return;
	}
	if (started) {
		wake_thread(d);
		pthread_join(d->thread, NULL);
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
		d->handler = handler != NULL ? handler : default_handler;
		d->context = handler != NULL ? context : d;
	}
	u_lock_drop(&d->lock);
	return err;
}

static bool queued_already(const struct vi_dispatcher *d, const struct event *e)
{
	for (uint32_t i = d->first; i != d->last; i++) {
		const struct event *q = &d->events[i % EVENTS_MAX];

		if (q->vi == e->vi && q->cq == e->cq && q->desc == e->desc &&
		    q->resource == e->resource && q->code == e->code && q->op == e->op)
			return true;
	}
	return false;
}

/* Caller holds the event lock. */
static void queue_event(struct vi_dispatcher *d, struct vi_vi *vi, const struct event *e)
{
	uint32_t waiting = d->last - d->first;

	if (waiting >= EVENTS_MANY && queued_already(d, e))
		return;
	if (waiting < EVENTS_MAX) {
		d->events[d->last++ % EVENTS_MAX] = *e;
	} else if (vi != NULL && e->code == VIP_ERROR_CONN_LOST) {
		atomic_store_explicit(&vi->conn_lost, e->quiet ? LOST_QUIET : 1,
				      memory_order_relaxed);
		d->check_for_lost = true;
	} else {
		d->lost++;
	}
}

static void raise(struct vi_nic *nic, struct vi_vi *vi, const struct event *e)
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
	const struct event e = {
		.vi = vi != NULL ? atomic_load_explicit(&vi->id, memory_order_relaxed) : 0,
		.resource = resource,
		.code = code,
		.op = code_op(code),
	};

	raise(nic, vi, &e);
}

U_COLD void vi_event_raise_broken(struct vi_vi *vi, VIP_ERROR_CODE code, bool quiet)
{
	const struct event e = {
		.vi = atomic_load_explicit(&vi->id, memory_order_relaxed),
		.resource = VIP_RESOURCE_VI,
		.code = code,
		.op = code_op(code),
		.quiet = quiet,
	};

	raise(vi->nic, vi, &e);
}

U_COLD void vi_event_raise_desc(struct vi_wq *wq, VIP_DESCRIPTOR *desc, uint32_t op,
				VIP_RESOURCE_CODE resource, VIP_ERROR_CODE code)
{
	struct vi_vi *vi = wq->vi;
	const struct event e = {
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

/* Caller holds the event lock, here and below. */
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

static void drop_events(struct vi_dispatcher *d, uint64_t vi, uint64_t cq)
{
	uint32_t last = d->first;

	for (uint32_t i = d->first; i != d->last; i++) {
		const struct event *e = &d->events[i % EVENTS_MAX];

		if ((vi != 0 && e->vi == vi) || (cq != 0 && e->cq == cq))
			continue;
		d->events[last++ % EVENTS_MAX] = *e;
	}
	d->last = last;
}

static bool is_running(const struct vi_dispatcher *d, uint64_t vi, uint64_t cq)
{
	return (vi != 0 && d->now_vi == vi) || (cq != 0 && d->now_cq == cq);
}

/* Returns with the event lock held, but lets go of it while a handler of the object runs. */
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
