/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Faults: reasons to break a connection, which sending and receiving mark and nvi_break.c acts on.
 */
#ifndef NVI_FAULT_H
#define NVI_FAULT_H

#include "nvi_chan.h"

/*
 * Marks the connection as one to be broken.  The thread that found the fault holds one lock of the
 * VI and breaks by nvi_break_after_tx() or nvi_break_after_rx() before it drops that lock; where it
 * cannot, the engine does.  Until then nothing is sent.  If there are several faults of a side the
 * first counts.  Caller holds tx_lock.
 */
void nvi_fault_tx(struct nvi_chan *ch, struct nvi_fault fault);
/* As nvi_fault_tx(), for a thread that holds rx_lock. */
void nvi_fault_rx(struct nvi_chan *ch, struct nvi_fault fault);

#endif
