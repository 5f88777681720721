/* SPDX-License-Identifier: BSD-2-Clause */
/* The transfer thread, and application threads that sleep. */
#ifndef NVI_ENGINE_H
#define NVI_ENGINE_H

#include "nvi_nic.h"

/*
 * Starts the transfer thread (vi-xfer): 0 or -ENOMEM.  nvi_engine_stop() sets nic->stop, ends the thread, which must
 * have been started, and waits for its end.
 */
int nvi_engine_start(struct nvi_nic *nic);
void nvi_engine_stop(struct nvi_nic *nic);

/*
 * vi_provider_ops.arm: arms all channels; makes progress where something came meanwhile.  Returns the ticket for
 * nvi_sleep(), an old one if slots come all the time.
 */
uint32_t nvi_arm(struct vi_nic *nic);
/*
 * vi_provider_ops.sleep: sleeps until a doorbell rings or the deadline passes, and not at all if a channel is polled;
 * then makes progress on all channels.
 */
void nvi_sleep(struct vi_nic *nic, uint32_t ticket, int64_t deadline);

#endif
