/* SPDX-License-Identifier: BSD-2-Clause */
/* Retransmission: a resumable connection sends slots again over another path. */
#ifndef NVI_RETRANSMIT_H
#define NVI_RETRANSMIT_H

#include "nvi_chan.h"

/*
 * Publishes the held slots again, from the first one that the peer did not consume; does not ring.  0, or -EFAULT: the
 * source of a payload is gone, for which a fault is marked; the slots from that one on are not published.  Caller holds
 * both locks.
 */
int nvi_retransmit(struct nvi_chan *ch);

#endif
