/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The consumer's side of the data path, inline: posting descriptors, completing them, taking them
 * back.  The rare cases are elsewhere (vi_post.c, vi_wq.c).
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

/* From now on the caches of regions hold what the table says under `epoch`. */
void vi_wq_forget_regions(struct vi_wq *wq, uint64_t epoch);

/* What there is to know of a descriptor before it is queued. */
struct vi_checked {
	uint64_t epoch;
	uint8_t *at;	 /* as in struct vi_wqe */
	uint32_t at_len; /* 0 without `at` */
	uint32_t length, imm;
	uint16_t control, segs;
};

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
 * Pushes a plain receive that declares more than is open: its memory ends where the region does, as
 * bytes that do not come need no place.
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

/* Tells those that wait for this queue, of whom there are some. */
void vi_wq_announce_to(struct vi_wq *wq, uint32_t awaited);

/* Arming is done, or checked again, under the queue's lock. */
static inline uint32_t vi_wq_awaited(const struct vi_wq *wq)
{
	return atomic_load_explicit(&wq->awaited, memory_order_relaxed);
}

/* Wakes and tells all that wait for this queue. */
static inline void vi_wq_announce(struct vi_wq *wq)
{
	uint32_t awaited = vi_wq_awaited(wq);

	if (u_unlikely(awaited != 0))
		vi_wq_announce_to(wq, awaited);
}

/*
 * vi_wq_complete() without error, short: for entry n == `done`, when no entry behind it is
 * complete and its epoch is the table's.
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

/* As vi_wq_complete_next() for `count` entries, which are told of together. */
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

/* ---- the calls ------------------------------------------------------------------------------ */

/*
 * They hold no reference: `id` is compared under the queue's lock.  Posting answers
 * -EINVAL for a stale id, or a descriptor that raised VIP_ERROR_POST_DESC; -ENOBUFS
 * when the queue is full, VIP_ERROR_VI_OVERRUN was raised.
 */
int vi_refuse_post(struct vi_wq *wq, VIP_DESCRIPTOR *desc, int err);
/* Post any descriptor.  Caller holds the queue's lock. */
int vi_post_send_any(struct vi_vi *vi, VIP_DESCRIPTOR *desc, VIP_MEM_HANDLE handle);
int vi_post_recv_any(struct vi_vi *vi, VIP_DESCRIPTOR *desc, VIP_MEM_HANDLE handle);

static inline bool vi_stale(const struct vi_vi *vi, uint64_t id)
{
	return atomic_load_explicit(&vi->id, memory_order_relaxed) != id;
}

/* A program that posts will want the completion: the queue is polled without a doorbell. */
static inline void vi_wq_heat(struct vi_wq *wq)
{
	if (wq->cq != NULL &&
	    u_unlikely(atomic_load_explicit(&wq->hot, memory_order_relaxed) == VI_WQ_COLD))
		vi_cq_mark(wq);
}

/* Has the queue room, and nothing that a new descriptor would have to follow? */
static inline bool vi_sq_idle(const struct vi_wq *sq)
{
	return vi_wq_has_room(sq) &&
	       atomic_load_explicit(&sq->done, memory_order_relaxed) == sq->tail;
}

/*
 * Appends descriptors that are complete without having been queued, to a queue of which nothing
 * else is in progress.
 */
static inline void vi_sq_append_done_run(struct vi_wq *sq, VIP_DESCRIPTOR *const *descs,
					 uint32_t count, uint32_t length, uint32_t status)
{
	/* Of an entry that is complete only these three are looked at. */
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

static inline void vi_sq_append_done(struct vi_wq *sq, VIP_DESCRIPTOR *desc, uint32_t length,
				     uint32_t status)
{
	vi_sq_append_done_run(sq, &desc, 1, length, status);
}

/* Tells of what vi_sq_append_done() appended. */
static inline void vi_sq_announce_done(struct vi_wq *sq)
{
	vi_wq_announce(sq);
	vi_wq_heat(sq);
}

/* Is the descriptor in the region that the queue used last?  False: vi_post_send_any() tells more. */
static inline bool vi_desc_open(const struct vi_wq *wq, const VIP_DESCRIPTOR *desc, uint32_t handle,
				uint64_t epoch)
{
	return u_likely(wq->epoch == epoch && (uintptr_t)desc % VIP_DESCRIPTOR_ALIGNMENT == 0) &&
	       wq->desc_cache.handle == handle &&
	       vi_tpt_cache_covers(&wq->desc_cache, (uintptr_t)desc, sizeof(*desc), sizeof(*desc));
}

/* Is its data, too?  As above. */
static inline bool vi_data_open(const struct vi_wq *wq, const VIP_DATA_SEGMENT *seg, uint64_t addr,
				uint32_t len)
{
	return wq->data_cache.handle == __atomic_load_n(&seg->Handle, __ATOMIC_RELAXED) &&
	       vi_tpt_cache_covers(&wq->data_cache, addr, len, 1);
}

/* As vi_post_plain() for a descriptor that is open. */
static inline bool vi_post_plain_send(struct vi_vi *vi, VIP_DESCRIPTOR *desc)
{
	const VIP_DATA_SEGMENT *seg = &desc->DS[0].Local;
	struct vi_wq *sq = &vi->sq;
	uint16_t control = __atomic_load_n(&desc->CS.Control, __ATOMIC_RELAXED);
	uint32_t length = __atomic_load_n(&desc->CS.Length, __ATOMIC_RELAXED);
	uint64_t addr = __atomic_load_n(&seg->Data.AddressBits, __ATOMIC_RELAXED);

	if (u_unlikely(length > vi->unqueued_max || (control & ~VIP_CONTROL_IMMEDIATE) != 0 ||
		       __atomic_load_n(&seg->Length, __ATOMIC_RELAXED) != length ||
		       !vi_data_open(sq, seg, addr, length) || !vi_sq_idle(sq)))
		return false;
	return u_likely(vi->fast->send_unqueued(vi, desc, (const uint8_t *)(uintptr_t)addr, length,
						control));
}

bool vi_post_plain_write(struct vi_vi *vi, VIP_DESCRIPTOR *desc);

/*
 * Sends a short plain descriptor at once, before it is queued; false, and nothing done, when that
 * cannot be.  Caller holds tx_lock.
 */
static inline bool vi_post_plain(struct vi_vi *vi, VIP_DESCRIPTOR *desc, VIP_MEM_HANDLE handle)
{
	const uint64_t epoch = vi_tpt_epoch(&vi->nic->tpt);
	uint16_t segs;

	if (!vi_desc_open(&vi->sq, desc, handle, epoch))
		return false;
	segs = __atomic_load_n(&desc->CS.SegCount, __ATOMIC_RELAXED);
	if (!(u_likely(segs == 1) ? vi_post_plain_send(vi, desc)
				  : segs == 2 && vi_post_plain_write(vi, desc)))
		return false;
	vi->counters.SendsPosted++;
	return true;
}

/* Is the region that the receive queue used last window memory? */
static inline bool vi_recv_in_window(const struct vi_vi *vi)
{
	return (vi->rq.data_cache.rights & VI_WINDOW) != 0;
}

/* Tells the provider of the receive that was just appended, if it is one that it wants to know of. */
void vi_recv_posted(struct vi_vi *vi);

/*
 * Fills the next entry of the receive queue with a plain receive; false when it is not plain.  Of a
 * receive ImmediateData and Length as posted mean nothing.  `epoch` is the table's.  Caller holds rx_lock.
 */
static inline bool vi_fill_plain_recv(const struct vi_vi *vi, struct vi_wqe *wqe,
				      VIP_DESCRIPTOR *desc, VIP_MEM_HANDLE handle, uint64_t epoch)
{
	const struct vi_wq *rq = &vi->rq;
	const VIP_DATA_SEGMENT *seg;
	uint64_t addr;

	if (!vi_desc_open(rq, desc, handle, epoch))
		return false;
	/* The entry is filled before the checks are over, so that little has to be remembered. */
	wqe->desc = desc;
	wqe->handle = handle;
	wqe->status = 0;
	wqe->epoch = epoch;
	wqe->segs = __atomic_load_n(&desc->CS.SegCount, __ATOMIC_RELAXED);
	wqe->control = __atomic_load_n(&desc->CS.Control, __ATOMIC_RELAXED);
	seg = &desc->DS[0].Local;
	addr = __atomic_load_n(&seg->Data.AddressBits, __ATOMIC_RELAXED);
	wqe->at = (uint8_t *)(uintptr_t)addr;
	wqe->at_len = __atomic_load_n(&seg->Length, __ATOMIC_RELAXED);
	return u_likely(wqe->segs == 1 && (wqe->control & ~VIP_CONTROL_IMMEDIATE) == 0 &&
			vi_data_open(rq, seg, addr, wqe->at_len) &&
			vi_state(vi) != VIP_STATE_ERROR);
}

/*
 * Appends a plain receive; false, and nothing done, when it is not plain.  Caller holds rx_lock, calls
 * vi_recv_posted() if vi_recv_in_window(), and vi_wq_heat().
 */
static inline bool vi_append_plain_recv(struct vi_vi *vi, VIP_DESCRIPTOR *desc,
					VIP_MEM_HANDLE handle)
{
	struct vi_wq *rq = &vi->rq;

	if (u_unlikely(!vi_wq_has_room(rq)) ||
	    !vi_fill_plain_recv(vi, vi_wqe(rq, rq->tail), desc, handle,
				vi_tpt_epoch(&vi->nic->tpt)))
		return false;
	rq->tail++;
	vi->counters.RecvsPosted++;
	return true;
}

/*
 * The calls below do the usual case inline, and leave every other by one call at their end, so that the
 * usual one has few registers to save.  Those calls are made with the queue's lock held and drop it,
 * but for *_shared(): it takes the lock, which is not biased to this thread.
 */
int vi_post_send_rest(struct vi_vi *vi, VIP_DESCRIPTOR *desc, VIP_MEM_HANDLE handle);
int vi_post_recv_rest(struct vi_vi *vi, VIP_DESCRIPTOR *desc, VIP_MEM_HANDLE handle);
int vi_post_send_shared(struct vi_vi *vi, uint64_t id, VIP_DESCRIPTOR *desc, VIP_MEM_HANDLE handle);
int vi_post_recv_shared(struct vi_vi *vi, uint64_t id, VIP_DESCRIPTOR *desc, VIP_MEM_HANDLE handle);
/* The VI was destroyed, or the handle is a parent's: -EINVAL. */
int vi_drop_stale(struct u_biased *lock, uint64_t id);

/* Caller holds tx_lock, which is dropped. */
static inline int vi_post_send_locked(struct vi_vi *vi, uint64_t id, VIP_DESCRIPTOR *desc,
				      VIP_MEM_HANDLE handle)
{
	if (u_unlikely(vi_stale(vi, id)))
		return vi_drop_stale(&vi->tx_lock, id);
	if (u_unlikely(!vi_post_plain(vi, desc, handle)))
		return vi_post_send_rest(vi, desc, handle);
	u_biased_drop(&vi->tx_lock);
	return 0;
}

static inline int vi_post_send(struct vi_vi *vi, uint64_t id, VIP_DESCRIPTOR *desc,
			       VIP_MEM_HANDLE handle)
{
	U_TRACE(post_entered, vi, desc);
	u_prefetch_write(atomic_load_explicit(&vi->ask, memory_order_relaxed));
	if (u_unlikely(!u_biased_enter(&vi->tx_lock, false)))
		return vi_post_send_shared(vi, id, desc, handle);
	return vi_post_send_locked(vi, id, desc, handle);
}

/* Tells the provider and the CQ of a receive that was appended, and drops rx_lock; 0. */
int vi_post_recv_appended(struct vi_vi *vi);

/* Caller holds rx_lock, which is dropped. */
static inline int vi_post_recv_locked(struct vi_vi *vi, uint64_t id, VIP_DESCRIPTOR *desc,
				      VIP_MEM_HANDLE handle)
{
	if (u_unlikely(vi_stale(vi, id)))
		return vi_drop_stale(&vi->rx_lock, id);
	if (u_unlikely(!vi_append_plain_recv(vi, desc, handle)))
		return vi_post_recv_rest(vi, desc, handle);
	if (vi->rq.cq != NULL || u_unlikely(vi_recv_in_window(vi)))
		return vi_post_recv_appended(vi);
	u_biased_drop(&vi->rx_lock);
	return 0;
}

static inline int vi_post_recv(struct vi_vi *vi, uint64_t id, VIP_DESCRIPTOR *desc,
			       VIP_MEM_HANDLE handle)
{
	if (u_unlikely(!u_biased_enter(&vi->rx_lock, false)))
		return vi_post_recv_shared(vi, id, desc, handle);
	return vi_post_recv_locked(vi, id, desc, handle);
}

/* The doorbell rang, perhaps for another VI. */
void vi_serve_doorbell(struct vi_vi *vi, uint64_t id);

/* Caller holds tx_lock, which is dropped: the head of the queue is in progress. */
int vi_send_done_slow(struct vi_vi *vi, VIP_DESCRIPTOR **desc_out);
/*
 * Caller holds rx_lock, which is dropped; `came` is what poll_recv() answered, 0 when the doorbell
 * rang.
 */
int vi_recv_done_slow(struct vi_vi *vi, VIP_DESCRIPTOR **desc_out, int came);

int vi_send_done_rest(struct vi_vi *vi, VIP_DESCRIPTOR **desc_out);
int vi_recv_done_rest(struct vi_vi *vi);
int vi_send_done_shared(struct vi_vi *vi, uint64_t id, VIP_DESCRIPTOR **desc_out);
int vi_recv_done_shared(struct vi_vi *vi, uint64_t id, VIP_DESCRIPTOR **desc_out);
/* poll_recv() answered `came` to the caller, who holds rx_lock, which is dropped. */
int vi_recv_done_polled(struct vi_vi *vi, VIP_DESCRIPTOR **desc_out, int came);

/* Is the head of the queue complete?  Then the queue is not empty. */
static inline bool vi_wq_head_done(const struct vi_wq *wq)
{
	return wq->head != atomic_load_explicit(&wq->done, memory_order_relaxed);
}

/*
 * Take the head of a queue, after a poll if it is in progress.  1: complete
 * without error; 2: with error; 0: in progress; -ENOENT: empty; -EINVAL: stale id.
 */
static inline int vi_send_done_locked(struct vi_vi *vi, uint64_t id, VIP_DESCRIPTOR **desc_out)
{
	int got;

	if (u_unlikely(vi_stale(vi, id)))
		return vi_drop_stale(&vi->tx_lock, id);
	if (u_unlikely(!vi_wq_head_done(&vi->sq)))
		return vi_send_done_rest(vi, desc_out);
	got = vi_wq_take(&vi->sq, desc_out);
	u_biased_drop(&vi->tx_lock);
	return got;
}

static inline int vi_send_done(struct vi_vi *vi, uint64_t id, VIP_DESCRIPTOR **desc_out)
{
	if (u_unlikely(!u_biased_enter(&vi->tx_lock, false)))
		return vi_send_done_shared(vi, id, desc_out);
	return vi_send_done_locked(vi, id, desc_out);
}

/* A poll found nothing: did the doorbell ring, perhaps for another VI? */
static inline bool vi_nothing_rung(struct vi_vi *vi)
{
	u_poll_empty();
	return vi->nic->ops->doorbell_rung(vi->nic);
}

static inline int vi_recv_done_locked(struct vi_vi *vi, uint64_t id, VIP_DESCRIPTOR **desc_out)
{
	int got, came;

	if (u_unlikely(vi_stale(vi, id)))
		return vi_drop_stale(&vi->rx_lock, id);
	if (u_unlikely(vi_wq_empty(&vi->rq)))
		return vi_recv_done_rest(vi);
	if (u_likely(!vi_wq_head_done(&vi->rq))) {
		came = vi->fast->poll_recv(vi);
		if (u_unlikely(came != VI_POLL_MOVED || !vi_wq_head_done(&vi->rq)))
			return vi_recv_done_polled(vi, desc_out, came);
	}
	got = vi_wq_take(&vi->rq, desc_out);
	u_biased_drop(&vi->rx_lock);
	return got;
}

static inline int vi_recv_done(struct vi_vi *vi, uint64_t id, VIP_DESCRIPTOR **desc_out)
{
	if (u_unlikely(!u_biased_enter(&vi->rx_lock, false)))
		return vi_recv_done_shared(vi, id, desc_out);
	return vi_recv_done_locked(vi, id, desc_out);
}

/* As vi_send_done() or vi_recv_done(), waiting; 0 at the deadline.  -EINVAL also for a queue with a
 * CQ. */
int vi_queue_wait(struct vi_vi *vi, bool is_recv, int64_t deadline, VIP_DESCRIPTOR **desc_out);

/* Arms a one-shot handler.  -EINVAL for a queue with a CQ; -ENOMEM; -ENOSPC: no thread. */
int vi_queue_notify(struct vi_vi *vi, bool is_recv, void *context,
		    void (*handler)(VIP_PVOID, VIP_NIC_HANDLE, VIP_VI_HANDLE, VIP_DESCRIPTOR *));

#endif
