/* SPDX-License-Identifier: BSD-2-Clause */
/* Taking descriptors back, except the usual case, which is inline (vi_take_hot.h); waiting for them. */
#ifndef VI_TAKE_H
#define VI_TAKE_H

#include <stdbool.h>
#include <stdint.h>

#include "vi_objects.h"
#include "vipl.h"

/*
 * As in vi_post.h: vi_send_done() and vi_recv_done() leave all but the usual case to one of these calls, with
 * the queue's lock held, which they drop; *_shared() take it.
 */

/*
 * The doorbell rang, perhaps for another VI: makes progress on all VIs of the NIC.  Does nothing if the VI was
 * destroyed.  Caller holds no lock of a VI.
 */
void vi_serve_doorbell(struct vi_vi *vi, uint64_t id);

/*
 * Makes progress, with the lock dropped, and takes the head if it is complete then; 1 or 2 (with an error): taken; 0:
 * in progress; -ENOENT: empty; -EINVAL: the VI was destroyed.  Caller holds tx_lock, which is dropped: the head of the
 * queue is in progress.  If the doorbell rang, makes progress on all VIs of the NIC.
 */
int vi_send_done_slow(struct vi_vi *vi, VIP_DESCRIPTOR **desc_out);
/*
 * As vi_send_done_slow() for receives, but always makes progress.  Caller holds rx_lock, which is dropped; `came` is
 * the result of poll_recv(), 0 when the doorbell rang.
 */
int vi_recv_done_slow(struct vi_vi *vi, VIP_DESCRIPTOR **desc_out, int came);

/*
 * The head is not complete, or the queue is empty: -ENOENT; else as vi_send_done_slow().  Caller holds tx_lock, which
 * is dropped.
 */
int vi_send_done_rest(struct vi_vi *vi, VIP_DESCRIPTOR **desc_out);
/* The queue is empty: -ENOENT.  Caller holds rx_lock, which is dropped. */
int vi_recv_done_rest(struct vi_vi *vi);
int vi_send_done_shared(struct vi_vi *vi, uint64_t id, VIP_DESCRIPTOR **desc_out);
int vi_recv_done_shared(struct vi_vi *vi, uint64_t id, VIP_DESCRIPTOR **desc_out);
/*
 * A poll did not simply complete the head; 1, 2, 0 or an error, as vi_recv_done().  Caller holds rx_lock, which is
 * dropped; `came` is the result of poll_recv().
 */
int vi_recv_done_polled(struct vi_vi *vi, VIP_DESCRIPTOR **desc_out, int came);

/*
 * As vi_send_done() or vi_recv_done(), but waits; 0 at the deadline.  -EINVAL also for a queue with a CQ; -ENOENT at
 * once if the queue is empty.  Caller holds vi->ref, which is dropped if the thread is cancelled.
 */
int vi_queue_wait(struct vi_vi *vi, bool is_recv, int64_t deadline, VIP_DESCRIPTOR **desc_out);

/*
 * Arms a one-shot handler, which the dispatcher's thread calls with the head of the queue when that is complete,
 * perhaps at once; further ones come after it.  Also moves packets.  -EINVAL for a queue with a CQ; -ENOMEM; -ENOSPC:
 * no thread.  Takes the queue's lock.
 */
int vi_queue_notify(struct vi_vi *vi, bool is_recv, void *context,
		    void (*handler)(VIP_PVOID, VIP_NIC_HANDLE, VIP_VI_HANDLE, VIP_DESCRIPTOR *));

#endif
