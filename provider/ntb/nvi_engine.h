/* SPDX-License-Identifier: BSD-2-Clause */
/* The transfer thread, and application threads that sleep. */
#ifndef NVI_ENGINE_H
#define NVI_ENGINE_H

#include "nvi_nic.h"

int nvi_engine_start(struct nvi_nic *nic);
void nvi_engine_stop(struct nvi_nic *nic);

/* vi_provider_ops.arm and sleep. */
uint32_t nvi_arm(struct vi_nic *nic);
void nvi_sleep(struct vi_nic *nic, uint32_t ticket, int64_t deadline);

#endif
