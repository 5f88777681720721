/* SPDX-License-Identifier: BSD-2-Clause */
/* Window memory: pages in the host's memory window (VipxAllocMem). */
#ifndef NVI_MEM_H
#define NVI_MEM_H

#include "nvi_nic.h"

/*
 * vi_provider_ops.window_alloc: gets pages from the agent (`len` is rounded up to them), maps them, and enters the
 * window, which may then be granted.  0 or -errno; the outputs are set only on success.
 */
int nvi_window_alloc(struct vi_nic *nic, uint64_t len, bool sealed, void **addr_out,
		     void **window_out);
/*
 * vi_provider_ops.window_free: takes the window back from all peers, which may block, unmaps it and returns its
 * pages.
 */
void nvi_window_free(struct vi_nic *nic, void *window);

#endif
