/* SPDX-License-Identifier: BSD-2-Clause */
/* Waiting until everything that was posted has arrived at the peer. */
#ifndef NVI_FLUSH_H
#define NVI_FLUSH_H

#include "nvi_chan.h"

/*
 * vi_provider_ops.flush: waits until all that was posted before has arrived.  1: it has; 0: the deadline has passed;
 * -EISCONN: not connected, or no longer.  Takes tx_lock.  A thread that is cancelled in it drops vi->ref.
 */
int nvi_flush(struct vi_vi *vi, int64_t deadline);

#endif
