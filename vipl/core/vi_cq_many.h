/* SPDX-License-Identifier: BSD-2-Clause */
/* Polling a completion queue that has many busy work queues. */
#ifndef VI_CQ_MANY_H
#define VI_CQ_MANY_H

#include "vi_objects.h"

/*
 * Takes one entry, if need be after progress on the VIs for which something came, round robin.  Caller holds cq->lock;
 * more than VI_CQ_FEW queues are hot.  False: there is none.
 */
bool vi_cq_poll_many(struct vi_cq *cq, struct vi_wq **wq_out);

#endif
