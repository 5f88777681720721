/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The consumer's side of the data path, inline: posting descriptors, completing
 * them, taking them back.  What happens seldom is elsewhere (vi_post.c, vi_wq.c).
 */
#ifndef VI_HOT_H
#define VI_HOT_H

#include <errno.h>

#include "u_time.h"
#include "u_trace.h"
#include "vi_cq.h"
#include "vi_nic.h"
#include "vi_provider.h"
#include "vi_vi.h"
#include "vi_wq.h"

/* ---- work queues ---------------------------------------------------------------------------- */

int vi_wq_grow(struct vi_wq *wq);

/* What there is to know of a descriptor before it is queued. */
struct vi_checked {
	uint64_t epoch;
	uint8_t *at;	 /* as in struct vi_wqe */
	uint32_t at_len; /* garbage without `at` */
	uint32_t length, imm;
	uint16_t control, segs;
};

#define VI_CHECK_SHORT 1

/* One local segment behind the address segment, no immediate data, no fence. */
static inline bool vi_is_plain_rdma(const struct vi_checked *checked)
{
	return checked->segs == 2 && (checked->control == VIP_CONTROL_OP_RDMAWRITE ||
				      checked->control == VIP_CONTROL_OP_RDMAREAD);
}

/*
 * Checks the descriptor's memory and reads its control segment, once.  -EINVAL: not
 * aligned, or not in memory that `handle` opens to the VI.
 *
 * The data of a descriptor that is as plain as they come is checked too, for all of its
 * life while nothing is deregistered.  What is not plain, or not right, is left to the
 * checks of vi_sg.c when its turn comes.  VI_CHECK_SHORT: a plain receive, but not all of its data
 * is open.  Caller holds the queue's lock.
 *
 * All loads are as wide as the consumer's stores: a wider one would have to wait until
 * those have left the store buffer, perhaps behind a line that the peer holds.
 */
static inline __attribute__((always_inline)) int vi_check(struct vi_wq *wq, bool is_recv,
							  const VIP_DESCRIPTOR *desc,
							  uint32_t handle, struct vi_checked *out)
{
	const struct vi_vi *vi = wq->vi;
	const VIP_DATA_SEGMENT *seg;
	uint32_t access = is_recv ? VI_WRITE : VI_READ;
	uint64_t addr;
	uint32_t len;

	out->epoch = vi_tpt_epoch(&vi->nic->tpt);
	if (u_unlikely((uintptr_t)desc % VIP_DESCRIPTOR_ALIGNMENT != 0 ||
		       !vi_tpt_cache_allows(&wq->desc_cache, vi, out->epoch, handle,
					    (uintptr_t)desc, sizeof(*desc), VI_READ | VI_WRITE)))
		return -EINVAL;
	out->at = NULL;
	out->at_len = 0;
	out->segs = __atomic_load_n(&desc->CS.SegCount, __ATOMIC_RELAXED);
	out->control = __atomic_load_n(&desc->CS.Control, __ATOMIC_RELAXED);
	out->imm = __atomic_load_n(&desc->CS.ImmediateData, __ATOMIC_RELAXED);
	out->length = __atomic_load_n(&desc->CS.Length, __ATOMIC_RELAXED);
	seg = &desc->DS[0].Local;
	if (u_unlikely(out->segs != 1 || (out->control & ~VIP_CONTROL_IMMEDIATE) != 0)) {
		if (is_recv || !vi_is_plain_rdma(out))
			return 0;
		seg = &desc->DS[1].Local;
		access = out->control == VIP_CONTROL_OP_RDMAREAD ? VI_WRITE : VI_READ;
	}
	addr = __atomic_load_n(&seg->Data.AddressBits, __ATOMIC_RELAXED);
	len = __atomic_load_n(&seg->Length, __ATOMIC_RELAXED);
	if (!is_recv && u_unlikely(len != out->length || len > vi->max_transfer))
		return 0;
	if (u_unlikely(len == 0 ||
		       !vi_tpt_cache_allows(&wq->data_cache, vi, out->epoch,
					    __atomic_load_n(&seg->Handle, __ATOMIC_RELAXED), addr,
					    len, access)))
		return is_recv ? VI_CHECK_SHORT : 0;
	out->at = (uint8_t *)(uintptr_t)addr;
	out->at_len = len;
	return 0;
}

static inline bool vi_wq_has_room(const struct vi_wq *wq)
{
	return wq->tail - wq->head <= wq->mask;
}

/* Appends a descriptor, for which there is room.  Caller holds the lock. */
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
	wqe->epoch = checked->epoch;
	wqe->at = checked->at;
	wqe->at_len = checked->at_len;
	wq->tail++;
	return wqe;
}

/* Makes room if need be and appends.  -ENOBUFS when VI_MAX_DESCRIPTORS are queued; -ENOMEM. */
static inline int vi_wq_push(struct vi_wq *wq, VIP_DESCRIPTOR *desc, uint32_t handle,
			     const struct vi_checked *checked)
{
	int err = u_likely(vi_wq_has_room(wq)) ? 0 : vi_wq_grow(wq);

	if (u_likely(err == 0))
		vi_wq_append(wq, desc, handle, checked);
	return err;
}

/*
 * Pushes a plain receive that declares more than is open: its memory ends where the region does,
 * as what does not come needs no place.
 */
int vi_wq_push_short(struct vi_wq *wq, VIP_DESCRIPTOR *desc, uint32_t handle,
		     const struct vi_checked *checked);

/* Is the memory of the descriptor still registered? */
static inline bool vi_wqe_there(const struct vi_wq *wq, const struct vi_wqe *wqe)
{
	const struct vi_nic *nic = wq->vi->nic;

	return u_likely(wqe->epoch == vi_tpt_epoch(&nic->tpt)) ||
	       vi_tpt_check(nic, wq->vi->ptag, (uintptr_t)wqe->desc, sizeof(*wqe->desc),
			    wqe->handle, VI_READ | VI_WRITE) != NULL;
}

/* Writes the completion into the consumer's descriptor, whose memory is there. */
static inline void vi_wq_write_back(const struct vi_wq *wq, const struct vi_wqe *wqe)
{
	VIP_DESCRIPTOR *desc = wqe->desc;

	if (wq->is_recv) {
		desc->CS.Length = wqe->length;
		if (wqe->status & VIP_STATUS_IMMEDIATE)
			desc->CS.ImmediateData = wqe->imm;
	}
	/* A: a program that polls Status sees data, Length and ImmediateData with it. */
	__atomic_store_n(&desc->CS.Status, wqe->status, __ATOMIC_RELEASE);
	U_TRACE(completion_written, desc, wqe->status);
}

void vi_wq_announce_cq(struct vi_wq *wq);
void vi_wq_announce_slow(struct vi_wq *wq);

/* Wakes and tells all that wait for this queue. */
static inline void vi_wq_announce(struct vi_wq *wq)
{
	if (wq->cq != NULL)
		vi_wq_announce_cq(wq);
	/* Arming is done, or checked again, under the queue's lock. */
	else if (u_unlikely(wq->notify_first != NULL ||
			    atomic_load_explicit(&wq->sleepers, memory_order_relaxed) != 0))
		vi_wq_announce_slow(wq);
}

/*
 * vi_wq_complete() without error, short: for entry n == `done`, when no entry behind it is
 * complete and its epoch is the table's.
 */
static inline void vi_wq_complete_next(struct vi_wq *wq, struct vi_wqe *wqe, uint32_t status,
				       uint32_t length)
{
	uint32_t done = atomic_load_explicit(&wq->done, memory_order_relaxed);

	wqe->status = status | VIP_STATUS_DONE;
	wqe->length = length;
	vi_wq_write_back(wq, wqe);
	/* A: as in advance_done(). */
	atomic_store_explicit(&wq->done, done + 1, memory_order_release);
	vi_wq_announce(wq);
}

/* ---- the calls ------------------------------------------------------------------------------ */

/*
 * They hold no reference: `id` is compared under the queue's lock.  Posting answers
 * -EINVAL for a stale id, or a descriptor that raised VIP_ERROR_POST_DESC; -ENOBUFS
 * when the queue is full, VIP_ERROR_VI_OVERRUN was raised.
 */
int vi_refuse_post(struct vi_wq *wq, VIP_DESCRIPTOR *desc, int err);
int vi_post_send_slow(struct vi_vi *vi, VIP_DESCRIPTOR *desc, VIP_MEM_HANDLE handle,
		      const struct vi_checked *checked);

static inline bool vi_stale(const struct vi_vi *vi, uint64_t id)
{
	return atomic_load_explicit(&vi->id, memory_order_relaxed) != id;
}

/* A program that posts will want the completion: the queue is polled without a doorbell. */
static inline void vi_wq_heat(struct vi_wq *wq)
{
	if (wq->cq != NULL && u_unlikely(atomic_load_explicit(&wq->hot, memory_order_relaxed) == 0))
		vi_cq_mark(wq);
}

/* Can the descriptor be started before it is queued? */
static inline bool vi_may_go_now(const struct vi_vi *vi, const struct vi_checked *checked)
{
	const struct vi_wq *sq = &vi->sq;

	return checked->at != NULL && vi_state(vi) == VIP_STATE_CONNECTED && vi_wq_has_room(sq) &&
	       sq->next == sq->tail &&
	       atomic_load_explicit(&sq->done, memory_order_relaxed) == sq->tail;
}

/* Appends a descriptor that is complete without having been queued. */
static inline void vi_wq_append_done(struct vi_wq *sq, VIP_DESCRIPTOR *desc, uint32_t status,
				     uint32_t length)
{
	/* Of an entry that is complete only `desc` and `status` are looked at. */
	struct vi_wqe *wqe = vi_wqe(sq, sq->tail);

	wqe->desc = desc;
	sq->next = ++sq->tail;
	vi_wq_complete_next(sq, wqe, status, length);
	vi_wq_heat(sq);
}

/* Sends a plain descriptor at once, before it is queued; false when that cannot be. */
static inline bool vi_send_now(struct vi_vi *vi, VIP_DESCRIPTOR *desc,
			       const struct vi_checked *checked)
{
	if (u_unlikely(checked->segs != 1 || !vi_may_go_now(vi, checked) ||
		       !vi->fast->send_now(vi, checked->at, checked->length, checked->control,
					   checked->imm)))
		return false;
	vi_wq_append_done(&vi->sq, desc, VIP_STATUS_OP_SEND, checked->length);
	return true;
}

static inline bool vi_write_now(struct vi_vi *vi, VIP_DESCRIPTOR *desc,
				const struct vi_checked *checked)
{
	const VIP_ADDRESS_SEGMENT *remote = &desc->DS[0].Remote;

	if (checked->control != VIP_CONTROL_OP_RDMAWRITE || !vi_may_go_now(vi, checked) ||
	    !vi->fast->write_now(vi, checked->at, checked->length,
				 __atomic_load_n(&remote->Data.AddressBits, __ATOMIC_RELAXED),
				 __atomic_load_n(&remote->Handle, __ATOMIC_RELAXED)))
		return false;
	vi_wq_append_done(&vi->sq, desc, VIP_STATUS_OP_RDMA_WRITE, checked->length);
	return true;
}

static inline int vi_post_send(struct vi_vi *vi, uint64_t id, VIP_DESCRIPTOR *desc,
			       VIP_MEM_HANDLE handle)
{
	struct vi_checked checked, copy;
	int err = -EINVAL;

	U_TRACE(post_entered, vi, desc);
	u_biased_take(&vi->tx_lock);
	if (u_likely(!vi_stale(vi, id))) {
		err = vi_check(&vi->sq, false, desc, handle, &checked);
		if (u_unlikely(err != 0)) {
			vi_refuse_post(&vi->sq, desc, err);
		} else if (u_likely(vi_send_now(vi, desc, &checked)) ||
			   vi_write_now(vi, desc, &checked)) {
			vi->counters.SendsPosted++;
		} else {
			/* A copy, so that the fast path has `checked` in registers. */
			copy = checked;
			err = vi_post_send_slow(vi, desc, handle, &copy);
		}
	}
	u_biased_drop(&vi->tx_lock);
	return err;
}

static inline int vi_post_recv(struct vi_vi *vi, uint64_t id, VIP_DESCRIPTOR *desc,
			       VIP_MEM_HANDLE handle)
{
	struct vi_checked checked, copy;
	int err = -EINVAL;

	u_biased_take(&vi->rx_lock);
	if (u_likely(!vi_stale(vi, id))) {
		err = vi_check(&vi->rq, true, desc, handle, &checked);
		if (u_likely(err == 0)) {
			err = vi_wq_push(&vi->rq, desc, handle, &checked);
		} else if (err == VI_CHECK_SHORT) {
			/* A copy, as in vi_post_send(). */
			copy = checked;
			err = vi_wq_push_short(&vi->rq, desc, handle, &copy);
		}
		if (u_likely(err == 0)) {
			vi->counters.RecvsPosted++;
			vi_wq_heat(&vi->rq);
			if (u_unlikely(vi_state(vi) == VIP_STATE_ERROR))
				vi_wq_flush(&vi->rq, VIP_STATUS_DESC_FLUSHED_ERROR);
		} else {
			vi_refuse_post(&vi->rq, desc, err);
		}
	}
	u_biased_drop(&vi->rx_lock);
	return err;
}

/* The doorbell rang, perhaps for another VI. */
void vi_serve_doorbell(struct vi_vi *vi, uint64_t id);

static inline int vi_send_pop(struct vi_vi *vi, uint64_t id, VIP_DESCRIPTOR **desc_out,
			      bool *rung_out)
{
	int got = -EINVAL;

	u_biased_take(&vi->tx_lock);
	if (u_likely(!vi_stale(vi, id))) {
		got = vi_wq_pop(&vi->sq, desc_out);
		/* While the lock keeps the VI, the VI keeps the NIC open. */
		if (got == 0 && rung_out != NULL)
			*rung_out = vi->nic->ops->doorbell_rung(vi->nic);
	}
	u_biased_drop(&vi->tx_lock);
	return got;
}

static inline int vi_recv_pop(struct vi_vi *vi, uint64_t id, VIP_DESCRIPTOR **desc_out,
			      bool *rung_out, int *came_out)
{
	int got = -EINVAL;

	u_biased_take(&vi->rx_lock);
	if (u_likely(!vi_stale(vi, id))) {
		got = vi_wq_pop(&vi->rq, desc_out);
		if (u_likely(got == 0)) {
			*came_out = vi->fast->poll_recv(vi);
			if (*came_out & VI_POLL_MOVED) {
				got = vi_wq_pop(&vi->rq, desc_out);
			} else {
				u_poll_empty();
				*rung_out = vi->nic->ops->doorbell_rung(vi->nic);
			}
		}
	}
	u_biased_drop(&vi->rx_lock);
	return got;
}

int vi_send_done_slow(struct vi_vi *vi, uint64_t id, VIP_DESCRIPTOR **desc_out, bool rung);
int vi_recv_done_slow(struct vi_vi *vi, uint64_t id, VIP_DESCRIPTOR **desc_out, bool rung, int got);

/*
 * Take the head of a queue, after a poll if it is in progress.  1: complete
 * without error; 2: with error; 0: in progress; -ENOENT: empty; -EINVAL: stale id.
 */
static inline int vi_send_done(struct vi_vi *vi, uint64_t id, VIP_DESCRIPTOR **desc_out)
{
	bool rung = false;
	int got = vi_send_pop(vi, id, desc_out, &rung);

	return u_likely(got != 0) ? got : vi_send_done_slow(vi, id, desc_out, rung);
}

static inline int vi_recv_done(struct vi_vi *vi, uint64_t id, VIP_DESCRIPTOR **desc_out)
{
	bool rung = false;
	int came = 0;
	int got = vi_recv_pop(vi, id, desc_out, &rung, &came);

	if (u_likely((came & VI_POLL_PROGRESS) == 0 && !rung))
		return got;
	return vi_recv_done_slow(vi, id, desc_out, rung, got);
}

/* As vi_send_done() or vi_recv_done(), waiting; 0 at the deadline.  -EINVAL also for a queue with a
 * CQ. */
int vi_queue_wait(struct vi_vi *vi, bool is_recv, int64_t deadline, VIP_DESCRIPTOR **desc_out);

/* Arms a one-shot handler.  -EINVAL for a queue with a CQ; -ENOMEM; -ENOSPC: no thread. */
int vi_queue_notify(struct vi_vi *vi, bool is_recv, void *context,
		    void (*handler)(VIP_PVOID, VIP_NIC_HANDLE, VIP_VI_HANDLE, VIP_DESCRIPTOR *));

#endif
