/* SPDX-License-Identifier: BSD-2-Clause */
/* RDMA reads: requests of the peer, and its answers to requests of this end. */
#ifndef NVI_RX_READ_H
#define NVI_RX_READ_H

#include "nvi_rx_message.h"

/*
 * A request to read: a short answer goes out at once, any other is queued.  Caller holds rx_lock.
 */
void nvi_rx_read_request(struct nvi_chan *ch, const struct nvi_rx_slot *s);
/* A fragment of an answer.  Caller holds rx_lock. */
void nvi_rx_read_response(struct nvi_chan *ch, const struct nvi_rx_slot *s);

#endif
