// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Interrupt objects: where threads of several processes sleep until one of some doorbell bits is rung.
 *
 * An object has a page that its holders map and write, and waits as futexes do: a thread says which count it has
 * seen and sleeps if the count is still that.  The kernel reads and adds to one word of the page and trusts nothing
 * in it; a holder that overwrites it keeps other holders asleep, or awake, and does no other harm.
 */
#include <linux/anon_inodes.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/hrtimer.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "viaduct.h"

struct vd_irq {
	struct kref ref;
	wait_queue_head_t sleepers;
	struct viaduct_irq_page *page;
	struct vd_user *user; /* for whom it counts */
};

struct sleeper {
	struct wait_queue_entry entry;
	u64 bits;
};

static void free_irq_object(struct kref *ref)
{
	struct vd_irq *irq = container_of(ref, struct vd_irq, ref);

	vd_user_uncharge_irq(irq->user);
	free_page((unsigned long)irq->page);
	kfree(irq);
}

void vd_irq_put(struct vd_irq *irq)
{
	kref_put(&irq->ref, free_irq_object);
}

static int wake_sleeper(struct wait_queue_entry *entry, unsigned int mode, int sync, void *key)
{
	struct sleeper *s = container_of(entry, struct sleeper, entry);

	return s->bits & *(u64 *)key ? autoremove_wake_function(entry, mode, sync, NULL) : 0;
}

static void wake(struct vd_irq *irq, u64 bits)
{
	__wake_up(&irq->sleepers, TASK_INTERRUPTIBLE, 0, &bits);
}

/* In interrupts, too.  The count changes first: a thread that is about to sleep compares it when it is in the queue. */
void vd_irq_interrupt(struct vd_irq *irq, u64 bits)
{
	atomic_inc((atomic_t *)&irq->page->seq);
	smp_mb__after_atomic();
	if (waitqueue_active(&irq->sleepers))
		wake(irq, bits);
}

/* Until a timer or a wake-up; negative: no timer. */
static int sleep(s64 timeout_ns)
{
	ktime_t left = ns_to_ktime(timeout_ns);

	if (timeout_ns < 0) {
		schedule();
		return 0;
	}
	if (!timeout_ns) {
		__set_current_state(TASK_RUNNING);
		return -ETIMEDOUT;
	}
	return schedule_hrtimeout_range(&left, current->timer_slack_ns, HRTIMER_MODE_REL)
		       ? 0
		       : -ETIMEDOUT;
}

static int do_wait(struct vd_irq *irq, void __user *arg)
{
	struct viaduct_irq_wait request;
	struct sleeper s;
	int rc = 0;

	if (copy_from_user(&request, arg, sizeof(request)))
		return -EFAULT;
	if (request.reserved || !request.db_bits)
		return -EINVAL;
	init_wait(&s.entry);
	s.entry.func = wake_sleeper;
	s.bits = request.db_bits;
	prepare_to_wait(&irq->sleepers, &s.entry, TASK_INTERRUPTIBLE);
	if (READ_ONCE(irq->page->seq) == request.ticket) {
		rc = sleep(request.timeout_ns);
		if (list_empty_careful(&s.entry.entry))
			rc = 0; /* woken */
		else if (signal_pending(current))
			rc = -EINTR;
	}
	finish_wait(&irq->sleepers, &s.entry);
	return rc;
}

static int do_raise(struct vd_irq *irq, void __user *arg)
{
	struct viaduct_ring raise;

	if (copy_from_user(&raise, arg, sizeof(raise)))
		return -EFAULT;
	wake(irq, raise.db_bits);
	return 0;
}

static long irq_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct vd_irq *irq = file->private_data;
	void __user *user = (void __user *)arg;

	switch (cmd) {
	case VIADUCT_IRQ_WAIT:
		return do_wait(irq, user);
	case VIADUCT_IRQ_RAISE:
		return do_raise(irq, user);
	default:
		return -ENOTTY;
	}
}

/* The page is counted, so it outlives the object while it is mapped. */
static int irq_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct vd_irq *irq = file->private_data;

	if (!(vma->vm_flags & VM_SHARED) || vma->vm_pgoff || vma_pages(vma) != 1)
		return -EINVAL;
	if (vma->vm_flags & VM_EXEC)
		return -EACCES;
	vd_vma_flags(vma, VM_DONTEXPAND | VM_DONTDUMP, VM_MAYEXEC);
	return vm_insert_page(vma, vma->vm_start, virt_to_page(irq->page));
}

static int irq_release(struct inode *inode, struct file *file)
{
	vd_irq_put(file->private_data);
	return 0;
}

static const struct file_operations irq_fops = {
	.owner = THIS_MODULE,
	.release = irq_release,
	.mmap = irq_mmap,
	.unlocked_ioctl = irq_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.llseek = noop_llseek,
};

/* The object of a descriptor, for vd_irq_put(); NULL if it is another kind of descriptor. */
struct vd_irq *vd_irq_get(int fd)
{
	struct file *file = fget(fd);
	struct vd_irq *irq = NULL;

	if (!file)
		return NULL;
	if (file->f_op == &irq_fops) {
		irq = file->private_data;
		kref_get(&irq->ref);
	}
	fput(file);
	return irq;
}

struct file *vd_irq_make(struct vd_user *user)
{
	struct vd_irq *irq = kzalloc(sizeof(*irq), GFP_KERNEL_ACCOUNT);
	struct file *file;
	int rc = -ENOMEM;

	if (!irq)
		return ERR_PTR(rc);
	kref_init(&irq->ref);
	init_waitqueue_head(&irq->sleepers);
	irq->page = (struct viaduct_irq_page *)get_zeroed_page(GFP_KERNEL_ACCOUNT);
	if (!irq->page)
		goto err_irq;
	rc = vd_user_charge_irq(user);
	if (rc)
		goto err_page;
	irq->user = user;
	file = anon_inode_getfile("[viaduct-irq]", &irq_fops, irq, O_RDWR);
	if (IS_ERR(file))
		vd_irq_put(irq);
	return file;

err_page:
	free_page((unsigned long)irq->page);
err_irq:
	kfree(irq);
	return ERR_PTR(rc);
}
