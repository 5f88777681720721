/* SPDX-License-Identifier: BSD-2-Clause */
/* Window memory: pages in the host's memory window (VipxAllocMem). */
#ifndef NVI_MEM_H
#define NVI_MEM_H

#include "nvi_nic.h"

/* vi_provider_ops.window_alloc and window_free. */
int nvi_window_alloc(struct vi_nic *nic, uint64_t len, bool sealed, void **addr_out,
		     void **window_out);
void nvi_window_free(struct vi_nic *nic, void *window);

#endif
