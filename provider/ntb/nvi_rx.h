/* SPDX-License-Identifier: BSD-2-Clause */
/* Receiving: moves messages from slots to receive descriptors and registered memory. */
#ifndef NVI_RX_H
#define NVI_RX_H

#include "nvi_chan.h"

#define NVI_RX_BATCH 32u /* slots consumed before the lock is dropped */

/*
 * Consumes up to `budget` slots, makes the channel polled, and returns credit that is due.  Returns how many, with the
 * one that had a fault, if any.  Caller holds rx_lock but not tx_lock, and calls nvi_break_after_rx() before it drops
 * rx_lock.
 */
int nvi_rx(struct nvi_chan *ch, uint32_t budget);
enum nvi_rx_came {
	NVI_RX_NOTHING,
	/*
	 * One slot of plain messages, which found no fault, and for which no credit went back: a thread that always
	 * finds one has to check for breaks now and then.
	 */
	NVI_RX_MESSAGE,
	NVI_RX_ANY
};

/*
 * Consumes one slot if that is a plain message, or several, else does as nvi_rx(): for a thread that waits for one
 * message.  Unless NVI_RX_MESSAGE is returned, a fault may be marked.  Locks as for nvi_rx().
 */
enum nvi_rx_came nvi_rx_next(struct nvi_chan *ch);
/* Returns all credit now, and rings if the peer waits for it.  Caller holds rx_lock. */
void nvi_rx_return_credit(struct nvi_chan *ch);

/* Returns the address of slot n of this end's fifo. */
static inline const struct w_slot *nvi_slot_in(const struct nvi_chan *ch, uint32_t n)
{
	return &ch->in_slots[n & ch->in_mask];
}

/* Has the peer published slot n, which lies at `slot`? */
static inline bool nvi_slot_came(const struct w_slot *slot, uint32_t n)
{
	/* R: pairs with nvi_store_slot() and nvi_store_plain() at the peer. */
	return atomic_load_explicit(&slot->head.seq, memory_order_acquire) == w_seq(n);
}

/* Has the peer published the next slot? */
static inline bool nvi_rx_ready(const struct nvi_chan *ch)
{
	uint32_t n = atomic_load_explicit(&ch->rx.seq, memory_order_relaxed);

	return nvi_slot_came(nvi_slot_in(ch, n), n);
}

#endif
