/* SPDX-License-Identifier: BSD-2-Clause */
/* Progress: receiving and sending what is ready, on one channel or on all of a NIC. */
#ifndef NVI_PROGRESS_H
#define NVI_PROGRESS_H

#include "nvi_chan.h"
#include "vi_provider.h"

/* vi_fast_ops.poll_recv, progress, unpolled and watch. */
int nvi_poll_recv(struct vi_vi *vi);
int nvi_progress_vi(struct vi_vi *vi);
void nvi_unpolled(struct vi_vi *vi);
bool nvi_watch(struct vi_vi *vi, struct vi_watch *out);

/*
 * Makes progress on one channel.  `by_app`: the application polls it.  Returns nonzero if anything
 * moved.  No locks held.
 */
int nvi_progress_chan(struct nvi_chan *ch, bool by_app);
/*
 * Makes progress on every channel that has something, or (all = false) only those that the
 * application does not poll itself.  Returns how many of them moved packets.
 */
int nvi_scan(struct nvi_nic *nic, bool all);

/* vi_provider_ops.progress and doorbell_rung. */
int nvi_progress(struct vi_nic *nic);
bool nvi_doorbell_rung(struct vi_nic *nic);

#endif
