/* SPDX-License-Identifier: BSD-2-Clause */
/* Taking a descriptor back, inline.  The rare cases are in vi_take.c. */
#ifndef VI_TAKE_HOT_H
#define VI_TAKE_HOT_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include "u_base.h"
#include "u_biased.h"
#include "u_time.h"
#include "vi_objects.h"
#include "vi_post.h"
#include "vi_provider.h"
#include "vi_take.h"
#include "vi_wq_hot.h"
#include "vipl.h"

/*
 * Takes the head of the send queue, after a poll if it is in progress.  1: it completed without error; 2: with error;
 * 0: in progress; -ENOENT: empty; -EINVAL: stale id.  *desc_out is set only with 1 and 2.  Caller holds tx_lock, which
 * is dropped.
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

/*
 * Takes the head of the send queue, after a poll if it is in progress.  1: it completed without error; 2: with error;
 * 0: in progress; -ENOENT: empty; -EINVAL: stale id.  Takes tx_lock.
 */
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

/*
 * Takes the head of the receive queue, after a poll if it is in progress.  1: it completed without error; 2: with
 * error; 0: in progress; -ENOENT: empty; -EINVAL: stale id.  *desc_out is set only with 1 and 2.  Caller holds
 * rx_lock, which is dropped.
 */
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

/*
 * Takes the head of the receive queue, after a poll if it is in progress.  1: it completed without error; 2: with
 * error; 0: in progress; -ENOENT: empty; -EINVAL: stale id.  Takes rx_lock.
 */
static inline int vi_recv_done(struct vi_vi *vi, uint64_t id, VIP_DESCRIPTOR **desc_out)
{
	if (u_unlikely(!u_biased_enter(&vi->rx_lock, false)))
		return vi_recv_done_shared(vi, id, desc_out);
	return vi_recv_done_locked(vi, id, desc_out);
}

#endif
