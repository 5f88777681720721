/* SPDX-License-Identifier: BSD-2-Clause */
/* Advertising receives in window memory to the peer, which may store messages there. */
#ifndef NVI_ADVERT_H
#define NVI_ADVERT_H

#include "nvi_chan.h"

/* Returns the number of the next message that takes a receive. */
static inline uint64_t nvi_next_message(const struct nvi_chan *ch)
{
	uint32_t seq = atomic_load_explicit(&ch->rx.seq, memory_order_relaxed);

	return ch->rx.returned + (uint32_t)(seq - ch->rx.credited) - ch->rx.others;
}

/* Counts the messages of a slot that is about to be consumed. */
static inline void nvi_count_messages(struct nvi_chan *ch, uint8_t op, uint8_t flags, uint32_t arg)
{
	ch->rx.others += (uint64_t)1 - w_receives(op, flags, arg);
}

/* Notes that all slots before slot n have been returned as credit. */
static inline void nvi_count_returned(struct nvi_chan *ch, uint32_t n)
{
	ch->rx.returned += (uint32_t)(n - ch->rx.credited);
	ch->rx.credited = n;
}

/*
 * A connection begins: gives it its number, counts its messages from 0, and advertises the receives that are queued.
 * Caller holds rx_lock.
 */
void nvi_adverts_begin(struct nvi_chan *ch);
/* The peer has a new slice, without adverts: advertises the receives of the queue again.  Caller holds rx_lock. */
void nvi_adverts_again(struct nvi_chan *ch);
/*
 * Advertises those of the first W_ADVERTS receives that were not considered yet and can be advertised; none while the
 * VI allows no RDMA writes, on a relayed connection or without a path.  Sets rx.adverts_due if receives are left that
 * a later call has to consider.  Caller holds rx_lock.
 */
void nvi_advertise(struct nvi_chan *ch);
/* vi_fast_ops.recv_posted: advertises the receive if the VI is connected.  Caller holds rx_lock. */
void nvi_recv_posted(struct vi_vi *vi);
/* Was the next receive advertised on this connection, for the next message?  Caller holds rx_lock. */
bool nvi_was_advertised(struct nvi_chan *ch);

#endif
