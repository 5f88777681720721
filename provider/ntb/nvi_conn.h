/* SPDX-License-Identifier: BSD-2-Clause */
/* Making connections from the parts that the agent gives, and taking them apart. */
#ifndef NVI_CONN_H
#define NVI_CONN_H

#include "nvi_chan.h"

/*
 * Maps the slices of `linked` and makes the VI Connected.  0; -ETIMEDOUT: its attempt has ended; other -errno.  Takes
 * over the descriptors, also on failure; then the VI keeps its state.  Takes both locks of the VI.
 */
int nvi_chan_open(struct nvi_nic *nic, struct vi_vi *vi, const struct w_linked *linked, int fd_in,
		  int fd_out);
/*
 * Takes the connection apart, at once: completes all descriptors that are left as flushed, unmaps, ends an attempt to
 * connect, and makes the VI Idle.  Returns its conn, which the caller has to CLOSE at the agent; 0 if it had none.  No
 * locks held.
 */
uint64_t nvi_chan_close(struct vi_vi *vi);

#endif
