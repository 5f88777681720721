/* SPDX-License-Identifier: BSD-2-Clause */
/* Look-ups in the translation and protection table. */
#include "vi_tpt.h"
#include "vi_nic.h"
#include "vi_vi.h"

void *vi_tpt_check(const struct vi_nic *nic, uint64_t ptag, uint64_t addr, uint64_t len,
		   uint32_t handle, uint32_t access)
{
	const struct vi_region *r = vi_tpt_region(&nic->tpt, handle);

	if (u_unlikely(r == NULL || !vi_region_allows(r, ptag, addr, len, access)))
		return NULL;
	return (void *)(uintptr_t)addr;
}

void vi_tpt_change(struct vi_nic *nic)
{
	atomic_fetch_add_explicit(&nic->tpt.epoch, 1, memory_order_release);
}

U_COLD bool vi_tpt_cache_fill(struct vi_tpt_cache *g, const struct vi_vi *vi, uint32_t handle)
{
	const struct vi_tpt *tpt = &vi->nic->tpt;
	uint64_t epoch = vi_tpt_epoch(tpt);
	const struct vi_region *r = vi_tpt_region(tpt, handle);
	uint32_t rights;

	g->epoch = VI_NO_EPOCH;
	if (r == NULL)
		return false;
	g->base = atomic_load_explicit(&r->base, memory_order_relaxed);
	g->end = g->base + atomic_load_explicit(&r->length, memory_order_relaxed);
	rights = atomic_load_explicit(&r->rights, memory_order_relaxed);
	if (!vi_region_allows(r, vi->ptag, g->base, 0, rights))
		return false;
	g->rights = rights;
	g->handle = handle;
	g->epoch = epoch;
	return true;
}
