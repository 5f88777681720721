// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Places of a window: the page that each leads to.
 *
 * Where an IOMMU translates for the adapter, the memory of a window has addresses that the DMA API took for it.  The
 * upper half of them is mapped page by page, and a place there can be led to a page of a program and back.  Whatever
 * the place leads to, the window's own page stays allocated, and is what the DMA API frees in the end.
 */
#include <linux/bitmap.h>
#include <linux/dma-map-ops.h>
#include <linux/iommu.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/version.h>
#include <linux/vmalloc.h>

#include "viaduct.h"

#define PROT (IOMMU_READ | IOMMU_WRITE | IOMMU_CACHE) /* as the DMA API chooses for such memory */
#define PROT_PROGRAM (IOMMU_WRITE | IOMMU_CACHE)      /* the peer only stores */
/* Places that are led elsewhere with one flush: fewer than a table of the IOMMU has, so none is freed. */
#define RUN (PTRS_PER_PTE / 2)

static bool adopt = true;
module_param(adopt, bool, 0444);
MODULE_PARM_DESC(adopt,
		 "half of each window can lead to memory of programs, where an IOMMU translates");

static unsigned long address_pfn(const void *address)
{
	if (is_vmalloc_addr(address))
		return vmalloc_to_pfn(address);
	return PHYS_PFN(virt_to_phys((void *)address));
}

/* The window's own page at a place. */
unsigned long vd_place_pfn(const struct vd_window *w, unsigned long place)
{
	return address_pfn(w->base + (place << PAGE_SHIFT));
}

static int map(struct iommu_domain *domain, dma_addr_t at, unsigned long pfn, size_t bytes,
	       int prot)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
	return iommu_map(domain, at, PFN_PHYS(pfn), bytes, prot, GFP_KERNEL);
#else
	return iommu_map(domain, at, PFN_PHYS(pfn), bytes, prot);
#endif
}

/* Does this domain lead from the addresses of the window to its pages, and can it page by page? */
static bool translates(struct iommu_domain *domain, struct device *dev, const struct vd_window *w)
{
	size_t off;

	if (!domain || !(domain->type & __IOMMU_DOMAIN_PAGING) || !dev_is_dma_coherent(dev) ||
	    !(domain->pgsize_bitmap & PAGE_SIZE))
		return false;
	for (off = 0; off < w->memory_bytes; off += PAGE_SIZE) {
		if (iommu_iova_to_phys(domain, w->dma_memory + off) !=
		    PFN_PHYS(address_pfn(w->memory + off)))
			return false;
	}
	return true;
}

/* From `off` on, to where the next page lies elsewhere, or to `end`. */
static size_t run_length(const struct vd_window *w, size_t off, size_t end)
{
	unsigned long pfn = address_pfn(w->memory + off);
	size_t len = PAGE_SIZE;

	while (off + len < end && address_pfn(w->memory + off + len) == pfn + PHYS_PFN(len))
		len += PAGE_SIZE;
	return len;
}

/* Large pages can be taken away only as a whole: from `split` on there are none. */
static int map_again(struct iommu_domain *domain, const struct vd_window *w, size_t split)
{
	size_t off, len;
	int rc;

	for (off = 0; off < w->memory_bytes; off += len) {
		len = off < split ? run_length(w, off, split) : PAGE_SIZE;
		rc = map(domain, w->dma_memory + off, address_pfn(w->memory + off), len, PROT);
		if (rc) {
			iommu_unmap(domain, w->dma_memory, off);
			return rc;
		}
		cond_resched();
	}
	return 0;
}

/*
 * Before the adapter is told of the memory.  After an error the DMA API's memory is not mapped as it believes, so it
 * can be neither used nor given back.
 */
int vd_place_split(struct vd_window *w, struct device *dev)
{
	struct iommu_domain *domain = iommu_get_domain_for_dev(dev);
	unsigned long first = (w->bytes >> PAGE_SHIFT) / 2;
	size_t split = w->dma - w->dma_memory + (first << PAGE_SHIFT);

	if (!adopt || !translates(domain, dev, w))
		return 0;
	if (iommu_unmap(domain, w->dma_memory, w->memory_bytes) != w->memory_bytes)
		return -EIO;
	if (map_again(domain, w, split))
		return -ENOMEM;
	w->domain = domain;
	w->adopt_first = first;
	return 0;
}

static dma_addr_t address_of(const struct vd_window *w, unsigned long place)
{
	return w->dma + ((dma_addr_t)place << PAGE_SHIFT);
}

/*
 * `n` places, RUN at most, lead to these pages, or to the window's own if there are none.  The IOMMU has forgotten the
 * old pages when iommu_unmap() returns, also where the DMA API flushes late.  They are mapped page by page, so that no
 * large entries arise.  False: each leads where it did, to the new page, or nowhere.
 */
static bool lead(const struct vd_window *w, unsigned long place, unsigned long n,
		 struct page *const *pages)
{
	unsigned long i;

	if (iommu_unmap(w->domain, address_of(w, place), n << PAGE_SHIFT) != n << PAGE_SHIFT)
		return false;
	for (i = 0; i < n; i++) {
		if (map(w->domain, address_of(w, place + i),
			pages ? page_to_pfn(pages[i]) : vd_place_pfn(w, place + i), PAGE_SIZE,
			pages ? PROT_PROGRAM : PROT))
			return false;
	}
	return true;
}

/* After lead() has failed: one place, whatever it leads to. */
static bool repair(const struct vd_window *w, unsigned long place)
{
	dma_addr_t at = address_of(w, place);

	if (iommu_iova_to_phys(w->domain, at) && iommu_unmap(w->domain, at, PAGE_SIZE) != PAGE_SIZE)
		return false;
	return map(w->domain, at, vd_place_pfn(w, place), PAGE_SIZE, PROT) == 0;
}

/*
 * The places lead to pages of the window again.  False: not all; what they led to must stay pinned, and the places must
 * not be used again.  Under port->lock and port->alloc_lock, as all that leads places elsewhere.
 */
bool vd_place_back(const struct vd_window *w, unsigned long first, unsigned long count)
{
	unsigned long i, j, n;
	bool all = true;

	for (i = 0; i < count; i += n) {
		n = min_t(unsigned long, count - i, RUN);
		if (!lead(w, first + i, n, NULL)) {
			for (j = 0; j < n; j++)
				all &= repair(w, first + i + j);
		}
		cond_resched();
	}
	WARN_ONCE(!all, "viaduct: places of a window are lost\n");
	return all;
}

/* The first of a free range of places, or a number past the last place.  adopts: for memory of a program. */
unsigned long vd_place_find(const struct vd_window *w, unsigned long pages, bool adopts)
{
	unsigned long all = w->bytes >> PAGE_SHIFT;

	/* The search takes the number of pages for one of 32 bits. */
	if (!w->translated || pages > all || (adopts && !w->domain))
		return all;
	return bitmap_find_next_zero_area(w->used, all, adopts ? w->adopt_first : 0, pages, 0);
}

/* The places lead to these pages, which are pinned; after an error where they did, or nowhere if it sets `lost`. */
int vd_place_lead(const struct vd_window *w, unsigned long first, const struct vd_pinned *pinned,
		  bool *lost)
{
	unsigned long i, n;

	for (i = 0; i < pinned->count; i += n) {
		n = min_t(unsigned long, pinned->count - i, RUN);
		if (!lead(w, first + i, n, pinned->pages + i)) {
			*lost = !vd_place_back(w, first, i + n);
			return -ENOMEM;
		}
		cond_resched();
	}
	return 0;
}
