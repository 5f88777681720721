/* SPDX-License-Identifier: BSD-2-Clause */
/* Direct stores into the peer's window memory. */
#ifndef NVI_WRITE_H
#define NVI_WRITE_H

#include "nvi_grant.h"

/* a write of this length waits for credit instead of going through slots, */
#define NVI_WRITE_WAIT 4096u
#define NVI_WRITE_RUN 8u /* and so does one after so many in a row that went through slots */

enum nvi_write_method {
	NVI_METHOD_SLOTS, /* like any descriptor */
	NVI_METHOD_WAIT,  /* directly, as soon as the peer has consumed all slots before it */
	NVI_METHOD_DONE,  /* stored: complete, or complete when nvi_writes_flush() succeeds */
};

/*
 * vi_fast_ops.write_unqueued: stores a write directly, without a queue entry; the caller appends the descriptor.
 * False: nothing was stored, and the write has to be queued.  Asks for no grant.  Caller holds tx_lock.
 */
bool nvi_write_unqueued(struct vi_vi *vi, const uint8_t *at, uint32_t n, uint64_t addr,
			uint32_t handle);
/*
 * Stores a write of the send queue, the next to be started, if its target was granted; asks for a
 * grant if not.  `wqe`'s own memory is valid.  Caller holds tx_lock.
 */
enum nvi_write_method nvi_write_queued(struct nvi_chan *ch, struct vi_wqe *wqe);
/*
 * Should a write of n bytes wait for the peer's next credit, to be stored directly?  Not if short
 * writes alternate with sends: each would then wait for the peer.
 */
bool nvi_write_waits(const struct nvi_chan *ch, uint32_t n);
/*
 * Flushes, and completes direct writes whose completion has to mean that they arrived: all of a
 * resumable channel, and those of reliable reception.  They stay incomplete until a flush has shown
 * that the link is still up in its generation.  One flush completes all that were stored before it;
 * false when the link is gone.  Caller holds tx_lock.
 */
bool nvi_writes_settle(struct nvi_chan *ch);
/*
 * As nvi_writes_settle(); if the link is gone, a resumable channel takes the writes back, to send
 * them through slots, and any other channel is marked to be broken.
 */
bool nvi_writes_flush(struct nvi_chan *ch);
/*
 * As nvi_writes_flush(), but drops tx_lock during the flush, so that other threads can store, and the connection may
 * end.  Nonzero: something moved.
 */
int nvi_writes_check(struct nvi_chan *ch);

#endif
