/* SPDX-License-Identifier: BSD-2-Clause */
/* RDMA writes of the peer, placed into registered memory. */
#ifndef NVI_RX_WRITE_H
#define NVI_RX_WRITE_H

#include "nvi_rx_message.h"

/*
 * Takes in a fragment of a write; refuses one to memory that the peer may not write, which on reliable levels marks a
 * fault.  Caller holds rx_lock.
 */
void nvi_rx_write(struct nvi_chan *ch, const struct nvi_rx_slot *s);
/*
 * Ends a message, a send or a write, that the sender could not finish: its receive completes with the error, or an
 * event tells.  On reliable levels it is a protocol error.  Caller holds rx_lock.
 */
void nvi_rx_abort(struct nvi_chan *ch, const struct nvi_rx_slot *s);

#endif
