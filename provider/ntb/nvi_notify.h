/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Notify requests and doorbells, and the list of channels that are polled or armed.
 *
 * nvi_arm.c says which side rings when, and why no wake-up is lost.
 */
#ifndef NVI_NOTIFY_H
#define NVI_NOTIFY_H

#include "nvi_chan.h"

/*
 * The sender's half of the wake-up handshake: loads the notify request after a fence.  If the peer
 * calls membarrier, that is the fence, and here only the compiler must keep the order.
 */
static inline uint32_t nvi_notify_request(struct nvi_chan *ch)
{
	if (u_unlikely(ch->must_fence))
		atomic_thread_fence(memory_order_seq_cst);
	else
		atomic_signal_fence(memory_order_seq_cst);
	return atomic_load_explicit(&ch->in_ctl->notify, memory_order_relaxed);
}

/* Rings the peer's doorbell, whether or not the peer asked for that. */
void nvi_ring(struct nvi_chan *ch);
/* The cases of nvi_ring_slots() and nvi_ring_credit() with a notify request: ring only if it is for what was done. */
void nvi_ring_slots_slow(struct nvi_chan *ch, uint32_t notify);
void nvi_ring_credit_slow(struct nvi_chan *ch, uint32_t notify);

/* After publishing slots: rings if the peer waits for one of them and was not rung for it.  Caller holds tx_lock. */
static inline void nvi_ring_slots(struct nvi_chan *ch)
{
	uint32_t notify = nvi_notify_request(ch);

	if (u_unlikely(notify != 0))
		nvi_ring_slots_slow(ch, notify);
}

/* After returning credit: rings if the peer waits for it, again each time until it withdraws its request. */
static inline void nvi_ring_credit(struct nvi_chan *ch)
{
	uint32_t notify = nvi_notify_request(ch);

	if (u_unlikely(notify != 0))
		nvi_ring_credit_slow(ch, notify);
}

/* Enters the channel into nic->chans, polled, and wakes the engine.  0 or -ENOMEM.  Takes chan_lock. */
int nvi_chan_list(struct nvi_chan *ch);
/* Takes the channel out of nic->chans, if it is there.  Takes chan_lock. */
void nvi_chan_unlist(struct nvi_chan *ch);
/*
 * Makes a channel polled.  True: it was armed, so a thread that sleeps must check and arm again: the caller wakes the
 * engine.  Caller holds chan_lock.
 */
bool nvi_make_polled(struct nvi_chan *ch);
/*
 * Makes the channel polled, because something moved on it or it has work that needs polling, and wakes the engine
 * in any case.  Takes chan_lock.
 */
void nvi_disarm_slow(struct nvi_chan *ch);

/* Makes the channel polled, and wakes the engine, if it was armed; takes chan_lock for that. */
static inline void nvi_disarm(struct nvi_chan *ch)
{
	if (u_unlikely(atomic_load_explicit(&ch->arm.armed, memory_order_relaxed) != 0))
		nvi_disarm_slow(ch);
}

#endif
