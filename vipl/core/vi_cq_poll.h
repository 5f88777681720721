/* SPDX-License-Identifier: BSD-2-Clause */
/* Taking an entry of a completion queue. */
#ifndef VI_CQ_POLL_H
#define VI_CQ_POLL_H

#include <stdbool.h>
#include <stdint.h>

#include "vi_objects.h"

/*
 * Takes one entry, after progress on hot VIs if need be, and on the whole NIC if none has one and the doorbell rang.
 * 1: taken, and only then the outputs are set; 0: none; -EINVAL: stale id.  The descriptor stays on its queue.  Takes
 * cq->lock.
 */
int vi_cq_poll(struct vi_cq *cq, uint64_t id, uint64_t *vi_out, bool *is_recv_out);

/*
 * As vi_cq_poll() for a caller that holds cq->lock, and may take further entries of the queue.  `first`: if there is
 * no entry, looks at the doorbell, too.
 */
bool vi_cq_poll_locked(struct vi_cq *cq, bool first, struct vi_wq **wq_out);

/*
 * As vi_cq_poll(), but waits for an entry; 0 at the deadline.  Caller holds cq->ref, which is dropped if the thread is
 * cancelled.
 */
int vi_cq_wait(struct vi_cq *cq, int64_t deadline, uint64_t *vi_out, bool *is_recv_out);

#endif
