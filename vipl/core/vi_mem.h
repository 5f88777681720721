/* SPDX-License-Identifier: BSD-2-Clause */
/* Registered memory. */
#ifndef VI_MEM_H
#define VI_MEM_H

#include <stdbool.h>
#include <stdint.h>

#include "vipl.h"

struct vi_nic;

/*
 * Returns the greatest length of a region that may be registered: the size of this machine's memory, since all pages
 * of a region may have to be present, but at least VI_MAX_TRANSFER and at most VI_MAX_REGISTER_BYTES.
 */
uint64_t vi_max_region_bytes(void);

int vi_mem_register(struct vi_nic *nic, void *addr, uint64_t len, const VIP_MEM_ATTRIBUTES *attrs,
		    void *window, VIP_MEM_HANDLE *handle_out);
/*
 * Registers whole pages of the program's memory and makes window memory of them; `exact` as in
 * u_adopt().  -EOPNOTSUPP for memory of a kind that cannot become window memory.
 */
int vi_mem_adopt(struct vi_nic *nic, void *addr, uint64_t len, const VIP_MEM_ATTRIBUTES *attrs,
		 bool exact, VIP_MEM_HANDLE *handle_out);
/*
 * Ends a registration.  Adopted memory is given back, and stays registered if that fails.
 *
 * `window_out`: receives the provider's record of memory of VipxAllocMem(), whose pages the caller
 * then frees; NULL for all other memory.
 */
int vi_mem_deregister(struct vi_nic *nic, void *addr, VIP_MEM_HANDLE handle, void **window_out);
int vi_mem_set(struct vi_nic *nic, void *addr, VIP_MEM_HANDLE handle,
	       const VIP_MEM_ATTRIBUTES *attrs);
int vi_mem_query(struct vi_nic *nic, void *addr, VIP_MEM_HANDLE handle, VIP_MEM_ATTRIBUTES *out);

#endif
