/* SPDX-License-Identifier: BSD-2-Clause */
/* Ports that break one promise of port.h each, for the self-test to find. */
#ifndef BROKEN_H
#define BROKEN_H

extern "C" {
#include "port.h"
}

enum class Flaw {
	None,
	FenceDoesNothing, /* on a strict port: stores land in any order */
	RingBeforeStore,  /* every few rings are delivered before the store that was made last */
	RingLost,	  /* one ring of many */
	LowestBitOnly,	  /* several bits are rung, the lowest arrives */
	ClearsAllBits,
	MaskSwallows, /* what was rung while a bit was masked */
	FlushReturnsEarly,
	WordTorn,      /* the halves of a word of 8 bytes arrive one after the other */
	SliceHalf,     /* the second half of a big slice leads nowhere */
	PadWriteLost,  /* one write of some to a scratchpad of the peer */
	LinkUntold,    /* nobody learns that the link went down and came up */
	OneLinkOnly,   /* there are no slices for the link once it has come up again */
	FreedUsedAgain /* while the peer can still store into it */
};

/* Wraps a port, owned by the wrapper from then on; `peer` is the port at the other end of its cable. */
struct port *broken_wrap(struct port *inner, Flaw flaw, struct port *peer);

#endif
