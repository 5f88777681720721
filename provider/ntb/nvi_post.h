/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Posting: the fast paths of a send, and the first step for a descriptor that was just queued.
 *
 * For each of the functions of vi_fast_ops the caller holds tx_lock.
 */
#ifndef NVI_POST_H
#define NVI_POST_H

#include "nvi_chan.h"
#include "vi_provider.h"

/*
 * vi_fast_ops.send_unqueued into slots that are mapped memory: sends the message, and appends its descriptor as
 * complete.  False: nothing was sent, and the descriptor has to be queued.
 */
bool nvi_send_unqueued(struct vi_vi *vi, VIP_DESCRIPTOR *desc, const uint8_t *at, uint32_t n,
		       uint16_t control);
/* vi_fast_ops.send_unqueued of resumable channels, up to W_INLINE_MAX bytes: also keeps a copy of the slot. */
bool nvi_send_unqueued_resumable(struct vi_vi *vi, VIP_DESCRIPTOR *desc, const uint8_t *at,
				 uint32_t n, uint16_t control);
/*
 * vi_fast_ops.send_packed: sends several short messages in one slot, and appends their descriptors.  False: nothing was
 * sent or appended.
 */
bool nvi_send_packed(struct vi_vi *vi, const struct vi_packed *all);
/*
 * vi_fast_ops.post_send: sends what was just queued, or leaves it until credit comes; breaks the connection for a
 * fault.
 */
void nvi_post_send(struct vi_vi *vi);

#endif
