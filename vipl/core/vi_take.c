/* SPDX-License-Identifier: BSD-2-Clause */
/* Taking descriptors back, except the usual case, and waiting for them. */
#include "vi_take.h"

#include <errno.h>
#include <stdlib.h>

#include "vi_event.h"
#include "vi_take_hot.h"
#include "vi_wait.h"

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

int vi_send_done_rest(struct vi_vi *vi, VIP_DESCRIPTOR **desc_out)
{
	if (!vi_wq_empty(&vi->sq))
		return vi_send_done_slow(vi, desc_out);
	u_biased_drop(&vi->tx_lock);
	return -ENOENT;
}

int vi_recv_done_rest(struct vi_vi *vi)
{
	u_biased_drop(&vi->rx_lock);
	return -ENOENT;
}

int vi_recv_done_polled(struct vi_vi *vi, VIP_DESCRIPTOR **desc_out, int came)
{
	int got = 0;

	if (came == VI_POLL_MOVED)
		got = vi_wq_pop(&vi->rq, desc_out);
	else if (came != 0 || vi_nothing_rung(vi))
		return vi_recv_done_slow(vi, desc_out, came);
	u_biased_drop(&vi->rx_lock);
	return got;
}

int vi_send_done_shared(struct vi_vi *vi, uint64_t id, VIP_DESCRIPTOR **desc_out)
{
	u_biased_slow(&vi->tx_lock);
	return vi_send_done_locked(vi, id, desc_out);
}

int vi_recv_done_shared(struct vi_vi *vi, uint64_t id, VIP_DESCRIPTOR **desc_out)
{
	u_biased_slow(&vi->rx_lock);
	return vi_recv_done_locked(vi, id, desc_out);
}

int vi_send_done_slow(struct vi_vi *vi, VIP_DESCRIPTOR **desc_out)
{
	const uint64_t id = atomic_load_explicit(&vi->id, memory_order_relaxed);
	/* The lock keeps the VI from being destroyed, and a VI keeps its NIC open. */
	bool rung = vi->nic->ops->doorbell_rung(vi->nic);
	int got;

	u_biased_drop(&vi->tx_lock);
	if (rung)
		vi_serve_doorbell(vi, id);
	if (vi->fast->progress(vi) == 0 && !rung)
		return 0;
	u_biased_take(&vi->tx_lock);
	got = vi_stale(vi, id) ? -EINVAL : vi_wq_pop(&vi->sq, desc_out);
	u_biased_drop(&vi->tx_lock);
	return got;
}

int vi_recv_done_slow(struct vi_vi *vi, VIP_DESCRIPTOR **desc_out, int came)
{
	const uint64_t id = atomic_load_explicit(&vi->id, memory_order_relaxed);
	bool moved = (came & VI_POLL_MOVED) != 0;
	/* The lock keeps the VI from being destroyed, and a VI keeps its NIC open. */
	bool rung = came == 0 || (!moved && vi_nothing_rung(vi));
	int got = moved ? vi_wq_pop(&vi->rq, desc_out) : 0;

	u_biased_drop(&vi->rx_lock);
	if (rung)
		vi_serve_doorbell(vi, id);
	vi->fast->progress(vi);
	if (got != 0)
		return got;
	u_biased_take(&vi->rx_lock);
	got = vi_stale(vi, id) ? -EINVAL : vi_wq_pop(&vi->rq, desc_out);
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

/* vi_recv_done() or vi_send_done() for vi_wait(); `arg`: a struct wait_arg. */
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
	return vi_wait(vi->nic, &wq->awaited, &vi->ref, try_queue, &arg, deadline);
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
	atomic_fetch_add_explicit(&wq->awaited, 1, memory_order_relaxed);
	if (wq->head != atomic_load_explicit(&wq->done, memory_order_relaxed))
		vi_event_ready(nic, &wq->ready);
	u_biased_drop(queue_lock(vi, is_recv));
	nic->ops->arm(nic);
	nic->ops->progress(nic);
	return 0;
}
