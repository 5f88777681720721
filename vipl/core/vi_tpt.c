/* SPDX-License-Identifier: BSD-2-Clause */
/* Look-ups in the translation and protection table. */
#include "vi_tpt.h"

#include "vi_objects.h"

void *vi_tpt_check(const struct vi_nic *nic, uint64_t ptag, uint64_t addr, uint64_t len,
		   uint32_t handle, uint32_t access)
{
	const struct vi_region *r = vi_tpt_region(&nic->tpt, handle);

	if (u_unlikely(r == NULL || !vi_region_allows(r, ptag, addr, len, access)))
		return NULL;
	return (void *)(uintptr_t)addr;
}

/* Is it a live region of VipxAllocMem(), in which the range lies? */
static bool is_window(const struct vi_region *r, uint64_t addr, uint64_t len)
{
	return atomic_load_explicit(&r->handle, memory_order_relaxed) != 0 && r->window != NULL &&
	       r->adopted == NULL && vi_region_allows(r, 0, addr, len, 0);
}

bool vi_tpt_in_window(struct vi_nic *nic, const void *addr, uint64_t len)
{
	const struct vi_tpt *tpt = &nic->tpt;
	bool found = false;

	pthread_mutex_lock(&nic->lock);
	for (uint32_t slot = 1; slot <= tpt->slots && !found; slot++) {
		const struct vi_region *chunk = atomic_load_explicit(
			&tpt->chunk[slot / VI_TPT_CHUNK], memory_order_relaxed);

		found = is_window(&chunk[slot % VI_TPT_CHUNK], (uintptr_t)addr, len);
	}
	pthread_mutex_unlock(&nic->lock);
	return found;
}

void vi_tpt_change(struct vi_nic *nic)
{
	atomic_fetch_add_explicit(&nic->tpt.version, 1, memory_order_release);
}

U_COLD bool vi_tpt_cache_fill(struct vi_tpt_cache *g, const struct vi_vi *vi, uint32_t handle,
			      uint32_t access, uint32_t least)
{
	const struct vi_region *r = vi_tpt_region(&vi->nic->tpt, handle);
	uint64_t base;

	g->handle = VI_NO_REGION;
	if (r == NULL)
		return false;
	base = atomic_load_explicit(&r->base, memory_order_relaxed);
	if (!vi_region_allows(r, vi->ptag, base, least, access))
		return false;
	g->base = base;
	g->limit = atomic_load_explicit(&r->length, memory_order_relaxed) - least;
	g->rights = atomic_load_explicit(&r->rights, memory_order_relaxed);
	g->handle = handle;
	return true;
}
