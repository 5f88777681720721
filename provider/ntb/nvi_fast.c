/* SPDX-License-Identifier: BSD-2-Clause */
#include "nvi_fast.h"
#include "nvi_post.h"
#include "nvi_progress.h"
#include "nvi_write.h"
#include "vi_hot.h"

const struct vi_fast_ops nvi_fast = {
	.now_max = W_INLINE_MAX,
	.send_now = nvi_send_plain,
	.write_now = nvi_write_unqueued,
	.post_send = nvi_post_send,
	.poll_recv = nvi_poll_recv,
	.progress = nvi_progress_vi,
	.unpolled = nvi_unpolled,
};

/*
 * A store that may be lost with the path is queued, and completes when it is seen to have arrived.
 */
static bool write_never_unqueued(struct vi_vi *vi, const uint8_t *at, uint32_t n, uint64_t addr,
				 uint32_t handle)
{
	return false;
}

const struct vi_fast_ops nvi_fast_resumable = {
	.now_max = W_INLINE_MAX,
	.send_now = nvi_send_resumable,
	.write_now = write_never_unqueued,
	.post_send = nvi_post_send,
	.poll_recv = nvi_poll_recv,
	.progress = nvi_progress_vi,
	.unpolled = nvi_unpolled,
};

static bool send_no_more(struct vi_vi *vi, const uint8_t *at, uint32_t n, uint16_t control,
			 uint32_t imm)
{
	return false;
}

static void post_no_more(struct vi_vi *vi)
{
	vi_wq_flush_new(&vi->sq, VIP_STATUS_DESC_FLUSHED_ERROR);
}

const struct vi_fast_ops nvi_fast_closing = {
	.send_now = send_no_more,
	.write_now = write_never_unqueued,
	.post_send = post_no_more,
	.poll_recv = nvi_poll_recv,
	.progress = nvi_progress_vi,
	.unpolled = nvi_unpolled,
};
