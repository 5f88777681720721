// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A dmaengine provider that copies with the processor, for tests: QEMU emulates no engine that copies memory.
 *
 * Each channel has a work item that copies what was issued, in order.  To test how clients react, the parameter
 * «fail» makes the next descriptors end with an error, and while «hold» is set the engine hangs.
 */
#include <linux/dma-mapping.h>
#include <linux/dmaengine.h>
#include <linux/highmem.h>
#include <linux/io.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/platform_device.h>
#include <linux/slab.h>
#include <linux/version.h>
#include <linux/workqueue.h>

#define CHANNELS 2
#define BLOCK ((phys_addr_t)256 * 1024)

static atomic_t fail = ATOMIC_INIT(0);
module_param_named(fail, fail.counter, int, 0644);
MODULE_PARM_DESC(fail, "how many of the next descriptors end with an error");

static unsigned long copied;
module_param(copied, ulong, 0444);
MODULE_PARM_DESC(copied, "how many descriptors were carried out");

static bool hold;

struct sw_desc {
	struct dma_async_tx_descriptor tx;
	struct list_head link;
	dma_addr_t dst;
	dma_addr_t src;
	size_t len;
};

struct sw_chan {
	struct dma_chan chan;
	struct work_struct work;
	spinlock_t lock; /* of the members below and of the cookies */
	struct list_head submitted;
	struct list_head issued;
	void *block; /* mapped, or NULL */
	phys_addr_t block_at;
};

struct sw_dma {
	struct dma_device dev;
	struct sw_chan chans[CHANNELS];
};

static struct sw_chan *to_sw_chan(struct dma_chan *chan)
{
	return container_of(chan, struct sw_chan, chan);
}

/* For the work of the channel only. */
static void unmap_block(struct sw_chan *sc)
{
	if (sc->block)
		memunmap(sc->block);
	sc->block = NULL;
}

/*
 * Addresses for DMA are physical ones here: no IOMMU translates for the device.  Mapping a page of a window takes
 * longer than copying it, so the block of a window that holds the last target stays mapped.
 */
static void *map_target(struct sw_chan *sc, phys_addr_t addr, size_t len, void **own)
{
	phys_addr_t offset = addr & (BLOCK - 1);

	if (page_is_ram(PHYS_PFN(addr)))
		return phys_to_virt(addr);
	if (len > BLOCK - offset)
		return *own = memremap(addr, len, MEMREMAP_WC);
	if (sc->block && sc->block_at != addr - offset)
		unmap_block(sc);
	if (!sc->block)
		sc->block = memremap(addr - offset, BLOCK, MEMREMAP_WC);
	sc->block_at = addr - offset;
	return sc->block ? sc->block + offset : NULL;
}

static void *map_source(phys_addr_t addr, size_t len, void **own)
{
	if (page_is_ram(PHYS_PFN(addr)))
		return phys_to_virt(addr);
	return *own = memremap(addr, len, MEMREMAP_WC);
}

static int copy(struct sw_chan *sc, const struct sw_desc *desc)
{
	void *dst_own = NULL, *src_own = NULL;
	void *dst = map_target(sc, desc->dst, desc->len, &dst_own);
	void *src = map_source(desc->src, desc->len, &src_own);
	int rc = dst && src ? 0 : -EFAULT;

	if (!rc) {
		memcpy(dst, src, desc->len);
		/* The data is written before the client is told and acts on it. */
		wmb();
	}
	if (dst_own)
		memunmap(dst_own);
	if (src_own)
		memunmap(src_own);
	return rc;
}

static void tell(struct sw_desc *desc, enum dmaengine_tx_result outcome)
{
	struct dmaengine_result result = { .result = outcome, .residue = 0 };
	struct dma_async_tx_descriptor *tx = &desc->tx;

	if (outcome != DMA_TRANS_NOERROR)
		result.residue = desc->len;
	dma_descriptor_unmap(tx);
	/* Clients expect the context of a tasklet. */
	local_bh_disable();
	if (tx->callback_result)
		tx->callback_result(tx->callback_param, &result);
	else if (tx->callback)
		tx->callback(tx->callback_param);
	local_bh_enable();
	kfree(desc);
}

static struct sw_desc *next_issued(struct sw_chan *sc)
{
	struct sw_desc *desc;

	spin_lock_bh(&sc->lock);
	desc = READ_ONCE(hold) ? NULL : list_first_entry_or_null(&sc->issued, struct sw_desc, link);
	if (desc)
		list_del(&desc->link);
	spin_unlock_bh(&sc->lock);
	return desc;
}

static void copy_issued(struct work_struct *work)
{
	struct sw_chan *sc = container_of(work, struct sw_chan, work);
	struct sw_desc *desc;

	while ((desc = next_issued(sc))) {
		bool bad = atomic_dec_if_positive(&fail) >= 0 || copy(sc, desc);

		spin_lock_bh(&sc->lock);
		sc->chan.completed_cookie = desc->tx.cookie;
		copied += !bad;
		spin_unlock_bh(&sc->lock);
		tell(desc, bad ? DMA_TRANS_WRITE_FAILED : DMA_TRANS_NOERROR);
		cond_resched();
	}
}

static dma_cookie_t submit(struct dma_async_tx_descriptor *tx)
{
	struct sw_desc *desc = container_of(tx, struct sw_desc, tx);
	struct sw_chan *sc = to_sw_chan(tx->chan);
	dma_cookie_t cookie;

	spin_lock_bh(&sc->lock);
	cookie = sc->chan.cookie + 1;
	if (cookie < DMA_MIN_COOKIE)
		cookie = DMA_MIN_COOKIE;
	sc->chan.cookie = cookie;
	tx->cookie = cookie;
	list_add_tail(&desc->link, &sc->submitted);
	spin_unlock_bh(&sc->lock);
	return cookie;
}

static struct dma_async_tx_descriptor *prep_memcpy(struct dma_chan *chan, dma_addr_t dst,
						   dma_addr_t src, size_t len, unsigned long flags)
{
	struct sw_desc *desc = kzalloc(sizeof(*desc), GFP_NOWAIT);

	if (!desc)
		return NULL;
	dma_async_tx_descriptor_init(&desc->tx, chan);
	desc->tx.tx_submit = submit;
	desc->tx.flags = flags;
	desc->dst = dst;
	desc->src = src;
	desc->len = len;
	return &desc->tx;
}

static void issue_pending(struct dma_chan *chan)
{
	struct sw_chan *sc = to_sw_chan(chan);

	spin_lock_bh(&sc->lock);
	list_splice_tail_init(&sc->submitted, &sc->issued);
	spin_unlock_bh(&sc->lock);
	queue_work(system_unbound_wq, &sc->work);
}

static enum dma_status tx_status(struct dma_chan *chan, dma_cookie_t cookie,
				 struct dma_tx_state *state)
{
	struct sw_chan *sc = to_sw_chan(chan);
	enum dma_status status;

	spin_lock_bh(&sc->lock);
	status = dma_async_is_complete(cookie, chan->completed_cookie, chan->cookie);
	dma_set_tx_state(state, chan->completed_cookie, chan->cookie, 0);
	spin_unlock_bh(&sc->lock);
	return status;
}

static int terminate(struct dma_chan *chan)
{
	struct sw_chan *sc = to_sw_chan(chan);
	struct sw_desc *desc, *next;
	LIST_HEAD(dropped);

	spin_lock_bh(&sc->lock);
	list_splice_tail_init(&sc->issued, &dropped);
	list_splice_tail_init(&sc->submitted, &dropped);
	spin_unlock_bh(&sc->lock);
	list_for_each_entry_safe(desc, next, &dropped, link) {
		dma_descriptor_unmap(&desc->tx);
		kfree(desc);
	}
	return 0;
}

static void synchronize(struct dma_chan *chan)
{
	flush_work(&to_sw_chan(chan)->work);
}

static int alloc_chan(struct dma_chan *chan)
{
	chan->cookie = DMA_MIN_COOKIE;
	chan->completed_cookie = DMA_MIN_COOKIE;
	return 1;
}

static void free_chan(struct dma_chan *chan)
{
	terminate(chan);
	synchronize(chan);
	unmap_block(to_sw_chan(chan));
}

static int sw_probe(struct platform_device *pdev)
{
	struct sw_dma *sd = devm_kzalloc(&pdev->dev, sizeof(*sd), GFP_KERNEL);
	struct dma_device *dev;
	int i;

	if (!sd)
		return -ENOMEM;
	dev = &sd->dev;
	dev->dev = &pdev->dev;
	dma_cap_set(DMA_MEMCPY, dev->cap_mask);
	INIT_LIST_HEAD(&dev->channels);
	dev->device_alloc_chan_resources = alloc_chan;
	dev->device_free_chan_resources = free_chan;
	dev->device_prep_dma_memcpy = prep_memcpy;
	dev->device_issue_pending = issue_pending;
	dev->device_tx_status = tx_status;
	dev->device_terminate_all = terminate;
	dev->device_synchronize = synchronize;
	for (i = 0; i < CHANNELS; i++) {
		struct sw_chan *sc = &sd->chans[i];

		spin_lock_init(&sc->lock);
		INIT_LIST_HEAD(&sc->submitted);
		INIT_LIST_HEAD(&sc->issued);
		INIT_WORK(&sc->work, copy_issued);
		sc->chan.device = dev;
		list_add_tail(&sc->chan.device_node, &dev->channels);
	}
	platform_set_drvdata(pdev, sd);
	return dma_async_device_register(dev);
}

/* The module is in use while a client has a channel, so nothing is under way here but a work that finds nothing. */
static void leave(struct sw_dma *sd)
{
	int i;

	dma_async_device_unregister(&sd->dev);
	for (i = 0; i < CHANNELS; i++)
		cancel_work_sync(&sd->chans[i].work);
}

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 11, 0)
static int sw_remove(struct platform_device *pdev)
{
	leave(platform_get_drvdata(pdev));
	return 0;
}
#else
static void sw_remove(struct platform_device *pdev)
{
	leave(platform_get_drvdata(pdev));
}
#endif

static struct platform_driver sw_driver = {
	.driver.name = "sw_dma",
	.probe = sw_probe,
	.remove = sw_remove,
};

static struct platform_device *sw_device; /* under the lock of the module's parameters */

/* Descriptors that were issued while it was set are carried out once it is cleared. */
static int set_hold(const char *text, const struct kernel_param *param)
{
	struct sw_dma *sd = sw_device ? platform_get_drvdata(sw_device) : NULL;
	int i, rc = param_set_bool(text, param);

	for (i = 0; sd && i < CHANNELS; i++)
		queue_work(system_unbound_wq, &sd->chans[i].work);
	return rc;
}

static const struct kernel_param_ops hold_ops = { .set = set_hold, .get = param_get_bool };
module_param_cb(hold, &hold_ops, &hold, 0644);
__MODULE_PARM_TYPE(hold, "bool");
MODULE_PARM_DESC(hold, "carry out nothing while it is set");

static int __init sw_load(void)
{
	const struct platform_device_info info = { .name = "sw_dma", .dma_mask = DMA_BIT_MASK(64) };
	int rc = platform_driver_register(&sw_driver);
	struct platform_device *device;

	if (rc)
		return rc;
	device = platform_device_register_full(&info);
	if (IS_ERR(device)) {
		platform_driver_unregister(&sw_driver);
		return PTR_ERR(device);
	}
	kernel_param_lock(THIS_MODULE);
	sw_device = device;
	kernel_param_unlock(THIS_MODULE);
	return 0;
}
module_init(sw_load);

static void __exit sw_unload(void)
{
	struct platform_device *device = sw_device;

	kernel_param_lock(THIS_MODULE);
	sw_device = NULL;
	kernel_param_unlock(THIS_MODULE);
	platform_device_unregister(device);
	platform_driver_unregister(&sw_driver);
}
module_exit(sw_unload);

MODULE_DESCRIPTION("DMA engine in software, for tests");
MODULE_LICENSE("Dual BSD/GPL");
