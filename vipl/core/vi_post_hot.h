/* SPDX-License-Identifier: BSD-2-Clause */
/* Posting a plain descriptor, inline.  The rare cases are in vi_post.c. */
#ifndef VI_POST_HOT_H
#define VI_POST_HOT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "u_base.h"
#include "u_biased.h"
#include "u_trace.h"
#include "vi_objects.h"
#include "vi_post.h"
#include "vi_provider.h"
#include "vi_wq_hot.h"
#include "vipl.h"

/*
 * Is the descriptor aligned, and in the region that the queue used last, at this version of the table?  False:
 * vi_post_send_any() has to check.
 */
static inline bool vi_desc_open(const struct vi_wq *wq, const VIP_DESCRIPTOR *desc, uint32_t handle,
				uint64_t version)
{
	return u_likely(wq->tpt_version == version &&
			(uintptr_t)desc % VIP_DESCRIPTOR_ALIGNMENT == 0) &&
	       wq->desc_cache.handle == handle &&
	       vi_tpt_cache_covers(&wq->desc_cache, (uintptr_t)desc, sizeof(*desc), sizeof(*desc));
}

/* Likewise for the descriptor's data. */
static inline bool vi_data_open(const struct vi_wq *wq, const VIP_DATA_SEGMENT *seg, uint64_t addr,
				uint32_t len)
{
	return wq->data_cache.handle == __atomic_load_n(&seg->Handle, __ATOMIC_RELAXED) &&
	       vi_tpt_cache_covers(&wq->data_cache, addr, len, 1);
}

/*
 * Sends a short plain descriptor of one segment, for which vi_desc_open() is true, at once, and appends it complete;
 * the caller counts it.  False, and nothing done: that is impossible.  Caller holds tx_lock.
 */
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

/*
 * Sends a short plain descriptor, or stores a plain RDMA write, at once, and appends it complete; false, and nothing
 * done, when that is impossible.  Its regions have to be those that the queue used last.  Caller holds tx_lock.
 */
static inline bool vi_post_plain(struct vi_vi *vi, VIP_DESCRIPTOR *desc, VIP_MEM_HANDLE handle)
{
	const uint64_t version = vi_tpt_version(&vi->nic->tpt);
	uint16_t segs;

	if (!vi_desc_open(&vi->sq, desc, handle, version))
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

/*
 * Fills `wqe`, the entry at rq->tail or one after it, which stays outside the queue, with a plain receive; false when
 * it is not plain, its regions are not those that the queue used last, or the VI is in the Error state: then the entry
 * means nothing.  ImmediateData and Length of a receive mean nothing when it is posted.  `version` is the table's.
 * Caller holds rx_lock.
 */
static inline bool vi_fill_plain_recv(const struct vi_vi *vi, struct vi_wqe *wqe,
				      VIP_DESCRIPTOR *desc, VIP_MEM_HANDLE handle, uint64_t version)
{
	const struct vi_wq *rq = &vi->rq;
	const VIP_DATA_SEGMENT *seg;
	uint64_t addr;

	if (!vi_desc_open(rq, desc, handle, version))
		return false;
	/* The entry is filled before the checks are over, so that few values occupy registers. */
	wqe->desc = desc;
	wqe->handle = handle;
	wqe->status = 0;
	wqe->tpt_version = version;
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
 * Appends a plain receive; false, and nothing done, when vi_fill_plain_recv() cannot fill it or the queue has no room.
 * Caller holds rx_lock, calls vi_recv_posted() if vi_recv_in_window(), and vi_wq_heat().
 */
static inline bool vi_append_plain_recv(struct vi_vi *vi, VIP_DESCRIPTOR *desc,
					VIP_MEM_HANDLE handle)
{
	struct vi_wq *rq = &vi->rq;

	if (u_unlikely(!vi_wq_has_room(rq)) ||
	    !vi_fill_plain_recv(vi, vi_wqe(rq, rq->tail), desc, handle,
				vi_tpt_version(&vi->nic->tpt)))
		return false;
	rq->tail++;
	vi->counters.RecvsPosted++;
	return true;
}

/*
 * Posts a send.  0; -EINVAL for a stale id, or a descriptor that is refused; -ENOBUFS: too many are queued; -ENOMEM.
 * Caller holds tx_lock, which is dropped.
 */
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

/*
 * Posts a send.  0; -EINVAL for a stale id, or a descriptor that is refused; -ENOBUFS: too many are queued; -ENOMEM.
 * Takes tx_lock.
 */
static inline int vi_post_send(struct vi_vi *vi, uint64_t id, VIP_DESCRIPTOR *desc,
			       VIP_MEM_HANDLE handle)
{
	U_TRACE(post_entered, vi, desc);
	u_prefetch_write(atomic_load_explicit(&vi->prefetch, memory_order_relaxed));
	if (u_unlikely(!u_biased_enter(&vi->tx_lock, false)))
		return vi_post_send_shared(vi, id, desc, handle);
	return vi_post_send_locked(vi, id, desc, handle);
}

/*
 * Posts a receive.  0; -EINVAL for a stale id, or a descriptor that is refused; -ENOBUFS: too many are queued;
 * -ENOMEM.  Caller holds rx_lock, which is dropped.
 */
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

/*
 * Posts a receive.  0; -EINVAL for a stale id, or a descriptor that is refused; -ENOBUFS: too many are queued;
 * -ENOMEM.  Takes rx_lock.
 */
static inline int vi_post_recv(struct vi_vi *vi, uint64_t id, VIP_DESCRIPTOR *desc,
			       VIP_MEM_HANDLE handle)
{
	if (u_unlikely(!u_biased_enter(&vi->rx_lock, false)))
		return vi_post_recv_shared(vi, id, desc, handle);
	return vi_post_recv_locked(vi, id, desc, handle);
}

#endif
