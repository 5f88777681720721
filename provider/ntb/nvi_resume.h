/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections that continue over another path. */
#ifndef NVI_RESUME_H
#define NVI_RESUME_H

#include "nvi_chan.h"

/*
 * The connection loses its path: suspends the channel, which may be suspended already.  `consumed_out`: the slots
 * consumed so far, only on success.  0 or -errno: it cannot be resumed, and the caller has to cut it.  No locks held.
 */
int nvi_chan_suspend(struct nvi_chan *ch, struct nvi_nic *nic, uint64_t conn,
		     struct w_consumed *consumed_out);
/*
 * Resumes a suspended channel over the slices of `linked`.  -ENOTCONN: it is not suspended, or carries another
 * connection; -EHOSTUNREACH: the link is down again.  Takes over the descriptors, also on failure.  No locks held.
 */
int nvi_chan_resume(struct nvi_chan *ch, struct nvi_nic *nic, const struct w_linked *linked,
		    int fd_in, int fd_out);
/*
 * The agent was told that the channel continues, so it passes on messages to the peer's process again: grants may be
 * asked for again.  Takes tx_lock.
 */
void nvi_chan_confirmed(struct nvi_chan *ch, struct nvi_nic *nic, uint64_t conn);

#endif
