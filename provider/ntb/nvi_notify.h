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
 * The fence after a store that a thread which arms has to see, and before the load that shows whether one has armed:
 * it stores and loads the other way round.  If it calls membarrier, that is the fence, and here only the compiler must
 * keep the order.
 */
static inline void nvi_fence_for_arming(const struct nvi_chan *ch)
{
	if (u_unlikely(ch->must_fence))
		atomic_thread_fence(memory_order_seq_cst);
	else
		atomic_signal_fence(memory_order_seq_cst);
}

/* The sender's half of the wake-up handshake with a peer that arms: loads the notify request after the fence. */
static inline uint32_t nvi_notify_request(struct nvi_chan *ch)
{
	nvi_fence_for_arming(ch);
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

/*
 * Tells that progress must be made on sends, and makes the channel polled: a thread that arms sees tx.more, or is seen
 * here.  tx.waiting is set, or will be before tx_lock is dropped.  Caller holds that lock.
 */
static inline void nvi_want_progress(struct nvi_chan *ch)
{
	atomic_store_explicit(&ch->tx.more, true, memory_order_relaxed);
	nvi_fence_for_arming(ch);
	nvi_disarm(ch);
}

#endif
