/* SPDX-License-Identifier: BSD-2-Clause */
/* Work queues: the ring of posted descriptors and the order in which they complete. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "vi_core.h"
#include "vi_provider.h"

#define WQ_FIRST_ENTRIES 16u

int vi_wq_init(struct vi_wq *wq, struct vi_vi *vi, bool is_recv, struct vi_cq *cq)
{
	struct vi_wqe *wqe = calloc(WQ_FIRST_ENTRIES, sizeof(*wqe));

	if (wqe == NULL)
		return -ENOMEM;
	wq->wqe = wqe;
	wq->mask = WQ_FIRST_ENTRIES - 1;
	wq->head = wq->next = wq->tail = 0;
	atomic_store_explicit(&wq->done, 0, memory_order_relaxed);
	atomic_store_explicit(&wq->taken, 0, memory_order_relaxed);
	atomic_store_explicit(&wq->hot, 0, memory_order_relaxed);
	wq->idle = 0;
	wq->cq = cq;
	wq->vi = vi;
	wq->is_recv = is_recv;
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
	/* `done` stays: until the queue leaves its CQ, done - taken is still looked at. */
	wq->head = wq->next = wq->tail = atomic_load_explicit(&wq->done, memory_order_relaxed);
}

static U_COLD int wq_grow(struct vi_wq *wq)
{
	uint32_t mask = wq->mask * 2 + 1;
	struct vi_wqe *wqe = calloc(mask + 1, sizeof(*wqe));

	if (wqe == NULL)
		return -ENOMEM;
	for (uint32_t n = wq->head; n != wq->tail; n++)
		wqe[n & mask] = *vi_wqe(wq, n);
	free(wq->wqe);
	wq->wqe = wqe;
	wq->mask = mask;
	return 0;
}

int vi_wq_push(struct vi_wq *wq, VIP_DESCRIPTOR *desc, uint32_t handle)
{
	uint32_t used = wq->tail - wq->head;
	VIP_CONTROL_SEGMENT cs;
	int err;

	if (u_unlikely(used >= VI_MAX_DESCRIPTORS))
		return -ENOBUFS;
	if (u_unlikely(used > wq->mask)) {
		err = wq_grow(wq);
		if (err != 0)
			return err;
	}
	memcpy(&cs, &desc->CS, sizeof(cs));
	*vi_wqe(wq, wq->tail) = (struct vi_wqe){
		.desc = desc,
		.handle = handle,
		.length = cs.Length,
		.imm = cs.ImmediateData,
		.control = cs.Control,
		.segs = cs.SegCount,
	};
	wq->tail++;
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
	default:
		return VIP_STATUS_OP_SEND;
	}
}

static U_COLD void lost_descriptor(struct vi_wq *wq, const struct vi_wqe *wqe)
{
	vi_event_raise_desc(wq, wqe->desc, vi_wqe_op(wq, wqe), VIP_RESOURCE_DESCRIPTOR,
			    VIP_ERROR_COMP_PROT);
}

/* Writes the completion into the consumer's descriptor. */
static void write_back(struct vi_wq *wq, const struct vi_wqe *wqe)
{
	VIP_DESCRIPTOR *desc = wqe->desc;

	if (u_unlikely(vi_tpt_check(wq->vi->nic, wq->vi->ptag, (uintptr_t)desc, sizeof(*desc),
				    wqe->handle, VI_READ | VI_WRITE) == NULL)) {
		lost_descriptor(wq, wqe);
		return;
	}
	if (wq->is_recv) {
		desc->CS.Length = wqe->length;
		if (wqe->status & VIP_STATUS_IMMEDIATE)
			desc->CS.ImmediateData = wqe->imm;
	}
	/* A: a program that polls Status sees data, Length and ImmediateData with it. */
	__atomic_store_n(&desc->CS.Status, wqe->status, __ATOMIC_RELEASE);
}

/* Tells those who wait for this queue. */
static void announce(struct vi_wq *wq)
{
	struct vi_nic *nic = wq->vi->nic;
	struct vi_cq *cq = wq->cq;

	if (cq != NULL) {
		vi_cq_mark(wq);
		/* A: `done` before the look for sleepers; pairs with the membarrier of who arms. */
		if (u_unlikely(nic->fence))
			atomic_thread_fence(memory_order_seq_cst);
		else
			atomic_signal_fence(memory_order_seq_cst);
		if (u_unlikely(atomic_load_explicit(&cq->armed, memory_order_relaxed) != 0))
			vi_cq_alert(cq);
		if (u_unlikely(atomic_load_explicit(&cq->sleepers, memory_order_relaxed) != 0))
			nic->ops->wake(nic);
		return;
	}
	/* Those who arm here do it, or look again, under the queue's lock. */
	if (u_unlikely(wq->notify_first != NULL))
		vi_event_ready(nic, &wq->ready);
	if (u_unlikely(atomic_load_explicit(&wq->sleepers, memory_order_relaxed) != 0))
		nic->ops->wake(nic);
}

/* Hands the leading run of complete entries to the consumer. */
static void advance_done(struct vi_wq *wq)
{
	uint32_t done = atomic_load_explicit(&wq->done, memory_order_relaxed);
	uint32_t first = done;

	while (done != wq->tail && vi_wqe(wq, done)->status != 0) {
		write_back(wq, vi_wqe(wq, done));
		done++;
	}
	if (done == first)
		return;
	/* A: the descriptors before the count; pairs with vi_cq_take(). */
	atomic_store_explicit(&wq->done, done, memory_order_release);
	announce(wq);
}

void vi_wq_complete(struct vi_wq *wq, uint32_t n, uint32_t status, uint32_t length)
{
	uint32_t done = atomic_load_explicit(&wq->done, memory_order_relaxed);
	struct vi_wqe *wqe = vi_wqe(wq, n);

	/* Flushed meanwhile: the first status stands. */
	if (u_unlikely(n - done >= wq->tail - done || wqe->status != 0))
		return;
	wqe->status = status | VIP_STATUS_DONE;
	wqe->length = length;
	if (n == done)
		advance_done(wq);
}

void vi_wq_flush(struct vi_wq *wq, uint32_t status)
{
	uint32_t n = atomic_load_explicit(&wq->done, memory_order_relaxed);

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

int vi_wq_pop(struct vi_wq *wq, VIP_DESCRIPTOR **desc_out)
{
	struct vi_wqe *wqe;

	if (wq->head == wq->tail)
		return -ENOENT;
	if (wq->head == atomic_load_explicit(&wq->done, memory_order_relaxed))
		return 0;
	wqe = vi_wqe(wq, wq->head++);
	*desc_out = wqe->desc;
	return u_unlikely(wqe->status & VIP_STATUS_ERROR_MASK) ? 2 : 1;
}
