/* SPDX-License-Identifier: BSD-2-Clause */
/* Work queues: descriptors that were posted, and the order in which they complete. */
#ifndef VI_WQ_H
#define VI_WQ_H

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "u_base.h"
#include "u_trace.h"
#include "vi_notify.h"
#include "vi_tpt.h"
#include "vipl.h"

struct vi_cq;
struct vi_vi;

/*
 * One posted descriptor: our own record of it, so that completion never trusts memory that others
 * wrote meanwhile.
 */
struct vi_wqe {
	VIP_DESCRIPTOR *desc;
	/*
	 * A plain descriptor with one data segment: its memory, checked under `epoch`; else NULL.
	 * As long as the epoch is the table's the descriptor needs no other check.
	 */
	uint8_t *at;
	uint64_t epoch;	 /* of the table, before the descriptor's memory was checked */
	uint32_t at_len; /* of a receive: as far as it is registered */
	uint32_t handle; /* of the descriptor's memory */
	uint32_t length; /* total bytes, as posted (sends) or received */
	uint32_t status; /* 0 until complete, then the status for the descriptor */
	uint32_t imm;
	uint16_t control;   /* as posted */
	uint16_t segs;	    /* SegCount as posted */
	uint32_t mark;	    /* the provider's own (e.g. its last slot) */
	uint32_t first;	    /* the provider's own (e.g. its first slot) */
	uint32_t unused[2]; /* entries are whole lines */
};
static_assert(sizeof(struct vi_wqe) == U_LINE, "vi_wqe");

/*
 * Counters run freely; entries are wqe[n & mask].  Order:
 * head <= done <= next <= tail.  [head, done) complete and not dequeued;
 * [done, next) started by the provider; [next, tail) not started.
 * Everything is under the queue's lock (sq: tx_lock, rq: rx_lock); `done` and
 * `reaped` are also read without it.
 */
#define VI_WQ_COLD 0u	/* not on the list: what completes something marks it */
#define VI_WQ_LISTED 1u /* on the list: every poll, or its turn among cq->due, visits it */
#define VI_WQ_WATCHED                                                                              \
	2u /* on the list: polls compare a word, and what completes something marks it */
#define VI_WQ_MARKED 3u /* on cq->marked: the next poll takes it from there */

#define VI_NOT_LISTED UINT32_MAX

struct vi_wq {
	struct vi_wqe *wqe;
	uint32_t mask; /* entries - 1; grows by doubling up to VI_MAX_DESCRIPTORS */
	uint32_t head;
	uint32_t next;
	uint32_t tail;
	_Atomic uint32_t done; /* one writer at a time: holder of the queue's lock */
	/* completions that VipCQDone has told; writer: holder of cq->lock */
	_Atomic uint32_t reaped;
	struct vi_cq *cq; /* for life; NULL: polled directly */
	struct vi_vi *vi;
	bool is_recv;
	/* What the table said under `epoch` of the last descriptor, and of its data. */
	struct vi_tpt_cache desc_cache, data_cache;
	uint64_t epoch;
	/*
	 * VI_WQ_*: is the queue on its CQ's hot list, and how does a poll find its completions?
	 * Becomes VI_WQ_MARKED under the queue's lock, and VI_WQ_LISTED after that under cq->lock; all
	 * other changes are under both locks.
	 */
	_Atomic uint32_t hot;
	_Atomic bool missed; /* vi_cq_unwatch_later() */
	/* Under cq->lock: */
	uint32_t hot_index, watch_index; /* in cq->hot and cq->watch, or VI_NOT_LISTED */
	/* polls without completion; while cq->many, the number of the poll that served it last */
	uint32_t idle;
	struct vi_wq *mark_next; /* cq->marked, the pusher's; then cq->due */
	/* who is told of completions: its CQ, threads in vi_wait() for it, armed notify handlers */
	_Atomic uint32_t awaited;
	/* Armed one-shot notify handlers, under the queue's lock. */
	struct vi_notify *notify_first, *notify_last;
	struct vi_ready ready;
};

/* The VIP_STATUS_OP_ bits of an entry's own operation. */
uint32_t vi_wqe_op(const struct vi_wq *wq, const struct vi_wqe *wqe);

static inline struct vi_wqe *vi_wqe(const struct vi_wq *wq, uint32_t n)
{
	return &wq->wqe[n & wq->mask];
}

int vi_wq_init(struct vi_wq *wq, struct vi_vi *vi, bool is_recv);
void vi_wq_fini(struct vi_wq *wq); /* also cancels its handlers */

/*
 * Completes entry n (done <= n < tail) with `status` (VIP_STATUS_DONE is added) and `length`.
 * `status` carries the VIP_STATUS_OP_ bits too, and on a receive VIP_STATUS_IMMEDIATE if
 * wqe->imm holds the peer's data.  Entries complete towards the consumer
 * strictly in order: the descriptors of the leading run of complete entries get, on
 * receives, their Length and ImmediateData and then, last and with release order,
 * their Status; then `done` moves, the CQ learns of them and notify handlers are
 * queued.  A descriptor whose memory is no longer registered is not written:
 * VIP_ERROR_COMP_PROT.  An entry that is complete already stays as it is.  Caller
 * holds the lock.  The one place that decides completion order.
 */
void vi_wq_complete(struct vi_wq *wq, uint32_t n, uint32_t status, uint32_t length);

/*
 * Completes everything not complete with `status`, to which the entry's OP bits are
 * added; `next` moves to tail.  Caller holds the lock.
 */
void vi_wq_flush(struct vi_wq *wq, uint32_t status);
/* As vi_wq_flush() for entries that the provider has not started. */
void vi_wq_flush_new(struct vi_wq *wq, uint32_t status);

/* vi_wq_pop() for a head that is complete: 1 or 2. */
static inline int vi_wq_take(struct vi_wq *wq, VIP_DESCRIPTOR **desc_out)
{
	struct vi_wqe *wqe = vi_wqe(wq, wq->head++);

	*desc_out = wqe->desc;
	U_TRACE(completion_taken, wqe->desc, wqe->status);
	return u_unlikely(wqe->status & VIP_STATUS_ERROR_MASK) ? 2 : 1;
}

/*
 * Dequeues the head.  1: *desc_out complete without error; 2: complete with error;
 * 0: head in progress; -ENOENT: queue empty.  Caller holds the lock.
 */
static inline int vi_wq_pop(struct vi_wq *wq, VIP_DESCRIPTOR **desc_out)
{
	if (u_unlikely(wq->head == wq->tail))
		return -ENOENT;
	if (wq->head == atomic_load_explicit(&wq->done, memory_order_relaxed))
		return 0;
	return vi_wq_take(wq, desc_out);
}

static inline bool vi_wq_empty(const struct vi_wq *wq)
{
	return wq->head == wq->tail;
}

#endif
