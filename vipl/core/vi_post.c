/* SPDX-License-Identifier: BSD-2-Clause */
/* Posting descriptors and taking them back: the consumer's side of the data path. */
#include <errno.h>
#include <stdlib.h>

#include "u_futex.h"
#include "vi_core.h"
#include "vi_provider.h"

/* The descriptor is not read: what it asks for is not known, only to which queue it went. */
static U_COLD int refuse_post(struct vi_wq *wq, VIP_DESCRIPTOR *desc, int err)
{
	uint32_t op = wq->is_recv ? VIP_STATUS_OP_RECEIVE : VIP_STATUS_OP_SEND;

	if (err == -EINVAL)
		vi_event_raise_desc(wq, desc, op, VIP_RESOURCE_DESCRIPTOR, VIP_ERROR_POST_DESC);
	else if (err == -ENOBUFS)
		vi_event_raise_desc(wq, desc, op, VIP_RESOURCE_VI, VIP_ERROR_VI_OVERRUN);
	return err;
}

/* Caller holds the queue's lock. */
static int append(struct vi_vi *vi, struct vi_wq *wq, VIP_DESCRIPTOR *desc, VIP_MEM_HANDLE handle)
{
	int err = 0;

	if (u_unlikely((uintptr_t)desc % VIP_DESCRIPTOR_ALIGNMENT != 0 ||
		       vi_tpt_check(vi->nic, vi->ptag, (uintptr_t)desc, sizeof(*desc), handle,
				    VI_READ | VI_WRITE) == NULL))
		err = -EINVAL;
	if (u_likely(err == 0))
		err = vi_wq_push(wq, desc, handle);
	if (u_unlikely(err != 0))
		return refuse_post(wq, desc, err);
	/* Who posts cares for completions: they are looked for without a doorbell. */
	if (wq->cq != NULL && atomic_load_explicit(&wq->hot, memory_order_relaxed) == 0)
		vi_cq_mark(wq);
	return 0;
}

static U_COLD void flush_posted(struct vi_wq *wq)
{
	vi_wq_flush(wq, VIP_STATUS_DESC_FLUSHED_ERROR);
}

static bool stale(const struct vi_vi *vi, uint64_t id)
{
	return atomic_load_explicit(&vi->id, memory_order_relaxed) != id;
}

int vi_post_send(struct vi_vi *vi, uint64_t id, VIP_DESCRIPTOR *desc, VIP_MEM_HANDLE handle)
{
	int err = -EINVAL;

	u_lock_take(&vi->tx_lock);
	if (u_likely(!stale(vi, id)))
		err = append(vi, &vi->sq, desc, handle);
	if (u_likely(err == 0)) {
		vi->counters.SendsPosted++;
		if (u_likely(vi_state(vi) == VIP_STATE_CONNECTED))
			vi->fast->post_send(vi);
		else
			flush_posted(&vi->sq);
	}
	u_lock_drop(&vi->tx_lock);
	return err;
}

int vi_post_recv(struct vi_vi *vi, uint64_t id, VIP_DESCRIPTOR *desc, VIP_MEM_HANDLE handle)
{
	int err = -EINVAL;

	u_lock_take(&vi->rx_lock);
	if (u_likely(!stale(vi, id)))
		err = append(vi, &vi->rq, desc, handle);
	if (u_likely(err == 0)) {
		vi->counters.RecvsPosted++;
		if (u_unlikely(vi_state(vi) == VIP_STATE_ERROR))
			flush_posted(&vi->rq);
	}
	u_lock_drop(&vi->rx_lock);
	return err;
}

static struct u_lock *queue_lock(struct vi_vi *vi, bool is_recv)
{
	return is_recv ? &vi->rx_lock : &vi->tx_lock;
}

static struct vi_wq *queue_of(struct vi_vi *vi, bool is_recv)
{
	return is_recv ? &vi->rq : &vi->sq;
}

static int pop(struct vi_vi *vi, uint64_t id, bool is_recv, VIP_DESCRIPTOR **desc_out,
	       bool *rung_out)
{
	struct u_lock *lock = queue_lock(vi, is_recv);
	int got = -EINVAL;

	u_lock_take(lock);
	if (u_likely(!stale(vi, id)))
		got = vi_wq_pop(queue_of(vi, is_recv), desc_out);
	/* While the lock keeps the VI, the VI keeps the NIC open. */
	if (got == 0 && rung_out != NULL)
		*rung_out = vi->nic->ops->bell_rung(vi->nic);
	u_lock_drop(lock);
	return got;
}

/* The doorbell rang, perhaps for another VI. */
static U_COLD void serve_bell(struct vi_vi *vi, uint64_t id)
{
	if (!vi_ref_get(&vi->ref))
		return;
	if (!stale(vi, id))
		vi->nic->ops->progress(vi->nic);
	vi_ref_put(&vi->ref);
}

int vi_queue_done(struct vi_vi *vi, uint64_t id, bool is_recv, VIP_DESCRIPTOR **desc_out)
{
	bool rung = false;
	int got = pop(vi, id, is_recv, desc_out, &rung);

	if (got != 0)
		return got;
	vi_nic_polled(vi->nic);
	if (u_unlikely(rung))
		serve_bell(vi, id);
	else if (vi->fast->poke(vi) == 0)
		return 0;
	return pop(vi, id, is_recv, desc_out, NULL);
}

/* ---- waiting -------------------------------------------------------------------------------- */

struct wait_arg {
	struct vi_vi *vi;
	uint64_t id;
	bool is_recv;
	VIP_DESCRIPTOR **desc_out;
};

static int try_queue(void *arg)
{
	struct wait_arg *w = arg;

	return vi_queue_done(w->vi, w->id, w->is_recv, w->desc_out);
}

int vi_queue_wait(struct vi_vi *vi, bool is_recv, int64_t deadline, VIP_DESCRIPTOR **desc_out)
{
	struct vi_wq *wq = queue_of(vi, is_recv);
	struct wait_arg arg = {
		.vi = vi,
		.id = atomic_load_explicit(&vi->id, memory_order_relaxed),
		.is_recv = is_recv,
		.desc_out = desc_out,
	};

	if (wq->cq != NULL)
		return -EINVAL;
	return vi_wait_on(vi->nic, &wq->sleepers, try_queue, &arg, deadline);
}

int vi_queue_notify(struct vi_vi *vi, bool is_recv, void *context,
		    void (*handler)(VIP_PVOID, VIP_NIC_HANDLE, VIP_VI_HANDLE, VIP_DESCRIPTOR *))
{
	struct vi_wq *wq = queue_of(vi, is_recv);
	struct vi_nic *nic = vi->nic;
	struct vi_notify *n;
	int err;

	if (wq->cq != NULL)
		return -EINVAL;
	err = vi_event_start(nic);
	if (err != 0)
		return err;
	n = calloc(1, sizeof(*n));
	if (n == NULL)
		return -ENOMEM;
	n->context = context;
	n->on_desc = handler;
	atomic_fetch_add_explicit(&nic->notify_armed, 1, memory_order_relaxed);
	u_lock_take(queue_lock(vi, is_recv));
	vi_notify_append(&wq->notify_first, &wq->notify_last, n);
	if (wq->head != atomic_load_explicit(&wq->done, memory_order_relaxed))
		vi_event_ready(nic, &wq->ready);
	u_lock_drop(queue_lock(vi, is_recv));
	nic->ops->arm(nic);
	nic->ops->progress(nic);
	return 0;
}
