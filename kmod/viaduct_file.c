// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Port descriptors, which open() of the device makes, and client descriptors. */
#include <linux/anon_inodes.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "viaduct.h"

#define PIDX 0
#define CLIENTS 1024 /* of a port */

static const struct file_operations client_fops;

static struct vd_file *new_file(struct vd_port *port)
{
	struct vd_file *vf = kzalloc(sizeof(*vf), GFP_KERNEL_ACCOUNT);

	if (vf) {
		kref_get(&port->ref);
		vf->port = port;
		spin_lock_init(&vf->rate_lock);
	}
	return vf;
}

static int port_open(struct inode *inode, struct file *file)
{
	/* misc_open() holds its mutex, so the device is not deregistered during this call. */
	struct vd_port *port = container_of(file->private_data, struct vd_port, misc);
	struct vd_file *vf;

	if (test_and_set_bit(0, &port->in_use))
		return -EBUSY;
	vf = new_file(port);
	if (!vf)
		goto err_use;
	vf->user = vd_user_get(file->f_cred->euid);
	if (!vf->user)
		goto err_file;
	vf->agent = true;
	vf->ring_bits = port->db_bits;
	file->private_data = vf;
	return 0;

err_file:
	kfree(vf);
	vd_port_put(port);
err_use:
	clear_bit(0, &port->in_use);
	return -ENOMEM;
}

static int set_link(struct vd_port *port, bool enable)
{
	int rc = -ENODEV;

	down_write(&port->lock);
	if (port->ntb && enable)
		rc = ntb_link_enable(port->ntb, NTB_SPEED_AUTO, NTB_WIDTH_AUTO);
	else if (port->ntb)
		rc = ntb_link_disable(port->ntb);
	port->enabled = enable && !rc;
	if (port->ntb)
		vd_link_check(port);
	up_write(&port->lock);
	/* The link is published as down before the caller goes on. */
	if (!enable)
		flush_delayed_work(&port->link_work);
	return rc;
}

static void uncount_client(struct vd_file *vf)
{
	mutex_lock(&vf->port->alloc_lock);
	vf->port->clients--;
	mutex_unlock(&vf->port->alloc_lock);
	vd_user_uncharge_client(vf->user);
}

/* The holders of an ended client can watch the link and no more.  The caller holds its file. */
static void end_client(struct vd_file *vf)
{
	bool first;

	down_write(&vf->port->lock); /* no ring of it is under way */
	first = !vf->ended;
	WRITE_ONCE(vf->ended, true);
	WRITE_ONCE(vf->ring_bits, 0);
	up_write(&vf->port->lock);
	vd_event_unbind_all(vf);
	if (first)
		uncount_client(vf);
}

static int file_release(struct inode *inode, struct file *file)
{
	struct vd_file *vf = file->private_data;
	struct vd_port *port = vf->port;

	vd_event_unbind_all(vf);
	if (vf->agent) {
		set_link(port, false);
		clear_bit(0, &port->in_use);
		vd_user_put(vf->user);
	} else if (!vf->ended) {
		uncount_client(vf);
	}
	kfree(vf);
	vd_port_put(port);
	return 0;
}

static int file_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct vd_file *vf = file->private_data;

	return vd_event_mmap(vf->port, vma);
}

static __poll_t file_poll(struct file *file, poll_table *wait)
{
	struct vd_file *vf = file->private_data;
	struct vd_port *port = vf->port;
	u32 link;

	poll_wait(file, &port->waiters, wait);
	link = smp_load_acquire(&port->status->link);
	if (link == VIADUCT_LINK_GONE)
		return EPOLLIN | EPOLLHUP;
	return (READ_ONCE(port->status->generation) << 1 | link) == READ_ONCE(vf->seen) ? 0
											: EPOLLIN;
}

static int get_info(struct vd_file *vf, void __user *arg)
{
	struct vd_port *port = vf->port;
	struct viaduct_info info = {
		.abi = VIADUCT_ABI,
		.page_size = PAGE_SIZE,
		.db_bits = port->db_bits,
	};
	unsigned int i;

	down_read(&port->lock);
	info.windows = port->windows;
	info.spads = port->ntb ? vd_msg_spad_count(port) : 0;
	for (i = 0; i < port->windows; i++) {
		info.window[i].inbound = port->window[i].bytes;
		info.window[i].outbound = port->window[i].out_opens;
	}
	up_read(&port->lock);
	/* The state that was published: when it says that the link is down, no mapping reaches the peer any more. */
	spin_lock_irq(&port->event_lock);
	info.link = port->status->link;
	info.generation = port->status->generation;
	spin_unlock_irq(&port->event_lock);
	WRITE_ONCE(vf->seen, info.generation << 1 | info.link);
	return copy_to_user(arg, &info, sizeof(info)) ? -EFAULT : 0;
}

static int get_traits(struct vd_port *port, void __user *arg)
{
	struct viaduct_traits traits = { .flags = port->read_back ? VIADUCT_READS_BACK : 0 };

	return copy_to_user(arg, &traits, sizeof(traits)) ? -EFAULT : 0;
}

static int do_bind(struct vd_file *vf, void __user *arg)
{
	struct viaduct_bind bind;

	if (copy_from_user(&bind, arg, sizeof(bind)))
		return -EFAULT;
	return vd_event_bind(vf, &bind);
}

/* Bit by bit: there are adapters that ring only the lowest one of several.  Under port->lock. */
static int ring_bits(struct vd_port *port, u64 bits)
{
	int rc = 0;

	if (port->read_back && bits)
		vd_window_read_back(port);
	for (; bits && !rc; bits &= bits - 1)
		rc = ntb_peer_db_set(port->ntb, bits & -bits);
	return rc;
}

static int do_ring(struct vd_file *vf, bool wait, void __user *arg)
{
	struct vd_port *port = vf->port;
	struct viaduct_ring ring;
	int rc = 0;

	if (copy_from_user(&ring, arg, sizeof(ring)))
		return -EFAULT;
	if (ring.db_bits & ~port->db_bits)
		return -EINVAL;
	if (ring.db_bits & ~READ_ONCE(vf->ring_bits))
		return -EPERM;
	if (!vf->agent)
		rc = vd_limit_ring(vf, wait, hweight64(ring.db_bits));
	if (rc)
		return rc;
	down_read(&port->lock);
	if (!port->ntb)
		rc = -ENODEV;
	else if (ring.db_bits & ~vf->ring_bits) /* it was ended while it waited */
		rc = -EPERM;
	else if (port->up)
		rc = ring_bits(port, ring.db_bits);
	up_read(&port->lock);
	return rc;
}

/* A new descriptor is installed only when its number has reached the caller. */
static int hand_out(struct file *file, __s32 *field, void __user *arg, void *answer, size_t size)
{
	int fd = get_unused_fd_flags(O_CLOEXEC);

	if (fd < 0) {
		fput(file);
		return fd;
	}
	*field = fd;
	if (copy_to_user(arg, answer, size)) {
		put_unused_fd(fd);
		fput(file);
		return -EFAULT;
	}
	fd_install(fd, file);
	return 0;
}

static int do_slice(struct vd_file *vf, void __user *arg)
{
	struct viaduct_slice slice;
	struct file *file;
	int rc;

	if (copy_from_user(&slice, arg, sizeof(slice)))
		return -EFAULT;
	rc = vd_slice_make(vf, &slice, &file);
	return rc ?: hand_out(file, &slice.fd, arg, &slice, sizeof(slice));
}

static int do_adopt(struct vd_file *vf, void __user *arg)
{
	struct viaduct_adopt adopt;
	struct file *file;
	int rc;

	if (copy_from_user(&adopt, arg, sizeof(adopt)))
		return -EFAULT;
	rc = vd_slice_adopt(vf, &adopt, &file);
	return rc ?: hand_out(file, &adopt.fd, arg, &adopt, sizeof(adopt));
}

static int do_slice_info(struct vd_file *vf, void __user *arg)
{
	struct viaduct_slice slice;
	struct file *file;
	int rc;

	if (copy_from_user(&slice, arg, sizeof(slice)))
		return -EFAULT;
	if (slice.direction || slice.window || slice.offset || slice.len || slice.reserved)
		return -EINVAL;
	file = fget(slice.fd);
	if (!file)
		return -EBADF;
	rc = vd_slice_info(vf->port, file, &slice);
	fput(file);
	if (!rc && copy_to_user(arg, &slice, sizeof(slice)))
		rc = -EFAULT;
	return rc;
}

static int do_end(struct vd_file *vf, void __user *arg)
{
	struct viaduct_end request;
	struct vd_file *client;
	struct file *file;
	int rc = 0;

	if (copy_from_user(&request, arg, sizeof(request)))
		return -EFAULT;
	if (request.reserved)
		return -EINVAL;
	file = fget(request.fd);
	if (!file)
		return -EBADF;
	client = file->f_op == &client_fops ? file->private_data : NULL;
	if (!client)
		rc = vd_slice_end(vf->port, file);
	else if (client->port == vf->port)
		end_client(client);
	else
		rc = -EINVAL;
	fput(file);
	return rc;
}

static int do_irq(struct vd_file *vf, void __user *arg)
{
	struct viaduct_irq request;
	struct file *file;

	if (copy_from_user(&request, arg, sizeof(request)))
		return -EFAULT;
	if (request.fd || request.reserved)
		return -EINVAL;
	file = vd_irq_make(vf->user);
	if (IS_ERR(file))
		return PTR_ERR(file);
	return hand_out(file, &request.fd, arg, &request, sizeof(request));
}

static int count_client(struct vd_port *port)
{
	int rc = 0;

	mutex_lock(&port->alloc_lock);
	if (port->clients < CLIENTS)
		port->clients++;
	else
		rc = -ENOBUFS;
	mutex_unlock(&port->alloc_lock);
	return rc;
}

static int do_client(struct vd_file *vf, void __user *arg)
{
	struct viaduct_client request;
	struct vd_file *client;
	struct file *file;
	int rc;

	if (copy_from_user(&request, arg, sizeof(request)))
		return -EFAULT;
	if (request.reserved || request.fd || request.ring_bits & ~vf->port->db_bits)
		return -EINVAL;
	client = new_file(vf->port);
	if (!client)
		return -ENOMEM;
	client->ring_bits = request.ring_bits;
	client->user = vf->user;
	rc = vd_user_charge_client(vf->user);
	if (rc)
		goto err_file;
	rc = count_client(vf->port);
	if (rc)
		goto err_charge;
	file = anon_inode_getfile("[viaduct-client]", &client_fops, client, O_RDWR);
	if (!IS_ERR(file))
		return hand_out(file, &request.fd, arg, &request, sizeof(request));
	rc = PTR_ERR(file);
	uncount_client(client);
	goto err_file;
err_charge:
	vd_user_uncharge_client(vf->user);
err_file:
	kfree(client);
	vd_port_put(vf->port);
	return rc;
}

static int do_link(struct vd_file *vf, void __user *arg)
{
	struct viaduct_link link;

	if (copy_from_user(&link, arg, sizeof(link)))
		return -EFAULT;
	if (link.enable > 1 || link.reserved)
		return -EINVAL;
	return set_link(vf->port, link.enable);
}

static int access_spad(struct vd_port *port, struct viaduct_spad *spad)
{
	bool peer = spad->flags & VIADUCT_SPAD_PEER;
	struct ntb_dev *ntb = port->ntb;

	if (spad->index >= vd_msg_spad_count(port))
		return -EINVAL;
	if (port->msg.spads)
		return vd_msg_spad(port, spad);
	if (!(spad->flags & VIADUCT_SPAD_WRITE)) {
		spad->value = peer ? ntb_peer_spad_read(ntb, PIDX, spad->index)
				   : ntb_spad_read(ntb, spad->index);
		return 0;
	}
	if (!peer)
		return ntb_spad_write(ntb, spad->index, spad->value);
	if (port->read_back && port->up)
		vd_window_read_back(port);
	return ntb_peer_spad_write(ntb, PIDX, spad->index, spad->value);
}

static int do_spad(struct vd_file *vf, void __user *arg)
{
	struct vd_port *port = vf->port;
	struct viaduct_spad spad;
	int rc = -ENODEV;

	if (copy_from_user(&spad, arg, sizeof(spad)))
		return -EFAULT;
	if (spad.flags & ~(VIADUCT_SPAD_PEER | VIADUCT_SPAD_WRITE) || spad.reserved ||
	    (spad.value && !(spad.flags & VIADUCT_SPAD_WRITE)))
		return -EINVAL;
	down_read(&port->lock);
	if (port->ntb)
		rc = access_spad(port, &spad);
	up_read(&port->lock);
	if (!rc && copy_to_user(arg, &spad, sizeof(spad)))
		rc = -EFAULT;
	return rc;
}

static long client_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct vd_file *vf = file->private_data;
	void __user *user = (void __user *)arg;

	switch (cmd) {
	case VIADUCT_GET_INFO:
		return get_info(vf, user);
	case VIADUCT_GET_TRAITS:
		return get_traits(vf->port, user);
	case VIADUCT_BIND:
		return do_bind(vf, user);
	case VIADUCT_RING:
		return do_ring(vf, !(file->f_flags & O_NONBLOCK), user);
	case VIADUCT_SLICE_INFO:
		return do_slice_info(vf, user);
	case VIADUCT_FLUSH:
		return vd_window_flush(vf->port);
	default:
		return -ENOTTY;
	}
}

static long port_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct vd_file *vf = file->private_data;
	void __user *user = (void __user *)arg;

	switch (cmd) {
	case VIADUCT_SLICE:
		return do_slice(vf, user);
	case VIADUCT_CLIENT:
		return do_client(vf, user);
	case VIADUCT_LINK:
		return do_link(vf, user);
	case VIADUCT_SPAD:
		return do_spad(vf, user);
	case VIADUCT_IRQ:
		return do_irq(vf, user);
	case VIADUCT_END:
		return do_end(vf, user);
	case VIADUCT_ADOPT:
		return do_adopt(vf, user);
	default:
		return client_ioctl(file, cmd, arg);
	}
}

const struct file_operations vd_port_fops = {
	.owner = THIS_MODULE,
	.open = port_open,
	.release = file_release,
	.mmap = file_mmap,
	.poll = file_poll,
	.unlocked_ioctl = port_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.llseek = noop_llseek,
};

static const struct file_operations client_fops = {
	.owner = THIS_MODULE,
	.release = file_release,
	.mmap = file_mmap,
	.poll = file_poll,
	.unlocked_ioctl = client_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.llseek = noop_llseek,
};
