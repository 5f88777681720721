/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues: which of many work queues have completed something. */
#ifndef VI_CQ_H
#define VI_CQ_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "u_biased.h"
#include "vi_handle.h"
#include "vi_notify.h"
#include "vi_pool.h"
#include "vipl.h"

struct vi_nic;
struct vi_watch;
struct vi_wq;

/*
 * A CQ has no array of entries: an entry is a work queue with done != reaped,
 * so none can be lost.  Queues that completed something lately are on the hot
 * list, and a poll looks at (and makes progress on) only those.  A queue that is not hot comes
 * there by vi_cq_mark(): the thread that completes something pushes it on `marked`,
 * without a lock, and the next poll moves it.
 *
 * Invariant: a queue with done != reaped is on `hot` or on `marked`.
 *
 * Up to VI_CQ_FEW hot queues are visited by each poll.  If there are more, a queue is watched as soon as it has no
 * entry, and no send under way: a poll compares a word of the provider, in a table, and visits those where something
 * came.  Whatever else completes something marks the queue.  Queues that cannot be watched are on `due`.
 *
 * Invariant: with `many`, each queue of `hot` is watched, marked, or on `due`; and without, `due` is empty.  A
 * queue that is not watched, nor was when it was marked, has no word in the table.
 */
#define VI_CQ_FD_NONE (-1)
#define VI_CQ_FEW 8u
#define VI_CQ_IDLE_POLLS 2048u /* after so many polls without completion a queue is not hot */

struct vi_cq {
	struct u_biased lock; /* hot list, reaped counters, handlers */
	struct vi_nic *nic;
	_Atomic uint64_t id; /* 0 when destroyed */
	uint32_t entries;    /* as asked for */
	uint32_t attached;   /* queues */
	struct vi_wq **hot;  /* array of hot_cap >= attached */
	uint32_t hot_count, hot_cap;
	uint32_t hot_next; /* where the next poll starts: round robin */
	/* the one on which progress is made though there are entries */
	uint32_t progress_next;
	struct vi_watch *watch; /* watch_count words, as many as hot_count at most, */
	struct vi_wq **watched; /* and the queue of each */
	uint32_t watch_count;
	uint32_t watch_next; /* where the next comparison starts: round robin */
	bool many;
	_Atomic uint32_t polls; /* made while `many`; writer: holder of the lock */
	uint32_t turns_due;	/* what polls did since a queue had its turn, in words compared */
	struct vi_wq *due, *due_last; /* to be visited, oldest first: mark_next */
	struct vi_wq *_Atomic marked; /* many push, the holder of the lock takes all */
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

int vi_cq_create(struct vi_nic *nic, uint32_t entries, struct vi_cq **out);
/* -EBUSY: queues are attached or a thread is inside a call; -EINVAL: stale id. */
int vi_cq_destroy(struct vi_cq *cq, uint64_t id);
int vi_cq_resize(struct vi_cq *cq, uint32_t entries);
int vi_cq_attach(struct vi_cq *cq, struct vi_wq *wq); /* room in the hot list is reserved here */
void vi_cq_detach(struct vi_cq *cq, struct vi_wq *wq);

/* The CQ of a handle, held until vi_ref_put(&cq->ref), or NULL. */
struct vi_cq *vi_cq_get(const void *handle);

/*
 * Takes one entry if there is one without polling; else makes progress on the hot VIs once
 * and looks at the doorbell.  1: taken, 0: none; -EINVAL: stale id.
 */
int vi_cq_poll(struct vi_cq *cq, uint64_t id, uint64_t *vi_out, bool *is_recv_out);

/*
 * As vi_cq_poll() for a caller that holds cq->lock, and may take further entries of the queue.  `first`: looks at the
 * doorbell, too, if it finds none.
 */
bool vi_cq_poll_locked(struct vi_cq *cq, bool first, struct vi_wq **wq_out);

/* As vi_cq_poll(), waiting; 0 at the deadline. */
int vi_cq_wait(struct vi_cq *cq, int64_t deadline, uint64_t *vi_out, bool *is_recv_out);

/* Takes one entry without polling.  Caller holds cq->lock. */
bool vi_cq_take(struct vi_cq *cq, struct vi_wq **wq_out);

/* Does any queue of the hot list have an entry, and how many are there?  Caller holds cq->lock. */
bool vi_cq_has_entry(struct vi_cq *cq);
uint64_t vi_cq_count(struct vi_cq *cq);

/* Takes a queue off the hot list.  Caller holds cq->lock. */
void vi_cq_unlist(struct vi_cq *cq, struct vi_wq *wq);

/* Takes back `n` armed handlers or descriptors. */
void vi_cq_disarm(struct vi_cq *cq, uint32_t n);

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

/* Something completed on a queue of cq: handlers and descriptor.  The queue's lock may be held. */
void vi_cq_alert(struct vi_cq *cq);

int vi_cq_notify(struct vi_cq *cq, void *context,
		 void (*handler)(VIP_PVOID, VIP_NIC_HANDLE, VIP_VI_HANDLE, VIP_BOOLEAN));
int vi_cq_fd(struct vi_cq *cq, int *fd_out);
int vi_cq_arm(struct vi_cq *cq);

extern struct vi_pool vi_cq_pool;

#endif
