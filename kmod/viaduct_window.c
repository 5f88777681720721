// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Memory windows: the memory of inbound ones, the cache mode of outbound ones. */
#include <linux/bitmap.h>
#include <linux/dma-mapping.h>
#include <linux/io.h>
#include <linux/log2.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "viaduct.h"

#define PIDX 0

static unsigned long window_bytes = SZ_64M;
module_param(window_bytes, ulong, 0444);
MODULE_PARM_DESC(window_bytes, "memory to allocate for each window, if the window is that large");

/* Endpoints whose NTB device is not the one that does DMA say so. */
struct device *vd_window_device(struct ntb_dev *ntb)
{
#ifdef VD_NTB_DMA_DEV
	return ntb_get_dma_dev(ntb);
#else
	return &ntb->pdev->dev;
#endif
}

/* Peers see the window at a fixed place of the adapter; the memory type must be reserved before it is mapped. */
int vd_window_init(struct vd_port *port)
{
	struct ntb_dev *ntb = port->ntb;
	int count = min3(ntb_mw_count(ntb, PIDX), ntb_peer_mw_count(ntb), VIADUCT_WINDOWS);
	int i, rc;

	for (i = 0; i < count; i++) {
		struct vd_window *w = &port->window[i];

		rc = ntb_peer_mw_get_addr(ntb, i, &w->out_phys, &w->out_bytes);
		if (rc)
			return rc;
		if (!PAGE_ALIGNED(w->out_phys))
			return -EINVAL;
		w->out_bytes &= PAGE_MASK;
		if (!w->out_bytes)
			break; /* firmware has given it no room */
		rc = arch_io_reserve_memtype_wc(w->out_phys, w->out_bytes);
		if (rc)
			return rc;
		w->out_wc = true;
		w->out_opens = port->msg.by_sender ? 0 : w->out_bytes;
		w->flush = ioremap_wc(w->out_phys, PAGE_SIZE);
		if (!w->flush)
			return -ENOMEM;
		port->windows = i + 1;
	}
	return port->windows ? 0 : -ENXIO;
}

/*
 * Reads the peer's memory.  The barrier empties write-combining buffers, and keeps the read after the stores: on R-Car
 * S4 a weaker one did not (Linux 322617a06c97).  A read passes no store on its way there, of whatever window; where
 * each window has a unit of address translation of its own, so has each into which somebody stores a read of its own.
 * Under port->lock, while the link is up.
 */
void vd_window_read_back(struct vd_port *port)
{
	unsigned int i;

	mb();
	readl(port->window[0].flush);
	for (i = 1; port->read_back && i < port->windows; i++)
		if (READ_ONCE(port->window[i].stored) && port->window[i].out_opens)
			readl(port->window[i].flush);
	mb();
}

/*
 * When the read has returned, the stores before it have arrived.  Scratchpads would not do, since on some adapters
 * those of the peer are registers of this side.
 */
int vd_window_flush(struct vd_port *port)
{
	int rc = 0;

	down_read(&port->lock);
	if (!port->ntb)
		rc = -ENODEV;
	else if (port->up)
		vd_window_read_back(port);
	up_read(&port->lock);
	return rc;
}

static int alloc_aligned(struct device *dev, struct vd_window *w, size_t bytes, size_t align)
{
	size_t more;

	for (more = 0;; more = align) {
		w->memory_bytes = bytes + more;
		w->memory = dma_alloc_coherent(dev, w->memory_bytes, &w->dma_memory,
					       GFP_KERNEL | __GFP_NOWARN);
		if (!w->memory)
			return -ENOMEM;
		w->dma = ALIGN(w->dma_memory, align);
		if (w->dma + bytes <= w->dma_memory + w->memory_bytes)
			break;
		dma_free_coherent(dev, w->memory_bytes, w->memory, w->dma_memory);
		w->memory = NULL;
		if (more)
			return -ENOMEM;
	}
	w->base = w->memory + (w->dma - w->dma_memory);
	w->bytes = bytes;
	return 0;
}

static void free_memory(struct vd_window *w, struct device *dev)
{
	dma_free_coherent(dev, w->memory_bytes, w->memory, w->dma_memory);
	w->memory = NULL;
	w->bytes = 0;
}

/* Makes the bitmap and the places of a window that has memory. */
static int prepare_memory(struct vd_port *port, int widx)
{
	struct vd_window *w = &port->window[widx];
	struct device *dev = vd_window_device(port->ntb);
	int rc;

	w->used = bitmap_zalloc(w->bytes >> PAGE_SHIFT, GFP_KERNEL);
	if (!w->used) {
		free_memory(w, dev);
		return -ENOMEM;
	}
	rc = vd_place_split(w, dev);
	if (rc) {
		dev_warn(&port->ntb->dev, "window %d: its memory is lost\n", widx);
		bitmap_free(w->used);
		w->used = NULL;
		w->memory = NULL;
		w->bytes = 0;
		w->lost = true;
	} else if (w->domain) {
		dev_info(&port->ntb->dev,
			 "window %d: %zu KiB of it can lead to memory of programs\n", widx,
			 (w->bytes - (w->adopt_first << PAGE_SHIFT)) >> 10);
	}
	return rc;
}

/* How much memory to seek first: a power of two, since some chips translate no other size as a whole. */
static size_t most_bytes(resource_size_t size_max, resource_size_t size_align)
{
	u64 bytes = min_t(u64, window_bytes, size_max);

	if (bytes >= size_align)
		bytes = max_t(u64, rounddown_pow_of_two(bytes), size_align);
	return bytes;
}

/* own_size: at an address that is aligned to the size, whatever the adapter says. */
static int alloc_window(struct vd_port *port, int widx, bool own_size)
{
	struct vd_window *w = &port->window[widx];
	struct device *dev = vd_window_device(port->ntb);
	resource_size_t addr_align, size_align, size_max;
	size_t bytes;
	int rc;

	rc = ntb_mw_get_align(port->ntb, PIDX, widx, &addr_align, &size_align, &size_max);
	if (rc)
		return rc;
	addr_align = max_t(resource_size_t, addr_align, PAGE_SIZE);
	size_align = max_t(resource_size_t, size_align, PAGE_SIZE);
	rc = -ENOMEM;
	for (bytes = most_bytes(size_max, size_align);; bytes /= 2) {
		bytes = rounddown(bytes, (size_t)size_align);
		if (!bytes)
			break;
		rc = alloc_aligned(dev, w, bytes,
				   own_size ? max_t(size_t, addr_align, bytes) : addr_align);
		if (!rc)
			break;
	}
	return rc ?: prepare_memory(port, widx);
}

/* One that leads nowhere yet. */
static void free_window(struct vd_port *port, struct vd_window *w)
{
	bitmap_free(w->used);
	w->used = NULL;
	w->domain = NULL;
	w->adopt_first = 0;
	free_memory(w, vd_window_device(port->ntb));
}

/* The driver of Switchtec refuses an address that is not aligned to the size, and tells no such rule before. */
static int setup_window(struct vd_port *port, int widx)
{
	struct vd_window *w = &port->window[widx];
	bool fresh = !w->memory;
	int rc;

	if (w->lost)
		return -EIO;
	rc = fresh ? alloc_window(port, widx, false) : 0;
	if (!rc)
		rc = ntb_mw_set_trans(port->ntb, PIDX, widx, w->dma, w->bytes);
	if (rc != -EINVAL || !fresh || !w->memory || IS_ALIGNED(w->dma, w->bytes))
		return rc;
	free_window(port, w);
	rc = alloc_window(port, widx, true);
	return rc ?: ntb_mw_set_trans(port->ntb, PIDX, widx, w->dma, w->bytes);
}

/* The rules of a window can be asked for only while the link is up.  A window without memory is left out. */
int vd_window_setup(struct vd_port *port)
{
	int rc = -ENOSPC, ready = 0;
	unsigned int i;

	for (i = 0; i < port->windows; i++) {
		struct vd_window *w = &port->window[i];

		rc = setup_window(port, i);
		w->translated = !rc;
		if (rc)
			dev_warn_ratelimited(&port->ntb->dev, "window %u has no memory: error %d\n",
					     i, rc);
		else
			ready++;
	}
	return ready ? 0 : rc;
}

/* Does the window have room for so much memory of programs?  Under port->alloc_lock. */
static bool has_adopt_room(const struct vd_window *w, u64 bytes)
{
	unsigned long all = w->bytes >> PAGE_SHIFT;

	return bytes <= w->bytes - (w->adopt_first << PAGE_SHIFT) &&
	       bitmap_find_next_zero_area(w->used, all, w->adopt_first, bytes >> PAGE_SHIFT, 0) <
		       all;
}

/* Can a window lead to so much memory of programs now?  Asked before any is pinned. */
int vd_window_adopts(struct vd_port *port, u64 bytes)
{
	int rc = -EOPNOTSUPP;
	unsigned int i;

	down_read(&port->lock);
	mutex_lock(&port->alloc_lock);
	if (!port->ntb)
		rc = -ENODEV;
	for (i = 0; port->ntb && i < port->windows && rc; i++) {
		const struct vd_window *w = &port->window[i];

		if (!w->translated || w->domain)
			rc = -ENOSPC; /* perhaps later */
		if (w->translated && w->domain && has_adopt_room(w, bytes))
			rc = 0;
	}
	mutex_unlock(&port->alloc_lock);
	up_read(&port->lock);
	return rc;
}

/* Outbound windows of adapters whose sender sets them, as the peer said.  One that it has no memory for is left out. */
int vd_window_open(struct vd_port *port)
{
	unsigned int i, ready = 0;
	u64 address, bytes;

	if (!port->msg.by_sender)
		return 0;
	for (i = 0; i < port->windows; i++) {
		struct vd_window *w = &port->window[i];

		w->out_opens = 0;
		if (!vd_msg_window(port, i, &address, &bytes))
			continue;
		bytes = min_t(u64, bytes, w->out_bytes);
		if (ntb_peer_mw_set_trans(port->ntb, PIDX, i, address, bytes)) {
			dev_warn_ratelimited(&port->ntb->dev,
					     "window %u does not lead to the peer's memory\n", i);
			continue;
		}
		w->out_opens = bytes;
		ready++;
	}
	return ready ? 0 : -ENXIO;
}

void vd_window_close(struct vd_port *port)
{
	unsigned int i;

	for (i = 0; port->msg.by_sender && i < port->windows; i++) {
		if (port->window[i].out_opens)
			ntb_peer_mw_clear_trans(port->ntb, PIDX, i);
		port->window[i].out_opens = 0;
	}
}

/* Memory that the peer may still store into is kept for ever: freed is false. */
void vd_window_fini(struct vd_port *port, struct ntb_dev *ntb, bool freed)
{
	unsigned int i;

	for (i = 0; i < VIADUCT_WINDOWS; i++) {
		struct vd_window *w = &port->window[i];

		if (w->memory) {
			ntb_mw_clear_trans(ntb, PIDX, i);
			if (freed)
				free_memory(w, vd_window_device(ntb));
			bitmap_free(w->used);
		}
		if (w->flush)
			iounmap(w->flush);
		if (w->out_opens && port->msg.by_sender)
			ntb_peer_mw_clear_trans(ntb, PIDX, i);
		if (w->out_wc)
			arch_io_free_memtype_wc(w->out_phys, w->out_bytes);
		memset(w, 0, sizeof(*w));
	}
}
