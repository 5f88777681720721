/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections that go on over another path. */
#ifndef NVI_RESUME_H
#define NVI_RESUME_H

#include "nvi_chan.h"

/*
 * The connection loses its path: unmaps it; `consumed_out`: how far it got.  0, or it cannot go on.
 */
int nvi_chan_suspend(struct nvi_chan *ch, struct nvi_nic *nic, uint64_t conn,
		     struct w_consumed *consumed_out);
/* It goes on over another.  Takes the descriptors in every case. */
int nvi_chan_resume(struct nvi_chan *ch, struct nvi_nic *nic, const struct w_linked *linked,
		    int fd_in, int fd_out);

#endif
