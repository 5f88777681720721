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

/*
 * Registers memory of the program, after checking that it is mapped, or with `window` that of VipxAllocMem(). `attrs`
 * NULL: no rights for peers.  -EINVAL: a bad range, or not mapped; -EACCES: RDMA reads, which the NIC lacks;
 * -EKEYREJECTED: no such tag; -ENOSPC; -ENOMEM.  *handle_out is set only with 0; an error leaves `window` to the
 * caller. Takes nic->lock.
 */
int vi_mem_register(struct vi_nic *nic, void *addr, uint64_t len, const VIP_MEM_ATTRIBUTES *attrs,
		    void *window, VIP_MEM_HANDLE *handle_out);
/*
 * Registers whole pages of the program's memory and makes window memory of them; `exact` as in
 * u_adopt().  -EOPNOTSUPP for memory of a kind that cannot become window memory; -EINVAL also if it is no whole pages;
 * else as vi_mem_register().  After an error the memory is as before.  Takes nic->lock.
 */
int vi_mem_adopt(struct vi_nic *nic, void *addr, uint64_t len, const VIP_MEM_ATTRIBUTES *attrs,
		 bool exact, VIP_MEM_HANDLE *handle_out);
/*
 * Ends a registration.  On return no thread and no peer uses the memory by it.  Adopted memory is given back, and
 * stays registered if that fails.  -EINVAL: there is no such region, or it is for the other call.  `window_out`:
 * receives the provider's record of memory of VipxAllocMem(), whose pages the caller then frees; NULL for all other
 * memory.  An error leaves *window_out.  Takes nic->lock; blocks.
 */
int vi_mem_deregister(struct vi_nic *nic, void *addr, VIP_MEM_HANDLE handle, void **window_out);
/*
 * Gives the region another tag and other rights of peers; on return nobody uses the old ones.  -EINVAL: no such
 * region; -EACCES, -EKEYREJECTED as vi_mem_register(), and nothing was changed.  Takes nic->lock; may block.
 */
int vi_mem_set(struct vi_nic *nic, void *addr, VIP_MEM_HANDLE handle,
	       const VIP_MEM_ATTRIBUTES *attrs);
/* Reads the region's attributes.  -EINVAL: no such region, and *out is left.  Takes nic->lock. */
int vi_mem_query(struct vi_nic *nic, void *addr, VIP_MEM_HANDLE handle, VIP_MEM_ATTRIBUTES *out);

#endif
