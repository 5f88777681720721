// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The NTB client: probing and removal. */
#include <linux/dma-map-ops.h>
#include <linux/idr.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/slab.h>

#include "viaduct.h"

#define PIDX 0

static DEFINE_IDA(ids);

static void free_port(struct kref *ref)
{
	struct vd_port *port = container_of(ref, struct vd_port, ref);

	vd_event_fini(port);
	ida_free(&ids, port->id);
	kfree(port);
}

void vd_port_put(struct vd_port *port)
{
	kref_put(&port->ref, free_port);
}

/* Why an adapter cannot be used, or NULL. */
static const char *unfit(struct ntb_dev *ntb)
{
	if (ntb_peer_port_count(ntb) != 1)
		return "it has more than one peer";
	if (ntb_mw_count(ntb, PIDX) < 1 || ntb_peer_mw_count(ntb) < 1)
		return "it has no memory window";
	if (!ntb->ops->mw_set_trans && !ntb->ops->peer_mw_set_trans)
		return "its memory windows cannot be set";
	if (!ntb_db_valid_mask(ntb))
		return "it has no doorbell";
	/* Inbound slices are mapped cached. */
	if (!dev_is_dma_coherent(vd_window_device(ntb)))
		return "its stores are not coherent with the caches of the processor";
	if (ntb_msg_count(ntb) >= VD_MSG_REGS)
		return NULL;
	if (!ntb->ops->mw_set_trans)
		return "the sender sets its windows, and it has fewer than 4 message registers";
	if (ntb_spad_count(ntb) < VD_MSG_SPADS)
		return "it has fewer than 8 scratchpads, and fewer than 4 message registers";
	return NULL;
}

/* In interrupts, under a spinlock of the NTB core. */
static void link_event(void *data)
{
	vd_link_event(data);
}

static void db_event(void *data, int vector)
{
	vd_limit_doorbell(data);
}

static void msg_event(void *data)
{
	struct vd_port *port = data;

	if (port->msg.used)
		vd_msg_event(port);
}

static const struct ntb_ctx_ops ctx_ops = {
	.link_event = link_event,
	.db_event = db_event,
	.msg_event = msg_event,
};

static struct vd_port *new_port(struct ntb_dev *ntb)
{
	struct vd_port *port = kzalloc(sizeof(*port), GFP_KERNEL);

	if (!port)
		return NULL;
	port->id = ida_alloc(&ids, GFP_KERNEL);
	if (port->id < 0 || vd_event_init(port)) {
		if (port->id >= 0)
			ida_free(&ids, port->id);
		kfree(port);
		return NULL;
	}
	kref_init(&port->ref);
	init_rwsem(&port->lock);
	mutex_init(&port->alloc_lock);
	INIT_LIST_HEAD(&port->slice_list);
	snprintf(port->name, sizeof(port->name), "viaduct%d", port->id);
	port->ntb = ntb;
	vd_link_init(port);
	vd_limit_init(port);
	vd_engine_init(port);
	port->db_bits = ntb_db_valid_mask(ntb);
	port->read_back = vd_quirk_read_back(ntb);
	/* Numbers of an earlier boot hardly ever come again. */
	port->generation = get_random_u32();
	return port;
}

static void detach(struct vd_port *port, struct ntb_dev *ntb)
{
	bool left = vd_msg_leave(port);

	ntb_clear_ctx(ntb);
	cancel_delayed_work_sync(&port->storm.work);
	ntb_db_set_mask(ntb, port->db_bits);
	cancel_delayed_work_sync(&port->link_work);
	cancel_delayed_work_sync(&port->msg.work);
	down_write(&port->lock);
	vd_window_close(port);
	vd_slice_disown(port);
	port->ntb = NULL;
	port->up = false;
	up_write(&port->lock);
	/* No call enables the link or queues a work any more, and no work another one. */
	ntb_link_disable(ntb);
	cancel_delayed_work_sync(&port->link_work);
	cancel_delayed_work_sync(&port->msg.work);
	if (port->msg.used)
		ntb_msg_set_mask(ntb, ntb_msg_inbits(ntb));
	vd_engine_fini(port);
	vd_slice_zap(port);
	vd_event_link(port, VIADUCT_LINK_GONE, port->generation);
	if (!left)
		dev_warn(&ntb->dev,
			 "the peer does not answer: memory that it may store into is kept\n");
	vd_window_fini(port, ntb, left);
}

static int probe(struct ntb_client *client, struct ntb_dev *ntb)
{
	const char *reason = unfit(ntb);
	struct vd_port *port;
	int rc;

	if (reason) {
		dev_info(&ntb->dev, "viaduct does not use this adapter: %s\n", reason);
		return -ENODEV;
	}
	port = new_port(ntb);
	if (!port)
		return -ENOMEM;
	rc = vd_msg_init(port);
	if (rc)
		goto err_port;
	rc = vd_window_init(port);
	if (rc) {
		dev_info(&ntb->dev, "viaduct does not use this adapter: %s: error %d\n",
			 rc == -ENXIO ? "its memory windows have no room"
				      : "its memory windows cannot be mapped",
			 rc);
		goto err_window;
	}
	rc = ntb_set_ctx(ntb, port, &ctx_ops);
	if (rc)
		goto err_window;
	ntb_db_clear(ntb, port->db_bits);
	ntb_db_clear_mask(ntb, port->db_bits);
	port->misc.minor = MISC_DYNAMIC_MINOR;
	port->misc.name = port->name;
	port->misc.fops = &vd_port_fops;
	port->misc.parent = &ntb->dev;
	port->misc.mode = 0600;
	rc = misc_register(&port->misc);
	if (rc) {
		detach(port, ntb);
		goto err_port;
	}
	dev_info(&ntb->dev, "%s: %u windows, doorbells %#llx\n", port->name, port->windows,
		 port->db_bits);
	return 0;

err_window:
	vd_window_fini(port, ntb, true);
err_port:
	vd_port_put(port);
	return rc;
}

/* ctx of the NTB device is cleared in detach(), so the port is found first. */
static void remove(struct ntb_client *client, struct ntb_dev *ntb)
{
	struct vd_port *port = ntb->ctx;

	misc_deregister(&port->misc);
	detach(port, ntb);
	vd_port_put(port);
}

static struct ntb_client viaduct_client = {
	.ops = {
		.probe = probe,
		.remove = remove,
	},
};

static int __init viaduct_init(void)
{
	int rc = vd_copy_init();

	if (rc)
		return rc;
	rc = vd_inode_init();
	if (rc)
		goto err_copy;
	rc = ntb_register_client(&viaduct_client);
	if (rc)
		goto err_slice;
	return 0;

err_slice:
	vd_inode_fini();
err_copy:
	vd_copy_fini();
	return rc;
}
module_init(viaduct_init);

static void __exit viaduct_exit(void)
{
	ntb_unregister_client(&viaduct_client);
	vd_inode_fini();
	vd_copy_fini();
}
module_exit(viaduct_exit);

MODULE_DESCRIPTION("NTB ports for programs");
MODULE_LICENSE("Dual BSD/GPL");
