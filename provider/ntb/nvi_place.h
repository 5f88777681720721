/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages whose bytes are stored at their destination and announced by one slot. */
#ifndef NVI_PLACE_H
#define NVI_PLACE_H

#include "nvi_write.h"

/* a shorter send can be copied in less time than its receive can be looked up */
#define NVI_PLACE_SEND_MIN 4096u

/* May the descriptor be placed, by its operation and its length? */
static inline bool nvi_may_place(const struct vi_wqe *wqe)
{
	return (wqe->control & VIP_CONTROL_OP_MASK) == VIP_CONTROL_OP_SENDRECV
		       ? wqe->length >= NVI_PLACE_SEND_MIN
		       : (wqe->control & (VIP_CONTROL_OP_MASK | VIP_CONTROL_IMMEDIATE)) ==
				 (VIP_CONTROL_OP_RDMAWRITE | VIP_CONTROL_IMMEDIATE);
}

/* Is a slot free, if need be after taking in credit?  No, without a fault, if that is wrong.  Caller holds tx_lock. */
bool nvi_has_slot(struct nvi_chan *ch);
/*
 * Places a message of the send queue, the next to be started, for which nvi_may_place() is true: a
 * send into a receive that the peer has advertised, or a write with immediate data into memory that
 * was granted.  Asks for a grant if one is missing.  NVI_METHOD_DONE: its slot is published, but
 * nothing was rung.  Caller holds tx_lock; no write is unflushed.
 */
enum nvi_write_method nvi_place_queued(struct nvi_chan *ch, struct vi_wqe *wqe);

#endif
