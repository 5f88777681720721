// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The DMA engine of a port: a channel of the kernel's dmaengine, taken when the first copy that is large enough comes.
 *
 * One piece is under way at a time, under engine->lock.  An engine that fails or does not end in time leaves the piece
 * to the processor; it is given up after some failures, and tried again in the next generation of the link.
 */
#include <linux/dma-mapping.h>
#include <linux/dmaengine.h>
#include <linux/io.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/pci.h>

#include "viaduct.h"

#define FAILURES 4
#define MIN_MS 1
#define MAX_MS 60000

static unsigned long engine_bytes = 65536;
module_param(engine_bytes, ulong, 0644);
MODULE_PARM_DESC(engine_bytes, "copies of this size and more are left to a DMA engine; 0: none");

static int set_engine_ms(const char *text, const struct kernel_param *param)
{
	return param_set_uint_minmax(text, param, MIN_MS, MAX_MS);
}

static const struct kernel_param_ops engine_ms_ops = { .set = set_engine_ms,
						       .get = param_get_uint };
static unsigned int engine_ms = 1000;
module_param_cb(engine_ms, &engine_ms_ops, &engine_ms, 0644);
__MODULE_PARM_TYPE(engine_ms, "uint");
MODULE_PARM_DESC(engine_ms, "how long an engine may take for 256 KiB, 1 to 60000");

void vd_engine_init(struct vd_port *port)
{
	mutex_init(&port->engine.lock);
	init_completion(&port->engine.done);
}

static bool is_near(struct dma_chan *chan, void *port)
{
	int node = dev_to_node(&((struct vd_port *)port)->ntb->pdev->dev);
	int other = dev_to_node(chan->device->dev);

	return node == NUMA_NO_NODE || other == NUMA_NO_NODE || node == other;
}

static struct dma_chan *channel(struct vd_port *port)
{
	struct vd_engine *e = &port->engine;
	dma_cap_mask_t mask;

	if (e->chan || (e->tried && e->generation == port->generation))
		return e->chan;
	e->tried = true;
	e->generation = port->generation;
	e->failures = 0;
	dma_cap_zero(mask);
	dma_cap_set(DMA_MEMCPY, mask);
	e->chan = dma_request_channel(mask, is_near, port);
	return e->chan;
}

static void give_up(struct vd_engine *e)
{
	if (e->chan)
		dma_release_channel(e->chan);
	e->chan = NULL;
}

static void one_done(void *arg, const struct dmaengine_result *result)
{
	struct vd_engine *e = arg;

	if (result && result->result != DMA_TRANS_NOERROR)
		atomic_set(&e->bad, 1);
	if (atomic_dec_and_test(&e->left))
		complete(&e->done);
}

static int submit(struct vd_engine *e, dma_addr_t target, dma_addr_t source, size_t len)
{
	struct dma_async_tx_descriptor *tx;
	dma_cookie_t cookie;

	if (!is_dma_copy_aligned(e->chan->device, source, target, len))
		return -EINVAL;
	tx = dmaengine_prep_dma_memcpy(e->chan, target, source, len, DMA_PREP_INTERRUPT);
	if (!tx)
		return -EAGAIN;
	tx->callback_result = one_done;
	tx->callback_param = e;
	atomic_inc(&e->left);
	cookie = dmaengine_submit(tx);
	if (dma_submit_error(cookie)) {
		atomic_dec(&e->left);
		return -EIO;
	}
	return 0;
}

/* Maps and submits the pages of a piece, and returns how many were mapped. */
static int submit_all(struct vd_engine *e, const struct vd_piece *piece, dma_addr_t target)
{
	struct device *dev = e->chan->device->dev;
	u64 at = 0;
	int count = 0;

	while (at < piece->len && !atomic_read(&e->bad)) {
		u64 source = piece->source + at;
		size_t len = min_t(u64, piece->len - at, PAGE_SIZE - offset_in_page(source));
		struct vd_mapped *m = &e->mapped[count];

		m->len = len;
		m->dma = dma_map_page(dev, piece->pages[source >> PAGE_SHIFT],
				      offset_in_page(source), len, DMA_TO_DEVICE);
		if (dma_mapping_error(dev, m->dma)) {
			atomic_set(&e->bad, 1);
			break;
		}
		count++;
		if (submit(e, target + at, m->dma, len))
			atomic_set(&e->bad, 1);
		at += len;
	}
	return count;
}

/* An engine that cannot end what is under way does so when its channel is released. */
static void stop(struct vd_engine *e)
{
	if (dmaengine_terminate_sync(e->chan))
		give_up(e);
}

static int run_on(struct vd_engine *e, const struct vd_piece *piece, struct device *dev)
{
	unsigned long limit = msecs_to_jiffies(READ_ONCE(engine_ms));
	dma_addr_t target;
	int i, count;
	bool late;

	target = dma_map_resource(dev, piece->target, piece->len, DMA_FROM_DEVICE, 0);
	if (dma_mapping_error(dev, target))
		return -EIO;
	atomic_set(&e->bad, 0);
	atomic_set(&e->left, 1); /* this function */
	reinit_completion(&e->done);
	count = submit_all(e, piece, target);
	dma_async_issue_pending(e->chan);
	late = !atomic_dec_and_test(&e->left) && !wait_for_completion_timeout(&e->done, limit);
	if (late)
		stop(e);
	for (i = 0; i < count; i++)
		dma_unmap_page(dev, e->mapped[i].dma, e->mapped[i].len, DMA_TO_DEVICE);
	dma_unmap_resource(dev, target, piece->len, DMA_FROM_DEVICE, 0);
	if (late)
		return -ETIMEDOUT;
	return atomic_read(&e->bad) ? -EIO : 0;
}

static int run(struct vd_engine *e, const struct vd_piece *piece)
{
	struct device *dev =
		get_device(e->chan->device->dev); /* it may lose its channel during the copy */
	int rc = run_on(e, piece, dev);

	put_device(dev);
	return rc;
}

/* With port->lock held for reading, so that the adapter stays.  Anything but 0: the processor has to copy. */
int vd_engine_copy(struct vd_port *port, const struct vd_piece *piece, u64 all)
{
	unsigned long least = READ_ONCE(engine_bytes);
	struct vd_engine *e = &port->engine;
	int rc = -ENODEV;

	if (!least || all < least)
		return rc;
	mutex_lock(&e->lock);
	if (channel(port)) {
		rc = run(e, piece);
		e->failures = rc ? e->failures + 1 : 0;
		if (rc == -ETIMEDOUT || e->failures >= FAILURES) {
			dev_warn_ratelimited(&port->ntb->dev,
					     "the DMA engine fails: the processor copies\n");
			give_up(e);
		}
	}
	mutex_unlock(&e->lock);
	return rc;
}

/* After the removal of the adapter: nothing is under way, and nothing comes. */
void vd_engine_fini(struct vd_port *port)
{
	mutex_lock(&port->engine.lock);
	give_up(&port->engine);
	mutex_unlock(&port->engine.lock);
}
