/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues: they tell which of many work queues have completed something. */
#ifndef VI_CQ_H
#define VI_CQ_H

#include <stdint.h>

#include "vi_objects.h"
#include "vi_pool.h"

/*
 * Makes a CQ; *out is set only with 0, and not held.  -EINVAL: `entries` is 0 or above the NIC's limit; -ENOSPC: there
 * are too many CQs or handles; -ENOMEM.  Takes nic->lock.
 */
int vi_cq_create(struct vi_nic *nic, uint32_t entries, struct vi_cq **out);
/*
 * -EBUSY: queues are attached or a thread is inside a call; -EINVAL: stale id.  Cancels armed handlers, waits for a
 * running one unless called from it, and closes the event descriptor.  Takes cq->lock and nic->lock.
 */
int vi_cq_destroy(struct vi_cq *cq, uint64_t id);
/*
 * Changes the number that was asked for, on which no memory depends.  -EINVAL as in vi_cq_create(); -ENOSPC: it has
 * more entries now.  Takes cq->lock.
 */
int vi_cq_resize(struct vi_cq *cq, uint32_t entries);
/* Counts a queue, and reserves room in the hot list; the caller sets wq->cq.  0 or -ENOMEM.  Takes cq->lock. */
int vi_cq_attach(struct vi_cq *cq, struct vi_wq *wq);
/* Takes the queue off the hot list and out of the count; the caller then clears wq->cq.  Takes cq->lock. */
void vi_cq_detach(struct vi_cq *cq, struct vi_wq *wq);

/* The CQ of a handle, held until vi_ref_put(&cq->ref), or NULL. */
struct vi_cq *vi_cq_get(const void *handle);

extern struct vi_pool vi_cq_pool;

#endif
