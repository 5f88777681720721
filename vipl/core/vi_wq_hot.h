/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Work queues on the path of a message, inline: appending descriptors, completing them, taking them off.
 * The rare cases are in vi_wq.c.
 */
#ifndef VI_WQ_HOT_H
#define VI_WQ_HOT_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "u_base.h"
#include "u_trace.h"
#include "vi_cq_list.h"
#include "vi_objects.h"
#include "vi_tpt.h"
#include "vi_wq.h"
#include "vipl.h"

/* Is an entry free, so that the queue need not grow? */
static inline bool vi_wq_has_room(const struct vi_wq *wq)
{
	return wq->tail - wq->head <= wq->mask;
}

/* Appends a descriptor, for which there is room, and returns its entry; tells nobody.  Caller holds the lock. */
static inline struct vi_wqe *vi_wq_append(struct vi_wq *wq, VIP_DESCRIPTOR *desc, uint32_t handle,
					  const struct vi_checked *checked)
{
	struct vi_wqe *wqe = vi_wqe(wq, wq->tail);

	wqe->desc = desc;
	wqe->handle = handle;
	wqe->segs = checked->segs;
	wqe->control = checked->control;
	wqe->imm = checked->imm;
	wqe->length = checked->length;
	wqe->status = 0;
	wqe->tpt_version = checked->tpt_version;
	wqe->at = checked->at;
	wqe->at_len = checked->at_len;
	wq->tail++;
	return wqe;
}

/* Makes room if need be and appends.  -ENOBUFS when VI_MAX_DESCRIPTORS are queued; -ENOMEM.  Caller holds the lock. */
static inline int vi_wq_push(struct vi_wq *wq, VIP_DESCRIPTOR *desc, uint32_t handle,
			     const struct vi_checked *checked)
{
	int err = u_likely(vi_wq_has_room(wq)) ? 0 : vi_wq_grow(wq);

	if (u_likely(err == 0))
		vi_wq_append(wq, desc, handle, checked);
	return err;
}

/* Is the memory of the descriptor still registered, for reading and writing by the VI?  Caller holds the lock. */
static inline bool vi_wqe_there(const struct vi_wq *wq, const struct vi_wqe *wqe)
{
	const struct vi_nic *nic = wq->vi->nic;

	return u_likely(wqe->tpt_version == vi_tpt_version(&nic->tpt)) ||
	       vi_tpt_check(nic, wq->vi->ptag, (uintptr_t)wqe->desc, sizeof(*wqe->desc),
			    wqe->handle, VI_READ | VI_WRITE) != NULL;
}

/*
 * Writes the completion into the consumer's descriptor, whose memory is there, the Status last; for a send only that.
 */
static inline void vi_wq_write_back(bool is_recv, const struct vi_wqe *wqe)
{
	VIP_DESCRIPTOR *desc = wqe->desc;

	if (is_recv) {
		desc->CS.Length = wqe->length;
		if (wqe->status & VIP_STATUS_IMMEDIATE)
			desc->CS.ImmediateData = wqe->imm;
	}
	/* A: a program that polls Status sees data, Length and ImmediateData with it. */
	__atomic_store_n(&desc->CS.Status, wqe->status, __ATOMIC_RELEASE);
	U_TRACE(completion_written, desc, wqe->status);
}

/*
 * Returns how many are to be told of completions.  The caller holds the queue's lock: a thread that arms does so, or
 * checks again, under it.
 */
static inline uint32_t vi_wq_awaited(const struct vi_wq *wq)
{
	return atomic_load_explicit(&wq->awaited, memory_order_relaxed);
}

/* Wakes and tells all that wait for this queue or its CQ, if any.  Caller holds the lock. */
static inline void vi_wq_announce(struct vi_wq *wq)
{
	uint32_t awaited = vi_wq_awaited(wq);

	if (u_unlikely(awaited != 0))
		vi_wq_announce_to(wq, awaited);
}

/*
 * A shorter vi_wq_complete() for success: for `wqe`, the entry n == `done`, when no entry after it is complete and its
 * `tpt_version` is the table's.  Caller holds the lock.
 */
static inline void vi_wq_complete_next(struct vi_wq *wq, bool is_recv, struct vi_wqe *wqe,
				       uint32_t status, uint32_t length)
{
	uint32_t done = atomic_load_explicit(&wq->done, memory_order_relaxed);

	wqe->status = status | VIP_STATUS_DONE;
	wqe->length = length;
	vi_wq_write_back(is_recv, wqe);
	/* A: as in advance_done(). */
	atomic_store_explicit(&wq->done, done + 1, memory_order_release);
	vi_wq_announce(wq);
}

/*
 * As vi_wq_complete_next() for the `count` entries from `done` on, which get the same status and length, and are
 * announced together.  Caller holds the lock.
 */
static inline void vi_wq_complete_run(struct vi_wq *wq, bool is_recv, uint32_t count,
				      uint32_t status, uint32_t length)
{
	uint32_t done = atomic_load_explicit(&wq->done, memory_order_relaxed);

	for (uint32_t i = 0; i < count; i++) {
		struct vi_wqe *wqe = vi_wqe(wq, done + i);

		wqe->status = status | VIP_STATUS_DONE;
		wqe->length = length;
		vi_wq_write_back(is_recv, wqe);
	}
	/* A: as in advance_done(). */
	atomic_store_explicit(&wq->done, done + count, memory_order_release);
	vi_wq_announce(wq);
}

/*
 * A program that posts expects a completion: marks a queue that has a CQ, so that it is polled without a doorbell.
 * Caller holds the lock.
 */
static inline void vi_wq_heat(struct vi_wq *wq)
{
	if (wq->cq != NULL &&
	    u_unlikely(atomic_load_explicit(&wq->hot, memory_order_relaxed) == VI_WQ_COLD))
		vi_cq_mark(wq);
}

/* Does the queue have room, and is nothing in it that a new descriptor must wait for? */
static inline bool vi_sq_idle(const struct vi_wq *sq)
{
	return vi_wq_has_room(sq) &&
	       atomic_load_explicit(&sq->done, memory_order_relaxed) == sq->tail;
}

/*
 * Appends descriptors that are complete without having been queued, to a queue with room for them and no other
 * descriptor in progress.  `status`: the VIP_STATUS_OP_ bits; VIP_STATUS_DONE is added.  vi_sq_announce_done() has to
 * follow.  Caller holds tx_lock.
 */
static inline void vi_sq_append_done_run(struct vi_wq *sq, VIP_DESCRIPTOR *const *descs,
					 uint32_t count, uint32_t length, uint32_t status)
{
	/* Only these three fields of a complete entry are used. */
	const uint32_t n = sq->tail;

	for (uint32_t i = 0; i < count; i++) {
		struct vi_wqe *wqe = vi_wqe(sq, n + i);

		wqe->desc = descs[i];
		wqe->length = length;
		wqe->status = status | VIP_STATUS_DONE;
		vi_wq_write_back(false, wqe);
	}
	sq->next = n + count;
	sq->tail = n + count;
	/* A: as in advance_done(). */
	atomic_store_explicit(&sq->done, n + count, memory_order_release);
}

/* As vi_sq_append_done_run(), for one descriptor. */
static inline void vi_sq_append_done(struct vi_wq *sq, VIP_DESCRIPTOR *desc, uint32_t length,
				     uint32_t status)
{
	vi_sq_append_done_run(sq, &desc, 1, length, status);
}

/* Announces what vi_sq_append_done() appended. */
static inline void vi_sq_announce_done(struct vi_wq *sq)
{
	vi_wq_announce(sq);
	vi_wq_heat(sq);
}

/* Is the head of the queue complete?  Then the queue is not empty. */
static inline bool vi_wq_head_done(const struct vi_wq *wq)
{
	return wq->head != atomic_load_explicit(&wq->done, memory_order_relaxed);
}

/* Dequeues the head of a queue where that is complete.  1: without error; 2: with error.  Caller holds the lock. */
static inline int vi_wq_take(struct vi_wq *wq, VIP_DESCRIPTOR **desc_out)
{
	struct vi_wqe *wqe = vi_wqe(wq, wq->head++);

	*desc_out = wqe->desc;
	U_TRACE(completion_taken, wqe->desc, wqe->status);
	return u_unlikely(wqe->status & VIP_STATUS_ERROR_MASK) ? 2 : 1;
}

/*
 * Dequeues the head.  1: *desc_out complete without error; 2: complete with error; 0: head in progress; -ENOENT: queue
 * empty.  With 0 and -ENOENT *desc_out is left.  Caller holds the lock.
 */
static inline int vi_wq_pop(struct vi_wq *wq, VIP_DESCRIPTOR **desc_out)
{
	if (u_unlikely(wq->head == wq->tail))
		return -ENOENT;
	if (wq->head == atomic_load_explicit(&wq->done, memory_order_relaxed))
		return 0;
	return vi_wq_take(wq, desc_out);
}

#endif
