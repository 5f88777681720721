/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Slots of the translation and protection table: each has a region or is free.  Successive regions of one slot
 * have different handles.  Caller holds nic->lock.
 */
#ifndef VI_SLOT_H
#define VI_SLOT_H

#include <stddef.h>
#include <stdint.h>

#include "vi_tpt.h"

#define VI_SLOT_MASK ((1u << VI_TPT_SLOT_BITS) - 1)

/* The region of a slot, at most VI_SLOT_MASK.  NULL until add_slot() has allocated its chunk. */
static inline struct vi_region *vi_slot_region(const struct vi_tpt *tpt, uint32_t slot)
{
	/* R: pairs with the release in add_slot(). */
	struct vi_region *chunk =
		atomic_load_explicit(&tpt->chunk[slot / VI_TPT_CHUNK], memory_order_acquire);

	return chunk != NULL ? &chunk[slot % VI_TPT_CHUNK] : NULL;
}

/* A free slot, or 0.  Caller holds nic->lock. */
uint32_t vi_slot_take(struct vi_tpt *tpt);
/* Frees a slot, whose region has no live handle.  Caller holds nic->lock. */
void vi_slot_put(struct vi_tpt *tpt, uint32_t slot);
/*
 * Makes the next handle of the region in a slot, which differs from those before, and returns it; the caller stores it
 * in the region.  Caller holds nic->lock.
 */
uint32_t vi_slot_handle(struct vi_tpt *tpt, uint32_t slot);

#endif
