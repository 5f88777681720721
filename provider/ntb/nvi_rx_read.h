/* SPDX-License-Identifier: BSD-2-Clause */
/* RDMA reads: requests of the peer, and its answers to requests of this end. */
#ifndef NVI_RX_READ_H
#define NVI_RX_READ_H

#include "nvi_rx_message.h"

/*
 * A request to read: a short answer goes out at once, any other is queued.  Caller holds rx_lock.
 */
void nvi_rx_read_request(struct nvi_chan *ch, const struct nvi_rx_slot *s);
/* Is there no room for another answer? */
bool nvi_rx_answers_full(const struct nvi_chan *ch);
/* What was asked for is not allowed: `event` is raised.  Caller holds rx_lock. */
void nvi_rx_refuse_request(struct nvi_chan *ch, const struct nvi_rx_slot *s, VIP_ERROR_CODE event);
/* An answer, to be sent when it is its turn; there is room for it.  Caller holds rx_lock. */
void nvi_rx_queue_answer(struct nvi_chan *ch, const struct nvi_answer *answer);
/* A fragment of an answer.  Caller holds rx_lock. */
void nvi_rx_read_response(struct nvi_chan *ch, const struct nvi_rx_slot *s);

#endif
