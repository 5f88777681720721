/* SPDX-License-Identifier: BSD-2-Clause */
/* Posting descriptors and taking them back: the consumer's side of the data path. */
#include <errno.h>
#include <stdlib.h>

#include "u_futex.h"
#include "vi_event.h"
#include "vi_hot.h"
#include "vi_wait.h"

/* The descriptor is not read: what it asks for is not known, only to which queue it went. */
U_COLD int vi_refuse_post(struct vi_wq *wq, VIP_DESCRIPTOR *desc, int err)
{
	uint32_t op = wq->is_recv ? VIP_STATUS_OP_RECEIVE : VIP_STATUS_OP_SEND;

	if (err == -EINVAL)
		vi_event_raise_desc(wq, desc, op, VIP_RESOURCE_DESCRIPTOR, VIP_ERROR_POST_DESC);
	else if (err == -ENOBUFS)
		vi_event_raise_desc(wq, desc, op, VIP_RESOURCE_VI, VIP_ERROR_VI_OVERRUN);
	return err;
}

int vi_post_send_slow(struct vi_vi *vi, VIP_DESCRIPTOR *desc, VIP_MEM_HANDLE handle,
		      const struct vi_checked *checked)
{
	int err = vi_wq_push(&vi->sq, desc, handle, checked);

	if (u_unlikely(err != 0))
		return vi_refuse_post(&vi->sq, desc, err);
	vi->counters.SendsPosted++;
	vi_wq_heat(&vi->sq);
	if (u_likely(vi_state(vi) == VIP_STATE_CONNECTED))
		vi->fast->post_send(vi);
	else
		vi_wq_flush_new(&vi->sq, VIP_STATUS_DESC_FLUSHED_ERROR);
	return 0;
}

static struct u_biased *queue_lock(struct vi_vi *vi, bool is_recv)
{
	return is_recv ? &vi->rx_lock : &vi->tx_lock;
}

static struct vi_wq *queue_of(struct vi_vi *vi, bool is_recv)
{
	return is_recv ? &vi->rq : &vi->sq;
}

U_COLD void vi_serve_doorbell(struct vi_vi *vi, uint64_t id)
{
	if (!vi_ref_get(&vi->ref))
		return;
	if (atomic_load_explicit(&vi->id, memory_order_relaxed) == id)
		vi->nic->ops->progress(vi->nic);
	vi_ref_put(&vi->ref);
}

int vi_send_done_slow(struct vi_vi *vi, uint64_t id, VIP_DESCRIPTOR **desc_out, bool rung)
{
	if (rung)
		vi_serve_doorbell(vi, id);
	if (vi->fast->progress(vi) == 0 && !rung)
		return 0;
	return vi_send_pop(vi, id, desc_out, NULL);
}

int vi_recv_done_slow(struct vi_vi *vi, uint64_t id, VIP_DESCRIPTOR **desc_out, bool rung, int got)
{
	struct vi_wq *rq = &vi->rq;

	if (rung)
		vi_serve_doorbell(vi, id);
	vi->fast->progress(vi);
	if (got != 0)
		return got;
	u_biased_take(&vi->rx_lock);
	got = vi_stale(vi, id) ? -EINVAL : vi_wq_pop(rq, desc_out);
	u_biased_drop(&vi->rx_lock);
	return got;
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

	return w->is_recv ? vi_recv_done(w->vi, w->id, w->desc_out)
			  : vi_send_done(w->vi, w->id, w->desc_out);
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
	return vi_wait(vi->nic, &wq->sleepers, &vi->ref, try_queue, &arg, deadline);
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
	u_biased_take(queue_lock(vi, is_recv));
	vi_notify_append(&wq->notify_first, &wq->notify_last, n);
	if (wq->head != atomic_load_explicit(&wq->done, memory_order_relaxed))
		vi_event_ready(nic, &wq->ready);
	u_biased_drop(queue_lock(vi, is_recv));
	nic->ops->arm(nic);
	nic->ops->progress(nic);
	return 0;
}
