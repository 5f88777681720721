/* SPDX-License-Identifier: BSD-2-Clause */
/* Sending: from the send queue, and from the peer's read requests, into slots. */
#ifndef NVI_TX_H
#define NVI_TX_H

#include "nvi_chan.h"

#define NVI_TX_STREAM 6u /* with so many slots in flight the sends count as a stream */

/*
 * Sends while slots are free, up to a limit of bytes, and rings.  Returns the number of slots published, without what
 * was stored directly.  Caller holds tx_lock, calls nvi_tx_update_waiting() afterwards, and nvi_break_after_tx() before
 * it drops the lock.
 */
uint32_t nvi_tx_run(struct nvi_chan *ch);
/*
 * Takes in credit, completes the sends that it covers, then calls nvi_tx_run().  Nonzero: something moved, or the
 * credit was wrong, for which a fault is marked.  Locks as for nvi_tx_run().
 */
int nvi_tx_progress(struct nvi_chan *ch);
/* May the descriptor start, with respect to fence and reads under way?  Caller holds tx_lock. */
bool nvi_tx_may_start(const struct nvi_chan *ch, const struct vi_wqe *wqe, uint32_t entry);

#endif
