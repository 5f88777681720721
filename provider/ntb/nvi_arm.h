/* SPDX-License-Identifier: BSD-2-Clause */
/* Arming channels, and checking doorbells. */
#ifndef NVI_ARM_H
#define NVI_ARM_H

#include "nvi_chan.h"

enum nvi_arm_which {
	NVI_ARM_ENGINE, /* those that the engine alone serves */
	NVI_ARM_IDLE,	/* and those that the application did not poll since the last such call */
	NVI_ARM_ALL,	/* somebody is about to sleep */
};

/*
 * Arms polled channels.  Afterwards whatever arrives at an armed channel rings.
 * Returns nonzero if an armed channel had something: then it is polled again.
 */
int nvi_arm_polled(struct nvi_nic *nic, enum nvi_arm_which which);
/* What is polled, though it used to be slept for, asks the peer for no more fences. */
void nvi_stop_fences(struct nvi_nic *nic);

/*
 * Is there something for an armed channel, or may the ring of its peer be used
 * up?  The latter when slots were consumed since it was armed, by a thread that did
 * not see it armed.
 */
bool nvi_chan_came(const struct nvi_chan *ch);
/* Has anything come that progress would take in? Looks only at memory; any thread. */
bool nvi_chan_ready(const struct nvi_chan *ch);
/* Were doorbells of this process rung since the last call? */
bool nvi_rung(struct nvi_nic *nic);

#endif
