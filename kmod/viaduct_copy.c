// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Copies from a program's memory into an outbound slice, by a DMA engine or the processor.
 *
 * A work copies what the holder of a slice has asked for, in order: one copy at a run, so that slices take turns.  It
 * goes in pieces, each under port->lock for reading while the slice is alive: a thread that takes the link down or the
 * adapter away waits for the piece, and no later one reaches the peer.  Pieces that an engine does not copy, the
 * processor does.
 */
#include <linux/highmem.h>
#include <linux/io.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "viaduct.h"

#define REGIONS 8
#define QUEUE 64
#define WORKERS 4

static unsigned long max_pin_bytes = 1UL << 30;
module_param(max_pin_bytes, ulong, 0644);
MODULE_PARM_DESC(max_pin_bytes, "size of a region of memory that is registered");

struct vd_region {
	struct vd_pinned pinned;
	u64 begin; /* in the first page */
	u64 len;
};

struct vd_copy {
	struct vd_region *region;
	u64 source;
	u64 target;
	u64 len;
};

struct vd_copier {
	struct vd_port *port;
	phys_addr_t phys; /* of the slice in the adapter's window */
	u64 bytes;
	u32 generation;
	bool closing;
	const bool *ended; /* the slice has; under port->lock */
	void __iomem *io;  /* for the processor; of the work */

	struct mutex lock; /* regions and the end of the queue */
	struct vd_region region[REGIONS];
	struct vd_copy queue[QUEUE];
	u64 asked;

	spinlock_t done_lock;
	u64 done; /* the work alone changes it */
	u64 seen;
	u64 failed;
	u64 by_engine;
	int error;

	struct work_struct work;
};

static struct workqueue_struct *workers;

int vd_copy_init(void)
{
	workers = alloc_workqueue("viaduct-copy", WQ_UNBOUND, WORKERS);
	return workers ? 0 : -ENOMEM;
}

void vd_copy_fini(void)
{
	destroy_workqueue(workers);
}

/* ---- the work -------------------------------------------------------------------------------- */

static int by_processor(struct vd_copier *c, const struct vd_piece *piece)
{
	u64 at = 0;

	if (!c->io)
		c->io = ioremap_wc(c->phys, c->bytes);
	if (!c->io)
		return -ENOMEM;
	while (at < piece->len) {
		u64 source = piece->source + at;
		size_t len = min_t(u64, piece->len - at, PAGE_SIZE - offset_in_page(source));
		void *from = kmap_local_page(piece->pages[source >> PAGE_SHIFT]);

		memcpy_toio(c->io + (piece->target - c->phys) + at, from + offset_in_page(source),
			    len);
		kunmap_local(from);
		at += len;
	}
	wmb(); /* write-combining buffers are empty before the copy is told to be done */
	return 0;
}

static bool alive(const struct vd_copier *c)
{
	const struct vd_port *port = c->port;

	return port->ntb && port->up && port->generation == c->generation && !*c->ended &&
	       !READ_ONCE(c->closing);
}

static int copy_one(struct vd_copier *c, const struct vd_copy *copy, u64 *by_engine)
{
	struct vd_piece piece = { .pages = copy->region->pinned.pages };
	u64 at;
	int rc = 0;

	for (at = 0; at < copy->len && !rc; at += piece.len) {
		piece.source = copy->region->begin + copy->source + at;
		piece.target = c->phys + copy->target + at;
		piece.len = min_t(u64, copy->len - at, VD_PIECE_BYTES);
		down_read(&c->port->lock);
		if (!alive(c))
			rc = -ENOLINK;
		else if (!vd_engine_copy(c->port, &piece, copy->len))
			*by_engine += piece.len;
		else
			rc = by_processor(c, &piece);
		up_read(&c->port->lock);
		cond_resched();
	}
	return rc;
}

static void copy_work(struct work_struct *work)
{
	struct vd_copier *c = container_of(work, struct vd_copier, work);
	u64 by_engine = 0;
	bool more;
	int rc;

	if (c->done == smp_load_acquire(&c->asked)) /* pairs with do_copy() */
		return;
	rc = copy_one(c, &c->queue[c->done % QUEUE], &by_engine);
	spin_lock(&c->done_lock);
	c->done++;
	c->by_engine += by_engine;
	if (rc) {
		c->failed++;
		c->error = -rc;
	}
	more = c->done != smp_load_acquire(&c->asked);
	spin_unlock(&c->done_lock);
	wake_up_all(&c->port->waiters);
	if (more)
		queue_work(workers, &c->work);
}

/* ---- regions --------------------------------------------------------------------------------- */

static int pin(struct vd_region *region, const struct viaduct_pin *request)
{
	region->begin = offset_in_page(request->address);
	region->len = request->len;
	return vd_pin(&region->pinned, request->address & PAGE_MASK,
		      PAGE_ALIGN(region->begin + region->len) >> PAGE_SHIFT);
}

/* Nothing was written there. */
static void unpin(struct vd_region *region)
{
	vd_unpin(&region->pinned, false);
}

static int keep_region(struct vd_copier *c, const struct vd_region *region)
{
	int i;

	mutex_lock(&c->lock);
	for (i = 0; i < REGIONS && c->region[i].pinned.pages; i++)
		;
	if (i < REGIONS)
		c->region[i] = *region;
	mutex_unlock(&c->lock);
	return i < REGIONS ? i : -ENOSPC;
}

static int drop_region(struct vd_copier *c, u32 index)
{
	struct vd_region region = {};
	int rc = 0;

	if (index >= REGIONS)
		return -EINVAL;
	mutex_lock(&c->lock);
	spin_lock(&c->done_lock);
	if (!c->region[index].pinned.pages)
		rc = -EINVAL;
	else if (c->done != c->asked)
		rc = -EBUSY;
	else
		swap(region, c->region[index]);
	spin_unlock(&c->done_lock);
	mutex_unlock(&c->lock);
	if (!rc)
		unpin(&region);
	return rc;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static int do_pin(struct vd_copier *c, void __user *arg)
{
	struct viaduct_pin request;
	struct vd_region region = {};
	int rc;

	if (copy_from_user(&request, arg, sizeof(request)))
		return -EFAULT;
	if (request.region || request.reserved || !request.len ||
	    request.len > READ_ONCE(max_pin_bytes) || request.address > ULONG_MAX - request.len)
		return -EINVAL;
	rc = pin(&region, &request);
	if (rc)
		return rc;
	rc = keep_region(c, &region);
	if (rc < 0) {
		unpin(&region);
		return rc;
	}
	request.region = rc;
	if (!copy_to_user(arg, &request, sizeof(request)))
		return 0;
	drop_region(c, request.region);
	return -EFAULT;
}

static int do_unpin(struct vd_copier *c, void __user *arg)
{
	struct viaduct_unpin request;

	if (copy_from_user(&request, arg, sizeof(request)))
		return -EFAULT;
	return request.reserved ? -EINVAL : drop_region(c, request.region);
}

static int enqueue(struct vd_copier *c, struct viaduct_copy *request)
{
	struct vd_region *region = &c->region[request->region];
	u64 done;

	if (!region->pinned.pages)
		return -EINVAL;
	if (request->source > region->len || request->len > region->len - request->source ||
	    request->target > c->bytes || request->len > c->bytes - request->target)
		return -ERANGE;
	spin_lock(&c->done_lock);
	done = c->done;
	spin_unlock(&c->done_lock);
	if (c->asked - done >= QUEUE)
		return -EAGAIN;
	c->queue[c->asked % QUEUE] = (struct vd_copy){
		.region = region,
		.source = request->source,
		.target = request->target,
		.len = request->len,
	};
	smp_store_release(&c->asked, c->asked + 1); /* pairs with copy_work() */
	request->ticket = c->asked;
	queue_work(workers, &c->work);
	return 0;
}

static int do_copy(struct vd_copier *c, void __user *arg)
{
	struct viaduct_copy request;
	int rc;

	if (copy_from_user(&request, arg, sizeof(request)))
		return -EFAULT;
	if (request.flags || request.ticket || !request.len || request.region >= REGIONS)
		return -EINVAL;
	mutex_lock(&c->lock);
	rc = enqueue(c, &request);
	mutex_unlock(&c->lock);
	if (!rc && copy_to_user(arg, &request, sizeof(request)))
		rc = -EFAULT;
	return rc;
}

static int get_copied(struct vd_copier *c, void __user *arg)
{
	struct viaduct_copied answer = {};

	spin_lock(&c->done_lock);
	answer.done = c->done;
	answer.failed = c->failed;
	answer.by_engine = c->by_engine;
	answer.error = c->error;
	c->seen = c->done;
	spin_unlock(&c->done_lock);
	return copy_to_user(arg, &answer, sizeof(answer)) ? -EFAULT : 0;
}

long vd_copy_ioctl(struct vd_copier *c, unsigned int cmd, void __user *arg)
{
	switch (cmd) {
	case VIADUCT_PIN:
		return do_pin(c, arg);
	case VIADUCT_UNPIN:
		return do_unpin(c, arg);
	case VIADUCT_COPY:
		return do_copy(c, arg);
	case VIADUCT_COPIED:
		return get_copied(c, arg);
	default:
		return -ENOTTY;
	}
}

/* Are there completed copies of which the holder has not been told? */
bool vd_copy_pending(struct vd_copier *c)
{
	bool pending;

	spin_lock(&c->done_lock);
	pending = c->done != c->seen;
	spin_unlock(&c->done_lock);
	return pending;
}

struct vd_copier *vd_copy_create(struct vd_port *port, phys_addr_t phys, u64 bytes, u32 generation,
				 const bool *ended)
{
	struct vd_copier *c = kzalloc(sizeof(*c), GFP_KERNEL_ACCOUNT);

	if (!c)
		return NULL;
	c->port = port;
	c->phys = phys;
	c->bytes = bytes;
	c->generation = generation;
	c->ended = ended;
	mutex_init(&c->lock);
	spin_lock_init(&c->done_lock);
	INIT_WORK(&c->work, copy_work);
	return c;
}

/* Waits for the piece that is being copied. */
void vd_copy_destroy(struct vd_copier *c)
{
	int i;

	if (!c)
		return;
	WRITE_ONCE(c->closing, true);
	cancel_work_sync(&c->work);
	if (c->io)
		iounmap(c->io);
	for (i = 0; i < REGIONS; i++)
		unpin(&c->region[i]);
	kfree(c);
}
