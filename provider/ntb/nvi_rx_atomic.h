/* SPDX-License-Identifier: BSD-2-Clause */
/* Atomic operations of the peer. */
#ifndef NVI_RX_ATOMIC_H
#define NVI_RX_ATOMIC_H

#include "nvi_rx_message.h"

/*
 * Executes the operation, and sends its answer like that of a read; or refuses it, which marks a fault.  Caller holds
 * rx_lock; takes tx_lock.
 */
void nvi_rx_atomic_request(struct nvi_chan *ch, const struct nvi_rx_slot *s);

#endif
