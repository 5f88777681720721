/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

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
