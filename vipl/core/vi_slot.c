/* SPDX-License-Identifier: BSD-2-Clause */
/* Slots of the translation and protection table. */
#include "vi_slot.h"

#include <stdlib.h>
#include <string.h>

#include "u_base.h"

#define GENERATION_MASK ((1u << (32 - VI_TPT_SLOT_BITS)) - 1)
/* That many slots stay free before one is used again: a stale handle stays invalid for long. */
#define SPARE_SLOTS 256u

/* Returns the slot that has been free for longest, or 0. */
static uint32_t take_free_slot(struct vi_tpt *tpt)
{
	uint32_t slot = tpt->free_head;

	if (slot == 0)
		return 0;
	tpt->free_head = vi_slot_region(tpt, slot)->next_free;
	if (tpt->free_head == 0)
		tpt->free_tail = 0;
	tpt->free_count--;
	return slot;
}

void vi_slot_put(struct vi_tpt *tpt, uint32_t slot)
{
	vi_slot_region(tpt, slot)->next_free = 0;
	if (tpt->free_tail != 0)
		vi_slot_region(tpt, tpt->free_tail)->next_free = slot;
	else
		tpt->free_head = slot;
	tpt->free_tail = slot;
	tpt->free_count++;
}

/* A slot that was never used, in a new chunk if need be; 0: all were used, or no memory. */
static uint32_t add_slot(struct vi_tpt *tpt)
{
	uint32_t slot = tpt->slots + 1;
	struct vi_region *chunk;

	if (slot > VI_SLOT_MASK)
		return 0;
	if (vi_slot_region(tpt, slot) == NULL) {
		chunk = aligned_alloc(U_LINE, VI_TPT_CHUNK * sizeof(*chunk));
		if (chunk == NULL)
			return 0;
		memset(chunk, 0, VI_TPT_CHUNK * sizeof(*chunk));
		atomic_store_explicit(&tpt->chunk[slot / VI_TPT_CHUNK], chunk,
				      memory_order_release);
	}
	vi_slot_region(tpt, slot)->generation = tpt->first_generation;
	tpt->slots = slot;
	return slot;
}

uint32_t vi_slot_take(struct vi_tpt *tpt)
{
	uint32_t slot = tpt->free_count < SPARE_SLOTS ? add_slot(tpt) : 0;

	return slot != 0 ? slot : take_free_slot(tpt);
}

uint32_t vi_slot_handle(struct vi_tpt *tpt, uint32_t slot)
{
	struct vi_region *r = vi_slot_region(tpt, slot);
	uint32_t handle;

	do {
		r->generation = (r->generation + 1) & GENERATION_MASK;
		handle = r->generation << VI_TPT_SLOT_BITS | slot;
	} while (handle == UINT32_MAX);
	return handle;
}
