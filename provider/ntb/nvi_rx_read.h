/* SPDX-License-Identifier: BSD-2-Clause */
/* RDMA reads: requests of the peer, and its answers to requests of this end. */
#ifndef NVI_RX_READ_H
#define NVI_RX_READ_H

#include "nvi_rx_message.h"

/*
 * Handles a request to read: sends a short answer at once, if nothing has to go before it, and queues any other;
 * refuses what is not allowed, which marks a fault.  Caller holds rx_lock; takes tx_lock.
 */
void nvi_rx_read_request(struct nvi_chan *ch, const struct nvi_rx_slot *s);
/* Is there no room for another answer? */
bool nvi_rx_answers_full(const struct nvi_chan *ch);
/*
 * Refuses a request that is not allowed: marks a fault, which the peer gets as a report, and raises `event`.  Caller
 * holds rx_lock.
 */
void nvi_rx_refuse_request(struct nvi_chan *ch, const struct nvi_rx_slot *s, VIP_ERROR_CODE event);
/*
 * Queues an answer, to be sent when it is its turn; the caller knows that there is room.  Takes tx_lock; caller holds
 * rx_lock.
 */
void nvi_rx_queue_answer(struct nvi_chan *ch, const struct nvi_answer *answer);
/* Takes in a fragment of an answer; the last one completes the read.  Caller holds rx_lock; takes tx_lock. */
void nvi_rx_read_response(struct nvi_chan *ch, const struct nvi_rx_slot *s);

#endif
