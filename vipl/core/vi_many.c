/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

#include "vi_cq_list.h"
#include "vi_hot.h"
#include "vi_many.h"

/* ---- posting --------------------------------------------------------------------------------- */

int vi_post_sends(struct vi_vi *vi, uint64_t id, VIP_DESCRIPTOR *const *descs, uint64_t count,
		  VIP_MEM_HANDLE handle, uint64_t *posted_out)
{
	uint64_t i = 0;
	int err = 0;

	u_biased_take(&vi->tx_lock);
	if (u_unlikely(vi_stale(vi, id)))
		err = -EINVAL;
	for (; err == 0 && i < count; i += err == 0) {
		U_TRACE(post_entered, vi, descs[i]);
		u_prefetch_write(atomic_load_explicit(&vi->ask, memory_order_relaxed));
		if (u_unlikely(descs[i] == NULL))
			err = -EINVAL;
		else if (u_unlikely(!vi_post_plain(vi, descs[i], handle)))
			err = vi_post_send_any(vi, descs[i], handle);
	}
	u_biased_drop(&vi->tx_lock);
	*posted_out = i;
	return err;
}

int vi_post_recvs(struct vi_vi *vi, uint64_t id, VIP_DESCRIPTOR *const *descs, uint64_t count,
		  VIP_MEM_HANDLE handle, uint64_t *posted_out)
{
	uint64_t i = 0;
	int err = 0;

	u_biased_take(&vi->rx_lock);
	if (u_unlikely(vi_stale(vi, id)))
		err = -EINVAL;
	for (; err == 0 && i < count; i += err == 0) {
		if (u_unlikely(descs[i] == NULL))
			err = -EINVAL;
		else if (u_unlikely(!vi_append_plain_recv(vi, descs[i], handle)))
			err = vi_post_recv_any(vi, descs[i], handle);
		else if (u_unlikely(vi_recv_in_window(vi)))
			vi_recv_posted(vi);
	}
	if (i > 0)
		vi_wq_heat(&vi->rq);
	u_biased_drop(&vi->rx_lock);
	*posted_out = i;
	return err;
}

/* ---- taking ---------------------------------------------------------------------------------- */

/* Moves complete descriptors from the queue to `descs`.  Caller holds the queue's lock. */
static inline int pop_many(struct vi_wq *wq, VIP_DESCRIPTOR **descs, uint64_t max, uint64_t *count)
{
	int got = 0;

	while (*count < max) {
		got = vi_wq_pop(wq, &descs[*count]);
		if (got <= 0)
			break;
		++*count;
		if (u_unlikely(got == 2))
			return 2;
	}
	return *count > 0 ? 1 : 0;
}

int vi_sends_done(struct vi_vi *vi, uint64_t id, VIP_DESCRIPTOR **descs, uint64_t max,
		  uint64_t *count_out)
{
	uint64_t count = 0;
	int got = -EINVAL;

	max = u_min64(max, VI_TAKE_MOST);
	u_biased_take(&vi->tx_lock);
	if (u_likely(!vi_stale(vi, id))) {
		got = pop_many(&vi->sq, descs, max, &count);
		if (got == 0 && !vi_wq_empty(&vi->sq)) {
			got = vi_send_done_slow(vi, descs);
			*count_out = got > 0;
			return got == -ENOENT ? 0 : got;
		}
	}
	u_biased_drop(&vi->tx_lock);
	*count_out = count;
	return got;
}

/*
 * Takes in arrived messages until a poll completes none: a peer can keep a queue busy for ever with
 * slots that complete nothing, such as those of RDMA writes.  What poll_recv() answered altogether.
 */
static int take_arrivals(struct vi_vi *vi, VIP_DESCRIPTOR **descs, uint64_t max, uint64_t *count,
			 int *got)
{
	int came = 0, once = VI_POLL_MOVED;
	uint64_t before = UINT64_MAX;

	while (*got != 2 && *count < max && *count != before && !vi_wq_empty(&vi->rq) &&
	       once == VI_POLL_MOVED) {
		before = *count;
		once = vi->fast->poll_recv(vi);
		came |= once;
		if (once & VI_POLL_MOVED)
			*got = pop_many(&vi->rq, descs, max, count);
	}
	return came;
}

int vi_recvs_done(struct vi_vi *vi, uint64_t id, VIP_DESCRIPTOR **descs, uint64_t max,
		  uint64_t *count_out)
{
	uint64_t count = 0;
	int got, came;

	max = u_min64(max, VI_TAKE_MOST);
	*count_out = 0;
	u_biased_take(&vi->rx_lock);
	if (u_unlikely(vi_stale(vi, id))) {
		u_biased_drop(&vi->rx_lock);
		return -EINVAL;
	}
	got = pop_many(&vi->rq, descs, max, &count);
	came = take_arrivals(vi, descs, max, &count, &got);
	if (u_unlikely(count == 0)) {
		if (came == 0 && !vi_nothing_rung(vi)) {
			u_biased_drop(&vi->rx_lock);
			return 0;
		}
		got = vi_recv_done_slow(vi, descs, came);
		*count_out = got > 0;
		return got == -ENOENT ? 0 : got;
	}
	u_biased_drop(&vi->rx_lock);
	*count_out = count;
	if (u_unlikely(came & VI_POLL_PROGRESS))
		vi->fast->progress(vi);
	return got;
}

/* ---- taking of a CQ --------------------------------------------------------------------------- */

#define TAKE_OF_ONE 16u /* entries of one queue, before it is the turn of another */

/* Where the next completion goes, and how many there is room for. */
struct taken {
	uint8_t *at;
	size_t stride;
	uint64_t left;
};

static void append_taken(struct taken *t, struct vi_wq *wq, uint64_t id, VIP_DESCRIPTOR *desc)
{
	const struct vi_wqe *wqe = vi_wqe(wq, wq->head - 1);
	VIPX_COMPLETION *c = (VIPX_COMPLETION *)(void *)t->at;

	c->ViHandle = vi_id_handle(id);
	c->Context = wq->vi->context;
	c->DescriptorPtr = desc;
	c->RecvQueue = wq->is_recv ? VIP_TRUE : VIP_FALSE;
	c->Status = wqe->status;
	c->Length = wqe->length;
	c->Reserved = 0;
	t->at += t->stride;
	t->left--;
}

/*
 * Has the queue, of whose entries none is left, another one?  Takes in what arrived, but where it has no receive: that
 * is left to polls.  Caller holds the queue's lock.
 */
static bool another_came(struct vi_wq *wq, int *came)
{
	struct vi_vi *vi = wq->vi;

	if (!wq->is_recv || vi_wq_empty(wq))
		return false;
	*came |= vi->fast->poll_recv(vi);
	return vi_wq_entries(wq) != 0;
}

/* Takes completions of a queue of which one entry was taken.  Caller holds cq->lock. */
static void take_of_queue(struct vi_wq *wq, struct taken *t)
{
	struct vi_vi *vi = wq->vi;
	struct u_biased *lock = vi_wq_lock(wq);
	VIP_DESCRIPTOR *desc;
	int came = 0;
	uint64_t id;

	u_biased_take(lock);
	id = atomic_load_explicit(&vi->id, memory_order_relaxed);
	for (uint32_t n = 1;; n++) {
		if (vi_wq_pop(wq, &desc) > 0)
			append_taken(t, wq, id, desc);
		else
			vi_wq_reap_all(wq);
		if (n == TAKE_OF_ONE || t->left == 0 ||
		    (vi_wq_entries(wq) == 0 && !another_came(wq, &came)))
			break;
		vi_wq_reap(wq);
	}
	u_biased_drop(lock);
	if (u_unlikely(came & VI_POLL_PROGRESS))
		vi->fast->progress(vi);
}

int vi_cq_take_many(struct vi_cq *cq, uint64_t id, void *out, size_t stride, uint64_t max,
		    uint64_t *count_out)
{
	const uint64_t most = u_min64(max, VI_TAKE_MOST);
	struct taken t = { .at = out, .stride = stride, .left = most };
	struct vi_wq *wq;
	int err = 0;

	u_biased_take(&cq->lock);
	if (u_unlikely(atomic_load_explicit(&cq->id, memory_order_relaxed) != id))
		err = -EINVAL;
	/* Bounded: entries whose descriptors others take need not end, but a queue has none left after one poll. */
	for (uint64_t n = 0; err == 0 && n < most + cq->attached && t.left > 0; n++) {
		if (!vi_cq_poll_locked(cq, t.left == most, &wq))
			break;
		take_of_queue(wq, &t);
	}
	u_biased_drop(&cq->lock);
	*count_out = most - t.left;
	return err != 0 ? err : *count_out > 0;
}
