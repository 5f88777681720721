/* SPDX-License-Identifier: BSD-2-Clause */
/* Protection tags. */
#ifndef VI_PTAG_H
#define VI_PTAG_H

#include <stdatomic.h>
#include <stdint.h>

#include "vi_pool.h"

struct vi_nic;

struct vi_ptag {
	uint64_t id;
	struct vi_nic *_Atomic nic; /* NULL while free */
	uint32_t users;		    /* VIs and regions; under nic->lock */
	void *pool_link;
};

/* Makes a tag.  -ENOSPC: there are too many; -ENOMEM.  Takes nic->lock. */
int vi_ptag_create(struct vi_nic *nic, uint64_t *id_out);
/* Destroys a tag.  -EKEYREJECTED: not of this NIC; -EBUSY: VIs or regions use it.  Takes nic->lock. */
int vi_ptag_destroy(struct vi_nic *nic, uint64_t id);
/*
 * Takes a use of a tag.  NULL (id 0) gives *out = NULL; -EKEYREJECTED when unknown to this NIC.
 * Caller holds nic->lock.
 */
int vi_ptag_get(struct vi_nic *nic, uint64_t id, struct vi_ptag **out);
void vi_ptag_put(struct vi_ptag *ptag); /* caller holds nic->lock; accepts NULL */

extern struct vi_pool vi_ptag_pool;

#endif
