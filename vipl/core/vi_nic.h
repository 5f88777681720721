/* SPDX-License-Identifier: BSD-2-Clause */
/* NICs: opening and closing, and the state that all objects of a NIC share. */
#ifndef VI_NIC_H
#define VI_NIC_H

#include <stdint.h>

#include "vi_objects.h"
#include "vi_pool.h"

/*
 * Opens the device with the first provider that knows it, and places the calling thread and those of the NIC as
 * VIADUCT_AFFINITY says.  -EINVAL: none does, or a VIADUCT_ variable is bad; -ENOSPC, also in a child that did not
 * come from fork(); -ENOMEM; else the provider's error.  *out is set only with 0, and not held.
 */
int vi_nic_open(const char *device, struct vi_nic **out);
/*
 * -EBUSY while VIs, CQs, regions or ptags live or a thread is inside a call; -EINVAL: stale id.  Refuses connection
 * requests that were not decided, and waits for a running handler unless called from it.
 */
int vi_nic_close(struct vi_nic *nic, uint64_t id);

/* The NIC of a handle, held until vi_ref_put(&nic->ref), or NULL. */
struct vi_nic *vi_nic_get(const void *handle);

extern struct vi_pool vi_nic_pool;

#endif
