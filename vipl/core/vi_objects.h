/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The structures of work queues, completion queues, VIs and NICs, and inline functions that only read or
 * write a field of them.  All units read these; the operations of each object are in the header of its unit.
 */
#ifndef VI_OBJECTS_H
#define VI_OBJECTS_H

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "u_base.h"
#include "u_biased.h"
#include "u_idle.h"
#include "vi_handle.h"
#include "vi_notify.h"
#include "vi_tpt.h"
#include "vipl.h"
#include "vipl_ext.h"

struct u_affinity;
struct vi_conn;
struct vi_cq;
struct vi_dispatcher;
struct vi_fast_ops;
struct vi_mover;
struct vi_nic;
struct vi_provider_ops;
struct vi_ptag;
struct vi_vi;
struct vi_watch;

/* ---- work queues: vi_wq.h ------------------------------------------------------------------- */

/*
 * The library's own record of one posted descriptor, so that completion never trusts memory that
 * others have written since.
 */
struct vi_wqe {
	VIP_DESCRIPTOR *desc;
	/*
	 * A plain descriptor with one data segment: its memory, checked under `tpt_version`; else NULL.
	 * As long as the version is the table's the descriptor needs no other check.
	 */
	uint8_t *at;
	uint64_t tpt_version; /* read before the descriptor's memory was checked */
	uint32_t at_len;      /* bytes at `at`; for a receive only those that are registered */
	uint32_t handle;      /* of the descriptor's memory */
	uint32_t length;      /* total bytes, as posted (sends) or received */
	uint32_t status;      /* 0 until complete, then the status for the descriptor */
	uint32_t imm;
	uint16_t control;   /* as posted */
	uint16_t segs;	    /* SegCount as posted */
	uint32_t mark;	    /* only for the provider (e.g. its last slot) */
	uint32_t first;	    /* only for the provider (e.g. its first slot) */
	uint32_t unused[2]; /* fills the cache line */
};
static_assert(sizeof(struct vi_wqe) == U_LINE, "vi_wqe");

/*
 * Counters run freely; entries are wqe[n & mask].  Order:
 * head <= done <= next <= tail.  [head, done) complete and not dequeued;
 * [done, next) started by the provider; [next, tail) not started.
 * Everything is under the queue's lock (sq: tx_lock, rq: rx_lock); `done` and
 * `reaped` are also read without it.
 */
#define VI_WQ_COLD 0u	/* not on the list: a thread that completes something marks it */
#define VI_WQ_LISTED 1u /* on the list: every poll, or its turn among cq->due, visits it */
#define VI_WQ_WATCHED                                                                              \
	2u /* on the list: polls compare a word, and a thread that completes something marks it */
#define VI_WQ_MARKED 3u /* on cq->marked: the next poll takes it from there */

#define VI_NOT_LISTED UINT32_MAX

struct vi_wq {
	struct vi_wqe *wqe;
	uint32_t mask; /* entries - 1; grows by doubling up to VI_MAX_DESCRIPTORS */
	uint32_t head;
	uint32_t next;
	uint32_t tail;
	_Atomic uint32_t done; /* one writer at a time: holder of the queue's lock */
	/* completions that VipCQDone has reported; writer: holder of cq->lock */
	_Atomic uint32_t reaped;
	struct vi_cq *cq; /* for life; NULL: polled directly */
	struct vi_vi *vi;
	bool is_recv;
	/* The regions of the last descriptor and of its data, as the table had them at `tpt_version`. */
	struct vi_tpt_cache desc_cache, data_cache;
	uint64_t tpt_version;
	/*
	 * VI_WQ_*: is the queue on its CQ's hot list, and how does a poll find its completions?
	 * Becomes VI_WQ_MARKED under the queue's lock, and VI_WQ_LISTED after that under cq->lock; all
	 * other changes are under both locks.
	 */
	_Atomic uint32_t hot;
	_Atomic bool missed; /* vi_cq_unwatch_later() */
	/* Under cq->lock: */
	uint32_t hot_index, watch_index; /* in cq->hot and cq->watch, or VI_NOT_LISTED */
	/* number of polls without completion; while cq->many, the number of the last poll that served it */
	uint32_t idle;
	struct vi_wq *mark_next; /* in cq->marked, set by the pushing thread; then in cq->due */
	/* how many are told of completions: its CQ, threads in vi_wait() for it, armed notify handlers */
	_Atomic uint32_t awaited;
	/* Armed one-shot notify handlers, under the queue's lock. */
	struct vi_notify *notify_first, *notify_last;
	struct vi_ready ready;
};

static inline struct vi_wqe *vi_wqe(const struct vi_wq *wq, uint32_t n)
{
	return &wq->wqe[n & wq->mask];
}

static inline bool vi_wq_empty(const struct vi_wq *wq)
{
	return wq->head == wq->tail;
}

/* ---- completion queues: vi_cq.h ------------------------------------------------------------- */

/*
 * A CQ has no array of entries: an entry is a work queue with done != reaped,
 * so none can be lost.  Queues that completed something lately are on the hot
 * list, and a poll looks at (and makes progress on) only those.  vi_cq_mark() puts a queue that is
 * not hot there: the thread that completes something pushes it on `marked`,
 * without a lock, and the next poll moves it.
 *
 * Invariant: a queue with done != reaped is on `hot` or on `marked`.
 *
 * Up to VI_CQ_FEW hot queues are visited by each poll.  If there are more, a queue is watched as soon as it has no
 * entry, and no send under way: a poll compares a word of the provider, in a table, and visits only queues where
 * something came.  Any other thread that completes something marks the queue.  Queues that cannot be watched are on
 * `due`.
 *
 * Invariant: if `many`, each queue of `hot` is watched, marked, or on `due`; else `due` is empty.  A queue that is
 * neither watched nor was watched when it was marked has no word in the table.
 */
#define VI_CQ_FD_NONE (-1)
#define VI_CQ_FEW 8u
#define VI_CQ_IDLE_POLLS 2048u /* after that many polls without completion a queue is not hot */

struct vi_cq {
	struct u_biased lock; /* hot list, reaped counters, handlers */
	struct vi_nic *nic;
	_Atomic uint64_t id; /* 0 when destroyed */
	uint32_t entries;    /* as asked for */
	uint32_t attached;   /* queues */
	struct vi_wq **hot;  /* array of hot_cap >= attached */
	uint32_t hot_count, hot_cap;
	uint32_t hot_next; /* where the next poll starts: round robin */
	/* index of the queue on which progress is made even if there are entries */
	uint32_t progress_next;
	struct vi_watch *watch; /* watch_count words, as many as hot_count at most, */
	struct vi_wq **watched; /* and the queue of each */
	uint32_t watch_count;
	uint32_t watch_next; /* where the next comparison starts: round robin */
	bool many;
	_Atomic uint32_t polls;	      /* made while `many`; writer: holder of the lock */
	uint32_t turns_due;	      /* the work of polls since the last turn, in words compared */
	struct vi_wq *due, *due_last; /* to be visited, oldest first: mark_next */
	struct vi_wq *_Atomic marked; /* many threads push, the holder of the lock takes all */
	_Atomic bool missed;	      /* vi_cq_unwatch_later() was called for some queue */
	_Atomic uint32_t armed;	      /* notify handlers, plus one if the descriptor is armed */
	_Atomic uint32_t sleepers;    /* threads in vi_cq_wait() */
	struct vi_notify *notify_first, *notify_last;
	struct vi_ready ready;
	int event_fd; /* VipxCQFd; set once */
	_Atomic uint32_t fd_armed;
	struct vi_ref ref;
	struct vi_cq *next, *prev; /* nic->cqs */
	void *pool_link;
};

/* ---- virtual interfaces: vi_vi.h ------------------------------------------------------------ */

struct vi_vi {
	/* Hot, read-mostly. */
	const struct vi_fast_ops *_Atomic fast; /* read without lock by pollers */
	struct vi_nic *nic;
	_Atomic uint64_t id;	/* 0 when destroyed; changes with both queue locks held */
	void *chan;		/* the provider's connection state */
	uint64_t ptag;		/* id, 0 for none */
	_Atomic uint32_t state; /* VIP_VI_STATE; changes with both queue locks held */
	uint32_t level;		/* VIP_RELIABILITY_LEVEL */
	uint64_t max_transfer;
	uint32_t unqueued_max; /* send_unqueued() takes messages up to this long; changes as `state` */
	bool rdma_write, rdma_read;

	_Alignas(U_LINE_PAIR) struct u_biased tx_lock;
	/*
	 * A cache line that the next post, or one soon after it, will write: VipPostSend() prefetches it first.
	 * A hint of the provider, under no lock; it may be stale, and nothing is read or written through it.
	 */
	const void *_Atomic prefetch;
	struct vi_wq sq;
	_Alignas(U_LINE_PAIR) struct u_biased rx_lock;
	struct vi_wq rq;

	/* Cold. */
	_Alignas(U_LINE_PAIR) struct vi_ref ref;
	_Atomic uint32_t conn_lost; /* VIP_ERROR_CONN_LOST met a full event queue; 2: a quiet one */
	VIP_VI_ATTRIBUTES attrs;    /* changes with both queue locks held */
	struct vi_ptag *ptag_ref;   /* under nic->lock */
	struct vi_vi *next, *prev;  /* nic->vis, under nic->lock */
	void *pool_link;
	/*
	 * Only for the provider; stays with this memory for its next VI, as late pollers may look at it.
	 */
	void *prov;
	const struct vi_provider_ops *prov_ops; /* of the provider that made `prov` */
	void *context;		/* VipxSetViContext(); changes with both queue locks held */
	VIPX_COUNTERS counters; /* rx fields written under rx_lock, tx fields under tx_lock */
};

/* The next post prefetches this line; see struct vi_vi. */
static inline void vi_prefetch_hint(struct vi_vi *vi, const void *line)
{
	atomic_store_explicit(&vi->prefetch, line, memory_order_relaxed);
}

static inline VIP_VI_STATE vi_state(const struct vi_vi *vi)
{
	return (VIP_VI_STATE)atomic_load_explicit(&vi->state, memory_order_acquire);
}

/* Was the VI destroyed, or is the handle of its id a parent's?  Caller holds a queue lock. */
static inline bool vi_stale(const struct vi_vi *vi, uint64_t id)
{
	return atomic_load_explicit(&vi->id, memory_order_relaxed) != id;
}

/* ---- NICs: vi_nic.h ------------------------------------------------------------------------- */

struct vi_nic {
	_Atomic uint64_t id;
	struct vi_ref ref;
	const struct vi_provider_ops *ops;
	void *prov;
	VIP_NIC_ATTRIBUTES attrs;
	uint8_t address[8];

	pthread_mutex_t lock; /* lists, ptags, regions */
	struct vi_vi *vis;
	struct vi_cq *cqs;
	struct vi_conn *conns; /* requests handed out, not decided; see vi_conn_take() */
	uint32_t vi_count, cq_count, ptag_count;
	struct vi_tpt tpt;

	struct vi_dispatcher *dispatcher; /* vi_event.c: thread "vi-event", started on first need */
	/* Armed notify handlers and CQ descriptors: while there are any, some thread must make progress. */
	_Atomic uint32_t notify_armed;
	_Atomic uint64_t sleeps; /* times a thread went to sleep in vi_wait() */
	_Atomic bool ns_ready;	 /* VipNSInit was called */
	/* no membarrier: threads that complete something fence before they check for sleepers */
	bool fence;
	enum u_idle_mode wait_mode;
	struct u_idle_past idle_past; /* of the threads that wait */
	VIPX_COUNTERS closed;	      /* sums of VIs that are gone; under lock */
	pthread_mutex_t place_lock;   /* for the fields that follow */
	struct u_affinity *affinity;
	VIPX_PLACEMENT placed[2]; /* by role: application, transfer */
	struct vi_mover *mover;	  /* of service threads; NULL: none moves */
	void *pool_link;
};

#endif
