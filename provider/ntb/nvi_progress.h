/* SPDX-License-Identifier: BSD-2-Clause */
/* Progress: receiving and sending what is ready, on one channel or on all of a NIC. */
#ifndef NVI_PROGRESS_H
#define NVI_PROGRESS_H

#include "nvi_chan.h"
#include "vi_provider.h"

/*
 * vi_fast_ops.poll_recv: consumes slots that came, one or a batch, and breaks the connection for a fault.  Returns
 * VI_POLL_* bits.  The VI has a channel; caller holds rx_lock.
 */
int nvi_poll_recv(struct vi_vi *vi);
/* vi_fast_ops.progress: as nvi_progress_chan() for the application.  0 if the VI has no channel. */
int nvi_progress_vi(struct vi_vi *vi);
/*
 * vi_fast_ops.unpolled: leaves the VI to the engine, and arms all channels of the NIC that are left to it; if something
 * came meanwhile, makes progress on all channels.
 */
void nvi_unpolled(struct vi_vi *vi);
/*
 * vi_fast_ops.watch: sets *out to the word of the next slot; true with *out unchanged: nothing can come.  False: the VI
 * has to be polled.  Caller holds rx_lock.
 */
bool nvi_watch(struct vi_vi *vi, struct vi_watch *out);

/*
 * Makes progress on one channel, as far as no other thread holds its locks.  `by_app`: the application polls it.
 * Returns nonzero if anything moved, or the connection was to be broken.  No locks of the VI held.
 */
int nvi_progress_chan(struct nvi_chan *ch, bool by_app);
/*
 * Makes progress on every channel that has something, or (all = false) only those that the application does not poll
 * itself; armed ones among them become polled.  Returns how many of them moved packets.  Takes chan_lock.
 */
int nvi_scan(struct nvi_nic *nic, bool all);

/* vi_provider_ops.progress: clears doorbells, and makes progress on all channels.  Returns how many moved packets. */
int nvi_progress(struct vi_nic *nic);
/* vi_provider_ops.doorbell_rung: as nvi_rung(), so it clears the doorbells. */
bool nvi_doorbell_rung(struct vi_nic *nic);

#endif
