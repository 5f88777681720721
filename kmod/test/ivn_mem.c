// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Memory windows.
 *
 * An outbound window of ivshmem shows one range of the shared memory and cannot be pointed elsewhere, so the
 * memory of an inbound window has to be that range: a slot.  Clients take memory for windows from the DMA
 * allocator of the adapter; the operations below hand out slots there.  Addresses for DMA are physical ones.
 *
 * A client asks for the rules of a window before it allocates memory for it, so an allocation gets the slot of
 * the window last asked about, when that is free; otherwise the first free one.
 */
#include <linux/dma-map-ops.h>
#include <linux/io.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/scatterlist.h>

#include "ivn.h"

static unsigned long misalign;
module_param(misalign, ulong, 0444);
MODULE_PARM_DESC(misalign, "memory for DMA begins so many bytes within its window, where it fits");

#ifdef IVN_NTB_DMA_DEV
static bool other_dma;
module_param(other_dma, bool, 0444);
MODULE_PARM_DESC(other_dma, "memory for DMA has to be taken for another device than the adapter");
#else
#define other_dma false
#endif

static phys_addr_t window_phys(const struct ivn_dev *ivn, unsigned int port, unsigned int widx)
{
	unsigned int slot = 1 + port * ivn_head(ivn, IVN_H_WINDOWS) + widx;

	return ivn->bus + slot * ivn->window_bytes;
}

static int take_slot_locked(struct ivn_dev *ivn)
{
	unsigned int i;

	if (ivn->asked < ivn->windows && !ivn->slots[ivn->asked].used)
		return ivn->asked;
	for (i = 0; i < ivn->windows; i++) {
		if (!ivn->slots[i].used)
			return i;
	}
	return -ENOSPC;
}

static void *slot_alloc(struct device *dev, size_t size, dma_addr_t *dma, gfp_t gfp,
			unsigned long attrs)
{
	struct ivn_dev *ivn = dev_get_drvdata(dev);
	unsigned long flags, begin;
	int slot;

	if (!size || size > ivn->window_bytes)
		return NULL;
	spin_lock_irqsave(&ivn->slot_lock, flags);
	slot = take_slot_locked(ivn);
	if (slot >= 0)
		ivn->slots[slot].used = true;
	spin_unlock_irqrestore(&ivn->slot_lock, flags);
	if (slot < 0)
		return NULL;
	begin = size + misalign <= ivn->window_bytes ? misalign : 0;
	memset(ivn->slots[slot].vaddr + begin, 0, size);
	*dma = window_phys(ivn, ivn->port, slot) + begin;
	return ivn->slots[slot].vaddr + begin;
}

static void slot_free(struct device *dev, size_t size, void *vaddr, dma_addr_t dma,
		      unsigned long attrs)
{
	struct ivn_dev *ivn = dev_get_drvdata(dev);
	unsigned long flags;
	unsigned int i;

	spin_lock_irqsave(&ivn->slot_lock, flags);
	for (i = 0; i < ivn->windows; i++) {
		if (vaddr >= ivn->slots[i].vaddr && vaddr < ivn->slots[i].vaddr + ivn->window_bytes)
			ivn->slots[i].used = false;
	}
	spin_unlock_irqrestore(&ivn->slot_lock, flags);
}

static int slot_mmap(struct device *dev, struct vm_area_struct *vma, void *vaddr, dma_addr_t dma,
		     size_t size, unsigned long attrs)
{
	unsigned long pages = PAGE_ALIGN(size) >> PAGE_SHIFT;

	if (vma->vm_pgoff >= pages || vma_pages(vma) > pages - vma->vm_pgoff)
		return -ENXIO;
	return remap_pfn_range(vma, vma->vm_start, PHYS_PFN(dma) + vma->vm_pgoff,
			       vma->vm_end - vma->vm_start, vma->vm_page_prot);
}

static dma_addr_t page_map(struct device *dev, struct page *page, unsigned long offset, size_t size,
			   enum dma_data_direction dir, unsigned long attrs)
{
	return page_to_phys(page) + offset;
}

static int sg_map(struct device *dev, struct scatterlist *list, int count,
		  enum dma_data_direction dir, unsigned long attrs)
{
	struct scatterlist *sg;
	int i;

	for_each_sg(list, sg, count, i) {
		sg_dma_address(sg) = sg_phys(sg);
		sg_dma_len(sg) = sg->length;
	}
	return count;
}

static const struct dma_map_ops slot_ops = {
	.alloc = slot_alloc,
	.free = slot_free,
	.mmap = slot_mmap,
	.map_page = page_map,
	.map_sg = sg_map,
};

struct device *ivn_get_dma_dev(struct ntb_dev *ntb)
{
	return to_ivn(ntb)->dma;
}

static int add_dma_device(struct ivn_dev *ivn)
{
	struct platform_device *own;

	own = platform_device_register_simple("ivn-dma", PLATFORM_DEVID_AUTO, NULL, 0);
	if (IS_ERR(own))
		return PTR_ERR(own);
	platform_set_drvdata(own, ivn);
	ivn->own_dma = own;
	ivn->dma = &own->dev;
	return dma_coerce_mask_and_coherent(&own->dev, DMA_BIT_MASK(64));
}

int ivn_mem_init(struct ivn_dev *ivn)
{
	struct device *dev = &ivn->ntb.pdev->dev;
	unsigned int i;
	void *base;
	int rc;

	spin_lock_init(&ivn->slot_lock);
	base = devm_memremap(dev, window_phys(ivn, ivn->port, 0), ivn->windows * ivn->window_bytes,
			     MEMREMAP_WB);
	if (IS_ERR(base))
		return PTR_ERR(base);
	for (i = 0; i < ivn->windows; i++)
		ivn->slots[i].vaddr = base + i * ivn->window_bytes;
	writel(lower_32_bits(ivn->bus), ivn_own(ivn, IVN_R_BUS_LO));
	writel(upper_32_bits(ivn->bus), ivn_own(ivn, IVN_R_BUS_HI));
	ivn->dma = dev;
	rc = other_dma ? add_dma_device(ivn) : 0;
	if (rc)
		return rc;
	set_dma_ops(ivn->dma, &slot_ops);
	if (get_dma_ops(ivn->dma) != &slot_ops) {
		dev_err(dev, "this kernel has no DMA operations of devices\n");
		return -EOPNOTSUPP;
	}
	return 0;
}

void ivn_mem_fini(struct ivn_dev *ivn)
{
	if (ivn->dma)
		set_dma_ops(ivn->dma, NULL);
	if (ivn->own_dma)
		platform_device_unregister(ivn->own_dma);
}

int ivn_mw_count(struct ntb_dev *ntb, int pidx)
{
	return pidx ? -EINVAL : to_ivn(ntb)->windows;
}

int ivn_mw_get_align(struct ntb_dev *ntb, int pidx, int widx, resource_size_t *addr_align,
		     resource_size_t *size_align, resource_size_t *size_max)
{
	struct ivn_dev *ivn = to_ivn(ntb);
	resource_size_t addr, size;

	if (pidx || widx < 0 || widx >= ivn->windows)
		return -EINVAL;
	ivn->asked = widx;
	ivn_profile_align(ivn, &addr, &size);
	if (addr_align)
		*addr_align = addr;
	if (size_align)
		*size_align = size;
	if (size_max)
		*size_max = ivn->window_bytes;
	return 0;
}

/* Is this the slot of a window of a machine whose shared memory is at the address bus? */
static bool translates(const struct ivn_dev *ivn, unsigned int port, int widx, u64 bus, u64 addr,
		       resource_size_t size)
{
	resource_size_t addr_align, size_align;

	ivn_profile_align(ivn, &addr_align, &size_align);
	if (ivn->profile->flags & IVN_OWN_SIZE)
		addr_align = BIT_ULL(ilog2(size));
	return size <= ivn->window_bytes && IS_ALIGNED(addr, addr_align) &&
	       IS_ALIGNED(size, size_align) &&
	       addr == window_phys(ivn, port, widx) - ivn->bus + bus;
}

int ivn_mw_set_trans(struct ntb_dev *ntb, int pidx, int widx, dma_addr_t addr, resource_size_t size)
{
	struct ivn_dev *ivn = to_ivn(ntb);

	if (pidx || widx < 0 || widx >= ivn->windows)
		return -EINVAL;
	if (size && !translates(ivn, ivn->port, widx, ivn->bus, addr, size)) {
		dev_info(&ntb->dev, "window %d cannot be put before %pad, %pa bytes\n", widx, &addr,
			 &size);
		return -EINVAL;
	}
	return 0;
}

int ivn_peer_mw_count(struct ntb_dev *ntb)
{
	return to_ivn(ntb)->windows;
}

int ivn_peer_mw_get_addr(struct ntb_dev *ntb, int widx, phys_addr_t *base, resource_size_t *size)
{
	struct ivn_dev *ivn = to_ivn(ntb);

	if (widx < 0 || widx >= ivn->windows)
		return -EINVAL;
	if (base)
		*base = window_phys(ivn, !ivn->port, widx);
	if (size)
		*size = ivn->profile->flags & IVN_NO_ROOM ? 0 : ivn->window_bytes;
	if (base && ivn->profile->flags & IVN_UNALIGNED)
		*base += SZ_2K;
	return 0;
}

int ivn_peer_mw_set_trans(struct ntb_dev *ntb, int pidx, int widx, u64 addr, resource_size_t size)
{
	struct ivn_dev *ivn = to_ivn(ntb);
	u64 bus;

	if (pidx || widx < 0 || widx >= ivn->windows)
		return -EINVAL;
	bus = readl(ivn_peer(ivn, IVN_R_BUS_LO)) | (u64)readl(ivn_peer(ivn, IVN_R_BUS_HI)) << 32;
	if (size && !translates(ivn, !ivn->port, widx, bus, addr, size)) {
		dev_info(&ntb->dev, "window %d cannot be put before %#llx, %pa bytes\n", widx, addr,
			 &size);
		return -EINVAL;
	}
	return 0;
}
