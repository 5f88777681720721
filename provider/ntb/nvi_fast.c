/* SPDX-License-Identifier: BSD-2-Clause */
#include "nvi_fast.h"
#include "nvi_advert.h"
#include "nvi_post.h"
#include "nvi_progress.h"
#include "nvi_write.h"
#include "vi_wq_hot.h"

const struct vi_fast_ops nvi_fast = {
	.unqueued_max = VI_LONG_RECV - 1,
	.packed_max = W_INLINE_MAX,
	.send_unqueued = nvi_send_unqueued,
	.send_packed = nvi_send_packed,
	.write_unqueued = nvi_write_unqueued,
	.post_send = nvi_post_send,
	.recv_posted = nvi_recv_posted,
	.poll_recv = nvi_poll_recv,
	.progress = nvi_progress_vi,
	.unpolled = nvi_unpolled,
	.watch = nvi_watch,
};

/*
 * Refuses a write without a queue entry: on this channel a store may be lost with the path, so it
 * is queued, and completes when it is known to have arrived.
 */
static bool refuse_write_unqueued(struct vi_vi *vi, const uint8_t *at, uint32_t n, uint64_t addr,
				  uint32_t handle)
{
	return false;
}

const struct vi_fast_ops nvi_fast_resumable = {
	.unqueued_max = W_INLINE_MAX,
	.packed_max = W_INLINE_MAX,
	.send_unqueued = nvi_send_unqueued_resumable,
	.send_packed = nvi_send_packed,
	.write_unqueued = refuse_write_unqueued,
	.post_send = nvi_post_send,
	.recv_posted = nvi_recv_posted,
	.poll_recv = nvi_poll_recv,
	.progress = nvi_progress_vi,
	.unpolled = nvi_unpolled,
	.watch = nvi_watch,
};

/* Refuses a send without a queue entry: does nothing, and returns false. */
static bool refuse_send_unqueued(struct vi_vi *vi, VIP_DESCRIPTOR *desc, const uint8_t *at,
				 uint32_t n, uint16_t control)
{
	return false;
}

/* vi_fast_ops.post_send during a disconnect: completes new sends as flushed, and sends nothing. */
static void flush_posted(struct vi_vi *vi)
{
	vi_wq_flush_new(&vi->sq, VIP_STATUS_DESC_FLUSHED_ERROR);
}

const struct vi_fast_ops nvi_fast_closing = {
	.send_unqueued = refuse_send_unqueued,
	.write_unqueued = refuse_write_unqueued,
	.post_send = flush_posted,
	.recv_posted = nvi_recv_posted,
	.poll_recv = nvi_poll_recv,
	.progress = nvi_progress_vi,
	.unpolled = nvi_unpolled,
	.watch = nvi_watch,
};
