/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The translation and protection table: the memory that the VIs of a NIC may touch.  Look-ups take no
 * lock; vi_mem.c registers and deregisters.
 */
#ifndef VI_TPT_H
#define VI_TPT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "u_base.h"

struct vi_nic;
struct vi_ptag;
struct vi_vi;

/* A memory handle: generation (14) | slot (18); slot 0 is never used, nor the handle ~0. */
#define VI_TPT_SLOT_BITS 18u
#define VI_TPT_CHUNK 1024u
#define VI_TPT_CHUNKS ((1u << VI_TPT_SLOT_BITS) / VI_TPT_CHUNK)

enum vi_access {
	VI_READ = 1,	     /* local source of a send or RDMA write; descriptor memory */
	VI_WRITE = 2,	     /* local target of a receive or RDMA read */
	VI_REMOTE_WRITE = 4, /* target of the peer's RDMA write */
	VI_REMOTE_READ = 8,  /* source of the peer's RDMA read */
	VI_WINDOW = 16,	     /* no right, but a property: window memory, which peers may map */
};

struct vi_region {
	_Alignas(U_LINE) _Atomic uint32_t
		handle;		 /* 0 while free; stored last to register, first to deregister */
	_Atomic uint32_t rights; /* mask of enum vi_access */
	_Atomic uint64_t base;
	_Atomic uint64_t length;
	_Atomic uint64_t ptag;	    /* id of the ptag, 0 for the default tag */
	void *window;		    /* the provider's record of window memory, else NULL */
	struct vi_adopted *adopted; /* VipxAdoptMem, else NULL */
	/* Under nic->lock: */
	struct vi_ptag *ptag_ref;
	uint32_t next_free;
	uint32_t generation; /* of the last handle, 14 bits */
};

struct vi_tpt {
	/*
	 * Changes whenever a right is revoked: an access that a check under an older version
	 * allowed must be checked again.  Read before the check; changed before the wait for the
	 * VIs' locks.
	 */
	_Atomic uint64_t version;
	struct vi_region *_Atomic chunk[VI_TPT_CHUNKS];
	uint32_t slots;		       /* ever used; under nic->lock as all below */
	uint32_t free_head, free_tail; /* slots, 0 for none; first in, first out */
	uint32_t free_count;
	uint32_t first_generation; /* differs between NICs, so that their handles do */
	uint32_t count;
	uint64_t bytes;
};

static inline uint64_t vi_tpt_version(const struct vi_tpt *tpt)
{
	return atomic_load_explicit(&tpt->version, memory_order_acquire);
}

/* The region of a live handle, or NULL.  Valid while the caller holds a lock of a VI of the NIC, or nic->lock. */
static inline struct vi_region *vi_tpt_region(const struct vi_tpt *tpt, uint32_t handle)
{
	uint32_t slot = handle & ((1u << VI_TPT_SLOT_BITS) - 1);
	/* R: pairs with the release in add_slot(). */
	struct vi_region *chunk =
		atomic_load_explicit(&tpt->chunk[slot / VI_TPT_CHUNK], memory_order_acquire);
	struct vi_region *r = chunk != NULL ? &chunk[slot % VI_TPT_CHUNK] : NULL;

	/* R: pairs with the release in register_locked(). */
	if (u_unlikely(r == NULL || handle == 0 ||
		       atomic_load_explicit(&r->handle, memory_order_acquire) != handle))
		return NULL;
	return r;
}

/*
 * Does the region allow a VI of `ptag` all of `access` to [addr, addr + len)?  Two tags must be equal unless one is 0.
 * That its handle is live was checked before.
 */
static inline bool vi_region_allows(const struct vi_region *r, uint64_t ptag, uint64_t addr,
				    uint64_t len, uint32_t access)
{
	uint64_t region_ptag = atomic_load_explicit(&r->ptag, memory_order_relaxed);
	uint64_t base = atomic_load_explicit(&r->base, memory_order_relaxed);
	uint64_t length = atomic_load_explicit(&r->length, memory_order_relaxed);

	if (u_unlikely((atomic_load_explicit(&r->rights, memory_order_relaxed) & access) != access))
		return false;
	if (u_unlikely(ptag != region_ptag && ptag != 0 && region_ptag != 0))
		return false;
	return u_likely(addr >= base && u_range_ok(addr - base, len, length));
}

/*
 * May a VI with protection tag `ptag` (id, 0 for none) access [addr, addr + len) through `handle`
 * with all of `access`?  Lock-free; the caller holds a lock of the VI (rx or tx) until it is done
 * with the memory, and deregistration waits for that.  Returns the address, or NULL when refused.
 * `len` may be 0: then address and handle are still checked.  Two tags must be equal unless one of
 * them is 0.
 */
void *vi_tpt_check(const struct vi_nic *nic, uint64_t ptag, uint64_t addr, uint64_t len,
		   uint32_t handle, uint32_t access);

/*
 * Is the range in registered memory of VipxAllocMem()?  vi_probe_range() fails for such memory behind an
 * adapter, as the kernel cannot populate it.  Takes nic->lock.
 */
bool vi_tpt_in_window(struct vi_nic *nic, const void *addr, uint64_t len);

/* From here on accesses that were checked before are checked again. */
void vi_tpt_change(struct vi_nic *nic);

/*
 * The region that was looked up last.  Its owner forgets it when the version of the table changes
 * (vi_wq_forget_regions()).
 */
struct vi_tpt_cache {
	uint64_t handle; /* of the region, below 2^32; VI_NO_REGION: nothing is known */
	uint64_t base;
	uint64_t limit; /* bytes from `base` on, less `least` of vi_tpt_cache_fill() */
	uint32_t rights;
};

#define VI_NO_REGION UINT64_MAX

/*
 * Looks a region up for vi_tpt_cache_allows(): one that allows `access` to at least `least` bytes,
 * both constants of the cache; false: none, and the cache is empty.  Caller holds a lock of the VI, and has emptied
 * the cache if the version of the table changed.
 */
bool vi_tpt_cache_fill(struct vi_tpt_cache *g, const struct vi_vi *vi, uint32_t handle,
		       uint32_t access, uint32_t least);

/*
 * Is [addr, addr + len) in the region that the cache holds?  The caller has compared the handle.  False for less than
 * `least`.
 */
static inline bool vi_tpt_cache_covers(const struct vi_tpt_cache *g, uint64_t addr, uint64_t len,
				       uint32_t least)
{
	uint64_t offset = addr - g->base;

	/* For a length below `least` the difference is huge. */
	return u_likely(offset <= g->limit && len - least <= g->limit - offset);
}

/*
 * As vi_tpt_check(), but remembers the region.  One cache is always used with one `access` and one
 * `least`, both constants; false for less than `least`.
 */
static inline bool vi_tpt_cache_allows(struct vi_tpt_cache *g, const struct vi_vi *vi,
				       uint32_t handle, uint64_t addr, uint64_t len,
				       uint32_t access, uint32_t least)
{
	return (g->handle == handle || vi_tpt_cache_fill(g, vi, handle, access, least)) &&
	       vi_tpt_cache_covers(g, addr, len, least);
}

#endif
