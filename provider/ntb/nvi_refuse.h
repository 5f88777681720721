/* SPDX-License-Identifier: BSD-2-Clause */
/* Refusing descriptors and messages that cannot be sent.  Callers hold tx_lock. */
#ifndef NVI_REFUSE_H
#define NVI_REFUSE_H

#include "nvi_chan.h"

/*
 * May a descriptor that cannot be sent be refused yet?  On reliable levels that breaks the connection: it waits, as
 * one with a fence does, until all earlier sends have arrived, so that none of them is flushed.  Until then asks the
 * peer for credit (nvi_tx_consumed()).
 */
bool nvi_may_refuse(struct nvi_chan *ch, uint32_t entry);
/*
 * The descriptor, which counts as started, cannot be sent: it completes with the error, and on reliable levels the
 * connection is marked to be broken.
 */
void nvi_refuse(struct nvi_chan *ch, uint32_t entry, uint32_t bits);
/*
 * The source of the message under way was deregistered between two fragments, and nothing of the next one was
 * published.  Refuses the message, or leaves it under way, without a source, until it may be refused; if it is the
 * answer to a read, marks the connection to be broken.
 */
void nvi_abandon_message(struct nvi_chan *ch);

#endif
