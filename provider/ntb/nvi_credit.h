/* SPDX-License-Identifier: BSD-2-Clause */
/* Credit from the peer, and the sends that it completes. */
#ifndef NVI_CREDIT_H
#define NVI_CREDIT_H

#include "nvi_chan.h"

/*
 * Takes in a count of slots that the peer has consumed, makes the channel polled, and completes the sends that it
 * covers.  If answers wait, calls nvi_want_progress(): once it is taken in, no credit seems to be missing.  1: there
 * was new credit; 0: none; -EPROTO: the count is impossible.  Caller holds tx_lock.
 */
int nvi_tx_take_credit(struct nvi_chan *ch, uint32_t credit);

/*
 * Takes in the credit that the peer has written into this end's slice, as nvi_tx_take_credit()
 * does.
 */
static inline int nvi_tx_credit(struct nvi_chan *ch)
{
	/* R: pairs with the release in nvi_rx_return_credit() at the peer. */
	return nvi_tx_take_credit(ch,
				  atomic_load_explicit(&ch->in_ctl->credit, memory_order_acquire));
}

/* Counts and marks the fault that nvi_tx_credit() found, which marks none itself.  Caller holds tx_lock. */
void nvi_credit_fault(struct nvi_chan *ch);
/* Sets tx.waiting: 0 if nothing depends on credit or on answers.  Caller holds tx_lock. */
static inline void nvi_tx_update_waiting(struct nvi_chan *ch)
{
	const struct vi_wq *sq = &ch->vi->sq;
	uint32_t waiting = ch->tx.msg.op != 0 || nvi_sq_done(sq) != sq->tail ||
			   nvi_answers_left(ch) || ch->tx.drains;

	if (waiting != atomic_load_explicit(&ch->tx.waiting, memory_order_relaxed))
		atomic_store_explicit(&ch->tx.waiting, waiting, memory_order_release);
}

/* Returns the number of published slots, less those that the peer has consumed by the credit last taken in. */
static inline uint32_t nvi_slots_used(const struct nvi_chan *ch)
{
	return ch->tx.seq - atomic_load_explicit(&ch->tx.credit, memory_order_relaxed);
}

/* Returns the number of slots published on this connection. */
static inline uint64_t nvi_slots_sent(const struct nvi_chan *ch)
{
	return ch->tx.acked + nvi_slots_used(ch);
}

/* Returns the number of the next message that takes a receive of the peer. */
static inline uint64_t nvi_next_sent(const struct nvi_chan *ch)
{
	return nvi_slots_sent(ch) - ch->tx.others;
}

#endif
