/* SPDX-License-Identifier: BSD-2-Clause */
/* Posting descriptors, except the usual case, which is inline (vi_post_hot.h). */
#ifndef VI_POST_H
#define VI_POST_H

#include <stdbool.h>
#include <stdint.h>

#include "vi_objects.h"
#include "vipl.h"

/*
 * Posting holds no reference: `id` is compared under the queue's lock.  It returns
 * -EINVAL for a stale id, or a descriptor that raised VIP_ERROR_POST_DESC; -ENOBUFS
 * when the queue is full, and VIP_ERROR_VI_OVERRUN was raised.
 *
 * Raises the event for a descriptor that was refused with `err`, none if that is neither -EINVAL nor -ENOBUFS, and
 * returns `err`.
 */
int vi_refuse_post(struct vi_wq *wq, VIP_DESCRIPTOR *desc, int err);
/*
 * Post any descriptor: they queue it, and send it if that is possible.  If the VI is not Connected, a send completes
 * as flushed; if it is in the Error state, so does a receive.  Return as said above, or -ENOMEM.  `desc` is not NULL.
 * They tell the provider and mark the queue for polls of its CQ.  Caller holds the queue's lock.
 */
int vi_post_send_any(struct vi_vi *vi, VIP_DESCRIPTOR *desc, VIP_MEM_HANDLE handle);
int vi_post_recv_any(struct vi_vi *vi, VIP_DESCRIPTOR *desc, VIP_MEM_HANDLE handle);

/*
 * Stores a plain RDMA write of two segments, for which vi_desc_open() is true, at once, and appends it complete; the
 * caller counts it.  False, and nothing done: it is no plain write, or cannot go at once.  Caller holds tx_lock.
 */
bool vi_post_plain_write(struct vi_vi *vi, VIP_DESCRIPTOR *desc);

/* Tells the provider of the receive just appended, if it is long and in window memory.  Caller holds rx_lock. */
void vi_recv_posted(struct vi_vi *vi);

/*
 * vi_post_send() and vi_post_recv() do the usual case inline, and every other by one of these calls at their
 * end, so that the usual one has few registers to save.  The caller holds the queue's lock and they drop it,
 * except *_shared(): it takes the lock, which is not biased to this thread.  0, -EINVAL, -ENOBUFS or -ENOMEM;
 * -EINVAL without an event if `desc` is NULL.
 */
int vi_post_send_rest(struct vi_vi *vi, VIP_DESCRIPTOR *desc, VIP_MEM_HANDLE handle);
int vi_post_recv_rest(struct vi_vi *vi, VIP_DESCRIPTOR *desc, VIP_MEM_HANDLE handle);
int vi_post_send_shared(struct vi_vi *vi, uint64_t id, VIP_DESCRIPTOR *desc, VIP_MEM_HANDLE handle);
int vi_post_recv_shared(struct vi_vi *vi, uint64_t id, VIP_DESCRIPTOR *desc, VIP_MEM_HANDLE handle);
/* The VI was destroyed, or the handle is a parent's, which is logged once: drops the lock, and returns -EINVAL. */
int vi_drop_stale(struct u_biased *lock, uint64_t id);

/* Tells the provider, if need be, and the CQ of a receive that was just appended, and drops rx_lock; 0. */
int vi_post_recv_appended(struct vi_vi *vi);

#endif
