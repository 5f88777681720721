/* SPDX-License-Identifier: BSD-2-Clause */
/* Direct stores into the peer's window memory. */
#ifndef NVI_WRITE_H
#define NVI_WRITE_H

#include "nvi_grant.h"

#define NVI_WRITE_WAIT 4096u /* a write so long rather waits than goes through slots, */
#define NVI_WRITE_RUN 8u     /* and so does one after so many that went there in a row */

enum nvi_write_method {
	NVI_METHOD_SLOTS, /* like any descriptor */
	NVI_METHOD_WAIT,  /* soon directly: when the peer has consumed all slots before it */
	NVI_METHOD_DONE,  /* stored: complete, or complete when nvi_writes_flush() succeeds */
};

/* vi_fast_ops.write_unqueued: stores a write that is in no queue. */
bool nvi_write_unqueued(struct vi_vi *vi, const uint8_t *at, uint32_t n, uint64_t addr,
			uint32_t handle);
/*
 * Stores a write of the send queue, the next to be started, if its target was granted; asks for a
 * grant if not.  `wqe`'s own memory is there.  Caller holds tx_lock.
 */
enum nvi_write_method nvi_write_queued(struct nvi_chan *ch, struct vi_wqe *wqe);
/*
 * Would the peer's next credit let a write of n bytes go directly?  Not where writes alternate with
 * short sends: those would then take turns with the peer.
 */
bool nvi_write_waits(const struct nvi_chan *ch, uint32_t n);
/*
 * Direct writes whose completion has to mean that they arrived - all of a resumable channel, and
 * those of reliable reception - stay incomplete until a flush has shown that the link still
 * stands.  One flush completes all that were stored before it; false when the link is gone.
 * Caller holds tx_lock.
 */
bool nvi_writes_settle(struct nvi_chan *ch);
/*
 * As nvi_writes_settle(); where the link is gone, a resumable channel takes the writes back, to
 * send them through slots, and any other is marked to be broken.
 */
bool nvi_writes_flush(struct nvi_chan *ch);
/*
 * As nvi_writes_flush(), but lets tx_lock go during the flush, so that other threads can store
 * meanwhile.  Returns whether something moved.
 */
int nvi_writes_check(struct nvi_chan *ch);

#endif
