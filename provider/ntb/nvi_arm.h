/* SPDX-License-Identifier: BSD-2-Clause */
/* Arming channels, and checking doorbells. */
#ifndef NVI_ARM_H
#define NVI_ARM_H

#include "nvi_chan.h"

enum nvi_arm_which {
	NVI_ARM_ENGINE, /* channels on which the engine moved packets last */
	NVI_ARM_IDLE,	/* also those that the application did not poll since the last such call */
	NVI_ARM_ALL,	/* all channels: an application thread is about to sleep */
};

/*
 * Arms polled channels.  Afterwards the peer of an armed channel rings when it publishes a slot.  Returns how many of
 * the channels had something to do when they were armed: these are polled again.  Takes chan_lock.
 */
int nvi_arm_polled(struct nvi_nic *nic, enum nvi_arm_which which);
/*
 * Ends the peers' fences for polled channels that have moved enough slots since they were armed last.  Takes
 * chan_lock.
 */
void nvi_stop_fences(struct nvi_nic *nic);

/*
 * Is there something to do for an armed channel, or may the peer have already rung for it?  The
 * peer may have if slots were consumed since the channel was armed, by a thread that had not yet
 * seen that.  Caller holds chan_lock.
 */
bool nvi_chan_came(const struct nvi_chan *ch);
/*
 * Is there a slot to consume, or a reason to break the connection?  Caller holds chan_lock or a lock of the VI, which
 * keeps the slice mapped.
 */
bool nvi_chan_ready(const struct nvi_chan *ch);
/* Has the application polled any polled channel since the last NVI_ARM_IDLE?  Takes chan_lock. */
bool nvi_application_polls(struct nvi_nic *nic);
/* Were doorbells of this NIC rung since the last call?  Clears them.  Takes chan_lock after an interrupt. */
bool nvi_rung(struct nvi_nic *nic);

#endif
