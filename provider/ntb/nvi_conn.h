/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections: made of the parts that the agent gives, and taken apart. */
#ifndef NVI_CONN_H
#define NVI_CONN_H

#include "nvi_chan.h"

/* Maps the slices of `linked` and connects vi. Takes the descriptors in every case. */
int nvi_chan_open(struct nvi_nic *nic, struct vi_vi *vi, const struct w_linked *linked, int fd_in,
		  int fd_out);
/* Takes the connection apart: flushes, unmaps. The VI becomes Idle. Returns its conn, 0 if none. */
uint64_t nvi_chan_close(struct vi_vi *vi);

#endif
