/* SPDX-License-Identifier: BSD-2-Clause */
/* Posting and taking many descriptors of one queue, or of a CQ, with its lock taken once. */
#ifndef VI_MANY_H
#define VI_MANY_H

#include "vi_objects.h"

#define VI_TAKE_MOST 256u /* descriptors in one call; until then other threads wait for the lock */

/*
 * Post descriptors until one is refused; *posted_out is how many were posted.  0, or the error for the one that was
 * refused: -EINVAL, also for NULL or a stale id, -ENOBUFS, -ENOMEM.  Take the queue's lock.
 */
int vi_post_sends(struct vi_vi *vi, uint64_t id, VIP_DESCRIPTOR *const *descs, uint64_t count,
		  VIP_MEM_HANDLE handle, uint64_t *posted_out);
int vi_post_recvs(struct vi_vi *vi, uint64_t id, VIP_DESCRIPTOR *const *descs, uint64_t count,
		  VIP_MEM_HANDLE handle, uint64_t *posted_out);

/*
 * Take up to `max` complete descriptors, VI_TAKE_MOST at most; *count_out is how many.  1: all without error; 2: the
 * last one has an error; 0: none, or the queue is empty; -EINVAL: stale id.  Take the queue's lock.
 */
int vi_sends_done(struct vi_vi *vi, uint64_t id, VIP_DESCRIPTOR **descs, uint64_t max,
		  uint64_t *count_out);
int vi_recvs_done(struct vi_vi *vi, uint64_t id, VIP_DESCRIPTOR **descs, uint64_t max,
		  uint64_t *count_out);

/*
 * Takes up to `max` completions of the queues of a CQ, VI_TAKE_MOST at most, to entries of `stride` bytes at `out`;
 * their descriptors leave the queues.  *count_out is how many.  1: some; 0: none; -EINVAL: stale id.  Takes cq->lock
 * and locks of VIs.
 */
int vi_cq_take_many(struct vi_cq *cq, uint64_t id, void *out, size_t stride, uint64_t max,
		    uint64_t *count_out);

#endif
