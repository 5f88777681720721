/* SPDX-License-Identifier: BSD-2-Clause */
/* Work queues: the fifo of posted descriptors and the order in which they complete. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "vi_cq_notify.h"
#include "vi_event.h"
#include "vi_limits.h"
#include "vi_wq.h"
#include "vi_wq_hot.h"

#define WQ_FIRST_ENTRIES 16u

/* Allocates entries of zeros, for free(); NULL: out of memory. */
static struct vi_wqe *wqe_array(uint32_t entries)
{
	struct vi_wqe *wqe = aligned_alloc(U_LINE, entries * sizeof(*wqe));

	if (wqe != NULL)
		memset(wqe, 0, entries * sizeof(*wqe));
	return wqe;
}

void vi_wq_forget_regions(struct vi_wq *wq, uint64_t version)
{
	wq->desc_cache.handle = wq->data_cache.handle = VI_NO_REGION;
	wq->tpt_version = version;
}

int vi_wq_init(struct vi_wq *wq, struct vi_vi *vi, bool is_recv)
{
	struct vi_wqe *wqe = wqe_array(WQ_FIRST_ENTRIES);

	if (wqe == NULL)
		return -ENOMEM;
	wq->wqe = wqe;
	wq->mask = WQ_FIRST_ENTRIES - 1;
	wq->head = wq->next = wq->tail = 0;
	atomic_store_explicit(&wq->done, 0, memory_order_relaxed);
	atomic_store_explicit(&wq->reaped, 0, memory_order_relaxed);
	atomic_store_explicit(&wq->hot, VI_WQ_COLD, memory_order_relaxed);
	wq->hot_index = wq->watch_index = VI_NOT_LISTED;
	wq->idle = 0;
	wq->cq = NULL;
	wq->vi = vi;
	wq->is_recv = is_recv;
	vi_wq_forget_regions(wq, 0);
	atomic_store_explicit(&wq->awaited, 0, memory_order_relaxed);
	wq->notify_first = wq->notify_last = NULL;
	wq->ready.wq = wq;
	return 0;
}

void vi_wq_fini(struct vi_wq *wq)
{
	uint32_t n = vi_notify_cancel(&wq->notify_first, &wq->notify_last);

	if (n > 0)
		atomic_fetch_sub_explicit(&wq->vi->nic->notify_armed, n, memory_order_relaxed);
	free(wq->wqe);
	wq->wqe = NULL;
	/* `done` stays: until the queue leaves its CQ, polls still compute done - reaped. */
	wq->head = wq->next = wq->tail = atomic_load_explicit(&wq->done, memory_order_relaxed);
}

U_COLD int vi_wq_grow(struct vi_wq *wq)
{
	uint32_t mask = wq->mask * 2 + 1;
	struct vi_wqe *wqe;

	if (wq->tail - wq->head >= VI_MAX_DESCRIPTORS)
		return -ENOBUFS;
	wqe = wqe_array(mask + 1);
	if (wqe == NULL)
		return -ENOMEM;
	for (uint32_t n = wq->head; n != wq->tail; n++)
		wqe[n & mask] = *vi_wqe(wq, n);
	free(wq->wqe);
	wq->wqe = wqe;
	wq->mask = mask;
	return 0;
}

uint32_t vi_wqe_op(const struct vi_wq *wq, const struct vi_wqe *wqe)
{
	if (wq->is_recv)
		return VIP_STATUS_OP_RECEIVE;
	switch (wqe->control & VIP_CONTROL_OP_MASK) {
	case VIP_CONTROL_OP_RDMAWRITE:
		return VIP_STATUS_OP_RDMA_WRITE;
	case VIP_CONTROL_OP_RDMAREAD:
		return VIP_STATUS_OP_RDMA_READ;
	case VIPX_CONTROL_OP_ATOMIC:
		return VIPX_STATUS_OP_ATOMIC;
	default:
		return VIP_STATUS_OP_SEND;
	}
}

/* Raises an event for a complete descriptor whose memory is not registered any more. */
static U_COLD void lost_descriptor(struct vi_wq *wq, const struct vi_wqe *wqe)
{
	vi_event_raise_desc(wq, wqe->desc, vi_wqe_op(wq, wqe), VIP_RESOURCE_DESCRIPTOR,
			    VIP_ERROR_COMP_PROT);
}

/*
 * Marks the queue, which has a CQ, for polls, makes armed handlers and the descriptor due, and wakes sleepers.  Caller
 * holds the queue's lock.
 */
static void announce_cq(struct vi_wq *wq)
{
	struct vi_nic *nic = wq->vi->nic;
	struct vi_cq *cq = wq->cq;

	vi_cq_mark(wq);
	/* A: `done` before the check for sleepers; pairs with the membarrier of the arming thread. */
	if (u_unlikely(nic->fence))
		atomic_thread_fence(memory_order_seq_cst);
	else
		atomic_signal_fence(memory_order_seq_cst);
	if (u_unlikely(atomic_load_explicit(&cq->armed, memory_order_relaxed) != 0))
		vi_cq_alert(cq);
	if (u_unlikely(atomic_load_explicit(&cq->sleepers, memory_order_relaxed) != 0))
		nic->ops->wake(nic);
}

void vi_wq_announce_to(struct vi_wq *wq, uint32_t awaited)
{
	struct vi_nic *nic = wq->vi->nic;

	if (wq->cq != NULL) {
		announce_cq(wq);
		return;
	}
	if (wq->notify_first != NULL) {
		vi_event_ready(nic, &wq->ready);
		awaited--;
	}
	if (awaited != 0)
		nic->ops->wake(nic);
}

U_COLD int vi_wq_push_short(struct vi_wq *wq, VIP_DESCRIPTOR *desc, uint32_t handle,
			    const struct vi_checked *checked)
{
	const VIP_DATA_SEGMENT *seg = &desc->DS[0].Local;
	struct vi_tpt_cache *g = &wq->data_cache;
	struct vi_checked open = *checked;
	/* Read once, so that the value used is the one checked. */
	uint64_t addr = __atomic_load_n(&seg->Data.AddressBits, __ATOMIC_RELAXED);
	uint32_t len = __atomic_load_n(&seg->Length, __ATOMIC_RELAXED);

	if (len != 0 &&
	    vi_tpt_cache_allows(g, wq->vi, __atomic_load_n(&seg->Handle, __ATOMIC_RELAXED), addr, 1,
				VI_WRITE, 1)) {
		open.at = (uint8_t *)(uintptr_t)addr;
		open.at_len = (uint32_t)u_min64(g->base + g->limit + 1 - addr, len);
	}
	return vi_wq_push(wq, desc, handle, &open);
}

/*
 * Hands the leading run of complete entries to the consumer: writes their descriptors, moves `done`, and announces it.
 * An incomplete first entry: nothing.  Caller holds the lock.
 */
static void advance_done(struct vi_wq *wq)
{
	uint32_t done = atomic_load_explicit(&wq->done, memory_order_relaxed);
	uint32_t first = done;

	while (done != wq->tail && vi_wqe(wq, done)->status != 0) {
		if (u_likely(vi_wqe_there(wq, vi_wqe(wq, done))))
			vi_wq_write_back(wq->is_recv, vi_wqe(wq, done));
		else
			lost_descriptor(wq, vi_wqe(wq, done));
		done++;
	}
	if (done == first)
		return;
	/* A: the descriptors before the count; pairs with vi_wq_entries(). */
	atomic_store_explicit(&wq->done, done, memory_order_release);
	vi_wq_announce(wq);
}

void vi_wq_complete(struct vi_wq *wq, uint32_t n, uint32_t status, uint32_t length)
{
	uint32_t done = atomic_load_explicit(&wq->done, memory_order_relaxed);
	struct vi_wqe *wqe = vi_wqe(wq, n);

	/* It was flushed already: the first status stays. */
	if (u_unlikely(n - done >= wq->tail - done || wqe->status != 0))
		return;
	wqe->status = status | VIP_STATUS_DONE;
	wqe->length = length;
	if (n == done)
		advance_done(wq);
}

/*
 * Completes all incomplete entries from n on with `status` and their operation, and announces them; nothing is left to
 * be started.  Caller holds the lock.
 */
static void flush_from(struct vi_wq *wq, uint32_t n, uint32_t status)
{
	wq->next = wq->tail;
	for (; n != wq->tail; n++) {
		struct vi_wqe *wqe = vi_wqe(wq, n);

		if (wqe->status != 0)
			continue;
		wqe->status = status | vi_wqe_op(wq, wqe) | VIP_STATUS_DONE;
		wqe->length = 0;
	}
	advance_done(wq);
}

void vi_wq_flush(struct vi_wq *wq, uint32_t status)
{
	flush_from(wq, atomic_load_explicit(&wq->done, memory_order_relaxed), status);
}

void vi_wq_flush_new(struct vi_wq *wq, uint32_t status)
{
	flush_from(wq, wq->next, status);
}
