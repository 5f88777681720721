// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Doorbells and link events: counters in the status page, eventfds and interrupt objects. */
#include <linux/eventfd.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/version.h>

#include "viaduct.h"

#define AGENT_BINDINGS 64 /* of a port descriptor */
#define CLIENT_BINDINGS 4 /* an interrupt walks those of all clients */

struct vd_binding {
	struct list_head node;
	struct vd_file *owner;
	struct vd_irq *irq; /* or: */
	struct eventfd_ctx *ctx;
	u64 bits;
	bool link;
};

static void signal_one(struct vd_binding *binding, u64 bits)
{
	if (binding->irq) {
		vd_irq_interrupt(binding->irq, bits);
		return;
	}
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 8, 0)
	eventfd_signal(binding->ctx);
#else
	eventfd_signal(binding->ctx, 1);
#endif
}

int vd_event_init(struct vd_port *port)
{
	spin_lock_init(&port->event_lock);
	INIT_LIST_HEAD(&port->bindings);
	init_waitqueue_head(&port->waiters);
	port->status = (struct viaduct_status *)get_zeroed_page(GFP_KERNEL);
	if (!port->status)
		return -ENOMEM;
	port->status->abi = VIADUCT_ABI;
	return 0;
}

void vd_event_fini(struct vd_port *port)
{
	free_page((unsigned long)port->status);
}

/* In interrupts, too.  Programs read the counters without a lock, so interrupts is written last. */
void vd_event_doorbell(struct vd_port *port, u64 bits)
{
	struct vd_binding *binding;
	unsigned long flags;
	unsigned int i;

	spin_lock_irqsave(&port->event_lock, flags);
	for (i = 0; i < VIADUCT_DB_BITS; i++) {
		if (bits & BIT_ULL(i))
			WRITE_ONCE(port->status->db_count[i], port->status->db_count[i] + 1);
	}
	smp_store_release(&port->status->interrupts, port->status->interrupts + 1);
	list_for_each_entry(binding, &port->bindings, node) {
		if (binding->bits & bits)
			signal_one(binding, binding->bits & bits);
	}
	spin_unlock_irqrestore(&port->event_lock, flags);
}

void vd_event_link(struct vd_port *port, u32 link, u32 generation)
{
	struct vd_binding *binding;
	unsigned long flags;

	spin_lock_irqsave(&port->event_lock, flags);
	WRITE_ONCE(port->status->link, VIADUCT_LINK_DOWN);
	smp_wmb(); /* a reader that finds the link up has the generation of that life */
	WRITE_ONCE(port->status->generation, generation);
	smp_store_release(&port->status->link, link);
	smp_store_release(&port->status->interrupts, port->status->interrupts + 1);
	list_for_each_entry(binding, &port->bindings, node) {
		if (binding->link)
			signal_one(binding, ~0ULL);
	}
	spin_unlock_irqrestore(&port->event_lock, flags);
	wake_up_all(&port->waiters);
}

static void free_binding(struct vd_binding *binding)
{
	if (binding->irq)
		vd_irq_put(binding->irq);
	else if (!IS_ERR_OR_NULL(binding->ctx))
		eventfd_ctx_put(binding->ctx);
	kfree(binding);
}

int vd_event_bind(struct vd_file *vf, const struct viaduct_bind *bind)
{
	unsigned int most = vf->agent ? AGENT_BINDINGS : CLIENT_BINDINGS;
	struct vd_port *port = vf->port;
	struct vd_binding *binding;
	int rc = 0;

	if (bind->flags & ~VIADUCT_BIND_LINK || bind->db_bits & ~port->db_bits ||
	    (!bind->flags && !bind->db_bits))
		return -EINVAL;
	binding = kzalloc(sizeof(*binding), GFP_KERNEL_ACCOUNT);
	if (!binding)
		return -ENOMEM;
	binding->irq = vd_irq_get(bind->eventfd);
	if (!binding->irq)
		binding->ctx = eventfd_ctx_fdget(bind->eventfd);
	if (IS_ERR(binding->ctx)) {
		rc = PTR_ERR(binding->ctx);
		free_binding(binding);
		return rc;
	}
	binding->owner = vf;
	binding->bits = bind->db_bits;
	binding->link = bind->flags & VIADUCT_BIND_LINK;
	spin_lock_irq(&port->event_lock);
	if (READ_ONCE(vf->ended)) {
		rc = -EPERM; /* those that it had are gone, or go when the lock is free */
	} else if (vf->bindings < most) {
		vf->bindings++;
		list_add_tail(&binding->node, &port->bindings);
	} else {
		rc = -ENOSPC;
	}
	spin_unlock_irq(&port->event_lock);
	if (rc)
		free_binding(binding);
	return rc;
}

void vd_event_unbind_all(struct vd_file *vf)
{
	struct vd_binding *binding, *next;
	LIST_HEAD(gone);

	spin_lock_irq(&vf->port->event_lock);
	list_for_each_entry_safe(binding, next, &vf->port->bindings, node) {
		if (binding->owner == vf)
			list_move(&binding->node, &gone);
	}
	spin_unlock_irq(&vf->port->event_lock);
	list_for_each_entry_safe(binding, next, &gone, node)
		free_binding(binding);
}

/* The page is counted, so it outlives the port while it is mapped. */
int vd_event_mmap(struct vd_port *port, struct vm_area_struct *vma)
{
	if (vma->vm_pgoff || vma_pages(vma) != 1)
		return -EINVAL;
	if (vma->vm_flags & (VM_WRITE | VM_EXEC))
		return -EACCES;
	vd_vma_flags(vma, VM_DONTEXPAND | VM_DONTDUMP, VM_MAYWRITE | VM_MAYEXEC);
	return vm_insert_page(vma, vma->vm_start, virt_to_page(port->status));
}
