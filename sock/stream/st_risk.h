/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * st_risk.h - what the kernel tells the other end when this process is killed
 *
 * Bytes that the program has sent, and that are neither in the other end's memory nor in the kernel, are lost with the
 * process.  As long as there may be some, the socket has SO_LINGER {1, 0}: the kernel, which closes it, resets the
 * connection then, where it would otherwise announce the end of the stream.  The program sees the value that it has set
 * itself.  All calls are under tx.
 */
#ifndef ST_RISK_H
#define ST_RISK_H

#include "st_link.h"

/*
 * True: bytes may be lost with the process.  A relay's records are in the other end's memory when the VI says so, and
 * not when the post is complete, so a relayed stream on the ring is always at risk here; st_risk_check() asks the VI.
 */
static inline bool st_at_risk(const struct st_stream *s)
{
	if (s->tx.held_bytes > 0)
		return true;
	if (s->tx.path != ST_TX_RING)
		return s->tx.pend_bytes > 0;
	return !st_link_settled(s->link) || s->link->relayed;
}

/*
 * From now on a killed process resets the connection; the helper checks when that may end.  Does nothing if so already.
 */
void st_risk_begin(struct st_stream *s);
/* All is delivered, or with the kernel: the program's own value is back. */
void st_risk_end(struct st_stream *s);
/* Ends it if nothing is at risk any more. */
void st_risk_check(struct st_stream *s);

#endif
