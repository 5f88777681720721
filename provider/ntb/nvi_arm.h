/* SPDX-License-Identifier: BSD-2-Clause */
/* Arming channels, and checking doorbells. */
#ifndef NVI_ARM_H
#define NVI_ARM_H

#include "nvi_chan.h"

enum nvi_arm_which {
	NVI_ARM_ENGINE, /* those that the engine alone serves */
	NVI_ARM_IDLE,	/* and those that the application did not poll since the last such call */
	NVI_ARM_ALL,	/* an application thread is about to sleep */
};

/*
 * Arms polled channels.  Afterwards whatever arrives at an armed channel rings.
 * Returns nonzero if an armed channel had something: then it is polled again.
 */
int nvi_arm_polled(struct nvi_nic *nic, enum nvi_arm_which which);
/*
 * Channels that the application polls, and for which it used to sleep, ask their peers for no more
 * fences.
 */
void nvi_stop_fences(struct nvi_nic *nic);

/*
 * Is there something to do for an armed channel, or may the peer have rung already?  It may where
 * slots were consumed since the channel was armed, by a thread that did not see it armed.
 */
bool nvi_chan_came(const struct nvi_chan *ch);
/* Has anything come that progress would take in?  Any thread, without locks. */
bool nvi_chan_ready(const struct nvi_chan *ch);
/* Were doorbells of this process rung since the last call? */
bool nvi_rung(struct nvi_nic *nic);

#endif
