// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Slices: page ranges of windows, each a descriptor of its own.
 *
 * Pages are inserted by faults only.  A fault looks at the state of the port and of the slice under port->lock, and
 * a thread that changes that state takes the lock for writing and zaps the mappings afterwards, so no mapping outlives
 * the memory that it shows.  A slice that has ended shows a page of its own in each place: stores go nowhere, and no
 * program gets a signal.
 */
#include <linux/anon_inodes.h>
#include <linux/bitmap.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/slab.h>

#include "viaduct.h"

static unsigned int max_slices = 1024;
module_param(max_slices, uint, 0644);
MODULE_PARM_DESC(max_slices, "slices that the descriptors of a port may have at a time");

struct vd_slice {
	struct vd_port *port;
	struct list_head node; /* of port->slice_list */
	struct inode *inode;   /* its mapping has those of the slice */
	bool outbound;
	bool adopted;	/* inbound: its places led to memory of a program, or still do */
	bool ended;	/* by VIADUCT_END */
	bool returned;	/* it takes nothing of the port any more; under alloc_lock */
	u32 generation; /* outbound: of the link's life that it belongs to */
	unsigned int widx;
	unsigned long first; /* page of the window */
	unsigned long pages;
	struct vd_pinned pinned; /* that memory, unless VIADUCT_END was called; */
	bool lost;		 /* the places lead there perhaps for ever */
	struct page *dead;	 /* shown when the slice has ended */
	struct vd_user *user;
	struct vd_copier *copier; /* when the holder has asked for it first */
};

static void zap(struct vd_slice *slice)
{
	unmap_mapping_range(slice->inode->i_mapping, 0, 0, 1);
}

void vd_slice_zap(struct vd_port *port)
{
	struct vd_slice *slice;

	mutex_lock(&port->alloc_lock);
	list_for_each_entry(slice, &port->slice_list, node)
		zap(slice);
	mutex_unlock(&port->alloc_lock);
}

/* Under port->lock and port->alloc_lock. */
static void leave_places(struct vd_slice *slice)
{
	if (slice->pinned.pages && !slice->lost)
		slice->lost = !vd_place_back(&slice->port->window[slice->widx], slice->first,
					     slice->pages);
}

/* Pages to which the adapter may still lead stay pinned for ever. */
static void unpin(struct vd_slice *slice)
{
	if (!slice->lost)
		vd_unpin(&slice->pinned, true);
}

/*
 * No place leads to memory of a program any more: the adapter goes away.  The DMA API may flush late what it frees
 * then, or the peer does not let go of it, and the pages may be unpinned before.  Under port->lock for writing.
 */
void vd_slice_disown(struct vd_port *port)
{
	struct vd_slice *slice;

	mutex_lock(&port->alloc_lock);
	list_for_each_entry(slice, &port->slice_list, node)
		leave_places(slice);
	mutex_unlock(&port->alloc_lock);
}

/* Under port->lock. */
static unsigned long slice_pfn(const struct vd_slice *slice, unsigned long page)
{
	const struct vd_port *port = slice->port;
	const struct vd_window *w = &port->window[slice->widx];

	if (slice->outbound) {
		if (port->ntb && port->up && port->generation == slice->generation && !slice->ended)
			return PHYS_PFN(w->out_phys) + slice->first + page;
	} else if (port->ntb && !slice->ended) {
		return vd_place_pfn(w, slice->first + page);
	}
	return page_to_pfn(slice->dead);
}

static vm_fault_t slice_fault(struct vm_fault *vmf)
{
	struct vd_slice *slice = vmf->vma->vm_private_data;
	vm_fault_t ret;

	if (vmf->pgoff >= slice->pages)
		return VM_FAULT_SIGBUS;
	down_read(&slice->port->lock);
	ret = vmf_insert_pfn(vmf->vma, vmf->address, slice_pfn(slice, vmf->pgoff));
	up_read(&slice->port->lock);
	return ret;
}

static const struct vm_operations_struct slice_vm_ops = {
	.fault = slice_fault,
};

static int slice_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct vd_slice *slice = file->private_data;
	unsigned long set = VM_IO | VM_PFNMAP | VM_DONTEXPAND | VM_DONTDUMP;

	if (slice->adopted) /* its owner has it */
		return -EACCES;
	/* The right to store into the peer's memory is not for children; memory of this host is. */
	if (slice->outbound)
		set |= VM_DONTCOPY;
	if (!(vma->vm_flags & VM_SHARED) || vma->vm_pgoff >= slice->pages ||
	    vma_pages(vma) > slice->pages - vma->vm_pgoff)
		return -EINVAL;
	if (vma->vm_flags & VM_EXEC)
		return -EACCES;
	vd_vma_flags(vma, set, VM_MAYEXEC);
	if (slice->outbound)
		vma->vm_page_prot = pgprot_writecombine(vma->vm_page_prot);
	vma->vm_private_data = slice;
	vma->vm_ops = &slice_vm_ops;
	return 0;
}

static u64 inbound_bytes(const struct vd_slice *slice)
{
	return slice->outbound ? 0 : (u64)slice->pages << PAGE_SHIFT;
}

/* Its pages are free and it is not counted any more.  No mapping shows its pages, and none will. */
static void return_pages(struct vd_slice *slice)
{
	struct vd_port *port = slice->port;
	bool first;

	down_read(&port->lock);
	mutex_lock(&port->alloc_lock);
	first = !slice->returned;
	slice->returned = true;
	if (first && !slice->outbound && port->ntb) {
		leave_places(slice);
		if (!slice->lost)
			bitmap_clear(port->window[slice->widx].used, slice->first, slice->pages);
	}
	if (first) {
		list_del(&slice->node);
		port->slices--;
	}
	mutex_unlock(&port->alloc_lock);
	up_read(&port->lock);
	if (first) {
		unpin(slice);
		vd_user_uncharge_slice(slice->user, inbound_bytes(slice));
	}
}

/* After the last descriptor and the last mapping. */
static void free_slice(struct vd_slice *slice)
{
	struct vd_port *port = slice->port;

	vd_copy_destroy(slice->copier);
	return_pages(slice);
	iput(slice->inode);
	__free_page(slice->dead);
	kfree(slice);
	vd_port_put(port);
}

static int slice_release(struct inode *inode, struct file *file)
{
	free_slice(file->private_data);
	return 0;
}

static int make_copier(struct vd_slice *slice)
{
	struct vd_port *port = slice->port;
	struct vd_copier *copier;
	phys_addr_t phys = 0;
	bool ended;

	if (smp_load_acquire(&slice->copier))
		return 0;
	down_read(&port->lock);
	if (port->ntb)
		phys = port->window[slice->widx].out_phys + ((u64)slice->first << PAGE_SHIFT);
	ended = slice->ended;
	up_read(&port->lock);
	if (!phys)
		return -ENODEV;
	if (ended) /* it gets no more memory */
		return -ENOLINK;
	copier = vd_copy_create(port, phys, (u64)slice->pages << PAGE_SHIFT, slice->generation,
				&slice->ended);
	if (!copier)
		return -ENOMEM;
	if (cmpxchg(&slice->copier, NULL, copier)) /* another thread was faster */
		vd_copy_destroy(copier);
	return 0;
}

static long slice_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct vd_slice *slice = file->private_data;
	int rc;

	if (!slice->outbound || _IOC_TYPE(cmd) != VIADUCT_IOC)
		return -ENOTTY;
	rc = make_copier(slice);
	return rc ?: vd_copy_ioctl(slice->copier, cmd, (void __user *)arg);
}

static __poll_t slice_poll(struct file *file, poll_table *wait)
{
	struct vd_slice *slice = file->private_data;
	struct vd_copier *copier;

	poll_wait(file, &slice->port->waiters, wait);
	copier = smp_load_acquire(&slice->copier);
	return copier && vd_copy_pending(copier) ? EPOLLIN : 0;
}

static const struct file_operations slice_fops = {
	.owner = THIS_MODULE,
	.mmap = slice_mmap,
	.poll = slice_poll,
	.unlocked_ioctl = slice_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.release = slice_release,
	.llseek = noop_llseek,
};

/* A free range of pages in the first window that has one. */
static int take_pages(struct vd_port *port, struct vd_slice *slice)
{
	unsigned long first;
	unsigned int i;
	int rc = 0;

	for (i = 0; i < port->windows; i++) {
		struct vd_window *w = &port->window[i];

		first = vd_place_find(w, slice->pages, slice->pinned.pages);
		if (first >= w->bytes >> PAGE_SHIFT)
			continue;
		if (slice->pinned.pages)
			rc = vd_place_lead(w, first, &slice->pinned, &slice->lost);
		if (!rc || slice->lost)
			bitmap_set(w->used, first, slice->pages);
		if (rc)
			return rc;
		slice->widx = i;
		slice->first = first;
		return 0;
	}
	return -ENOSPC;
}

static int open_pages(struct vd_port *port, struct vd_slice *slice, const struct viaduct_slice *r)
{
	u64 all;

	if (r->window >= port->windows || !PAGE_ALIGNED(r->offset))
		return -EINVAL;
	all = (port->up ? port->window[r->window].out_opens : port->window[r->window].out_bytes) >>
	      PAGE_SHIFT;
	if (r->offset >> PAGE_SHIFT >= all || slice->pages > all - (r->offset >> PAGE_SHIFT))
		return -ERANGE;
	if (!port->up)
		return -ENOTCONN;
	slice->widx = r->window;
	slice->first = r->offset >> PAGE_SHIFT;
	slice->generation = port->generation;
	WRITE_ONCE(port->window[r->window].stored, true); /* before anybody can store there */
	return 0;
}

static int place(struct vd_slice *slice, const struct viaduct_slice *request)
{
	struct vd_port *port = slice->port;
	int rc;

	down_read(&port->lock);
	mutex_lock(&port->alloc_lock);
	if (!port->ntb)
		rc = -ENODEV;
	else if (port->slices >= READ_ONCE(max_slices))
		rc = -ENOBUFS;
	else if (slice->outbound)
		rc = open_pages(port, slice, request);
	else
		rc = take_pages(port, slice);
	if (!rc) {
		list_add(&slice->node, &port->slice_list);
		port->slices++;
	}
	mutex_unlock(&port->alloc_lock);
	up_read(&port->lock);
	return rc;
}

/* Pages of the window that nobody else has, before anybody has the slice.  Nobody waits for all of it. */
static void clean(struct vd_slice *slice)
{
	struct vd_port *port = slice->port;
	unsigned long i;

	for (i = 0; i < slice->pages; i++) {
		down_read(&port->lock);
		if (port->ntb)
			clear_page(port->window[slice->widx].base +
				   ((slice->first + i) << PAGE_SHIFT));
		up_read(&port->lock);
		cond_resched();
	}
}

/* address: of the memory of the caller that it leads to; 0: it takes pages of the window. */
static struct vd_slice *new_slice(struct vd_file *vf, const struct viaduct_slice *request,
				  unsigned long address)
{
	struct vd_slice *slice = kzalloc(sizeof(*slice), GFP_KERNEL_ACCOUNT);
	int rc = -ENOMEM;

	if (!slice)
		return ERR_PTR(rc);
	slice->port = vf->port;
	slice->user = vf->user;
	slice->outbound = request->direction == VIADUCT_OUTBOUND;
	slice->pages = PAGE_ALIGN(request->len) >> PAGE_SHIFT;
	slice->dead = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);
	if (!slice->dead)
		goto err_slice;
	slice->inode = vd_inode_new();
	if (IS_ERR(slice->inode)) {
		rc = PTR_ERR(slice->inode);
		goto err_page;
	}
	rc = vd_user_charge_slice(slice->user, inbound_bytes(slice));
	if (rc)
		goto err_inode;
	slice->adopted = address != 0;
	rc = address ? vd_pin(&slice->pinned, address, slice->pages) : 0;
	if (rc)
		goto err_charge;
	rc = place(slice, request);
	if (rc)
		goto err_pin;
	if (!slice->outbound && !address)
		clean(slice);
	kref_get(&slice->port->ref);
	return slice;

err_pin:
	unpin(slice);
err_charge:
	vd_user_uncharge_slice(slice->user, inbound_bytes(slice));
err_inode:
	iput(slice->inode);
err_page:
	__free_page(slice->dead);
err_slice:
	kfree(slice);
	return ERR_PTR(rc);
}

static int make_file(struct vd_slice *slice, struct file **file)
{
	if (IS_ERR(slice))
		return PTR_ERR(slice);
	*file = anon_inode_getfile("[viaduct-slice]", &slice_fops, slice, O_RDWR);
	if (IS_ERR(*file)) {
		free_slice(slice);
		return PTR_ERR(*file);
	}
	(*file)->f_mapping = slice->inode->i_mapping;
	return 0;
}

int vd_slice_make(struct vd_file *vf, struct viaduct_slice *request, struct file **file)
{
	struct vd_slice *slice;
	int rc;

	if (request->direction > VIADUCT_OUTBOUND || request->reserved || request->fd ||
	    !request->len || request->len > SSIZE_MAX - PAGE_SIZE ||
	    (request->direction == VIADUCT_INBOUND && (request->window || request->offset)))
		return -EINVAL;
	slice = new_slice(vf, request, 0);
	rc = make_file(slice, file);
	if (rc)
		return rc;
	request->window = slice->widx;
	request->offset = (u64)slice->first << PAGE_SHIFT;
	request->len = (u64)slice->pages << PAGE_SHIFT;
	return 0;
}

int vd_slice_adopt(struct vd_file *vf, struct viaduct_adopt *request, struct file **file)
{
	struct viaduct_slice inbound = { .direction = VIADUCT_INBOUND, .len = request->len };
	struct vd_slice *slice;
	int rc;

	if (request->offset || request->window || request->fd || !request->address ||
	    !request->len || !PAGE_ALIGNED(request->address) || !PAGE_ALIGNED(request->len) ||
	    request->address > ULONG_MAX - request->len)
		return -EINVAL;
	rc = vd_window_adopts(vf->port, request->len);
	if (rc)
		return rc;
	slice = new_slice(vf, &inbound, request->address);
	rc = make_file(slice, file);
	if (rc)
		return rc;
	request->window = slice->widx;
	request->offset = (u64)slice->first << PAGE_SHIFT;
	return 0;
}

/* Where a slice of this port is. */
int vd_slice_info(struct vd_port *port, struct file *file, struct viaduct_slice *answer)
{
	const struct vd_slice *slice = file->private_data;

	if (file->f_op != &slice_fops || slice->port != port)
		return -EINVAL;
	*answer = (struct viaduct_slice){
		.direction = slice->outbound ? VIADUCT_OUTBOUND : VIADUCT_INBOUND,
		.window = slice->widx,
		.offset = (u64)slice->first << PAGE_SHIFT,
		.len = (u64)slice->pages << PAGE_SHIFT,
	};
	return 0;
}

/*
 * The peer may still store into the places, so they stay taken, but it reaches no memory of a program there, unless
 * this fails: then that stays pinned.
 */
static int end_adopted(struct vd_slice *slice)
{
	struct vd_port *port = slice->port;
	struct vd_pinned pinned = { 0 };
	bool lost;

	down_read(&port->lock);
	mutex_lock(&port->alloc_lock);
	if (port->ntb)
		leave_places(slice);
	lost = slice->lost;
	if (!lost)
		swap(pinned, slice->pinned);
	mutex_unlock(&port->alloc_lock);
	up_read(&port->lock);
	vd_unpin(&pinned, true);
	return lost ? -EIO : 0;
}

/*
 * The slice no longer shows anything to any of its holders: its pages, here or at the peer, are about to be used for
 * something else.  The caller holds the file, so it is not freed during this call; two calls at a time both zap before
 * either returns its pages.
 */
int vd_slice_end(struct vd_port *port, struct file *file)
{
	struct vd_slice *slice = file->private_data;

	if (file->f_op != &slice_fops || slice->port != port)
		return -EINVAL;
	if (slice->adopted)
		return end_adopted(slice);
	down_write(&port->lock); /* no fault and no piece of a copy is under way */
	slice->ended = true;
	up_write(&port->lock);
	zap(slice);
	return_pages(slice);
	return 0;
}
