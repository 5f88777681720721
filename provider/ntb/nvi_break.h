/* SPDX-License-Identifier: BSD-2-Clause */
/* Breaking connections.  Every connection that breaks does so in nvi_chan_break(). */
#ifndef NVI_BREAK_H
#define NVI_BREAK_H

#include "nvi_chan.h"

/*
 * Breaks the connection: the VI goes to Error, and for a fault of this end, or a violation of the
 * protocol by the peer, the peer gets the error report.  Forgets marked faults.  A VI that is not Connected keeps its
 * state, and only its sends that were left end.  Caller holds both locks.
 *
 * For a fault of this end the sends that are out stay in the queue, because the peer still receives
 * messages that were sent before the report: until it has given credit for them, has itself
 * reported a message that it refused, or is gone.  In the Error state tx.waiting is set while such
 * sends are left, and only then.
 */
void nvi_chan_break(struct nvi_chan *ch, struct nvi_fault fault);
/* The rare cases of nvi_break_after_tx() and nvi_break_after_rx(), out of line: same locks. */
void nvi_break_after_tx_slow(struct nvi_chan *ch);
void nvi_break_after_rx_slow(struct nvi_chan *ch);
/*
 * Breaks a connection in which sending found a fault, unless another thread holds rx_lock: then the
 * engine does.  Caller holds tx_lock.
 */
static inline void nvi_break_after_tx(struct nvi_chan *ch)
{
	if (u_unlikely(nvi_chan_has_fault(ch, NVI_FAULT_TX)))
		nvi_break_after_tx_slow(ch);
}
/* Breaks a connection in which receiving found a fault.  Caller holds rx_lock; takes tx_lock. */
static inline void nvi_break_after_rx(struct nvi_chan *ch)
{
	if (u_unlikely(nvi_chan_has_fault(ch, NVI_FAULT_RX)))
		nvi_break_after_rx_slow(ch);
}
/*
 * Breaks the connection if a fault is marked, or if the peer's error report is there.  No locks
 * held.
 */
void nvi_chan_check_breaks(struct nvi_chan *ch);
/*
 * Breaks the connection `conn`, whose other end is gone, after taking in what came before that.  Does nothing when
 * the channel carries another connection by now.  No locks held.
 */
void nvi_chan_lost(struct nvi_chan *ch, struct nvi_nic *nic, uint64_t conn, enum w_lost reason);

/*
 * Consumes all published slots, one fifo at most, and breaks the connection if it finds a fault.  Caller holds
 * rx_lock; takes tx_lock.
 */
void nvi_rx_drain(struct nvi_chan *ch);
/*
 * Forgets the message being sent, answers to reads, and everything for which sends wait: nothing
 * more is sent.  Completes no descriptor.  Caller holds both locks.
 */
void nvi_stop_sending(struct nvi_chan *ch);
/*
 * Wakes a thread that waits in VipDisconnect() until everything that was sent is acknowledged.
 * Caller holds both locks.
 */
void nvi_wake_closer(const struct nvi_chan *ch);

#endif
