// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Memory of programs that is pinned, and counted as theirs. */
#include <linux/capability.h>
#include <linux/mm.h>
#include <linux/resource.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "viaduct.h"

#define BATCH 4096

/*
 * Counted without mmap_lock, which a process can hold as long as it likes: the process that closes a slice last may
 * have been sent the descriptor, and must not wait for the process that registered the memory.
 */
static void uncharge(struct mm_struct *mm, unsigned long count)
{
	atomic64_sub(count, &mm->pinned_vm);
}

static int charge(struct mm_struct *mm, unsigned long count)
{
	unsigned long limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
	u64 pinned = atomic64_add_return(count, &mm->pinned_vm);

	if (pinned + READ_ONCE(mm->locked_vm) <= limit || capable(CAP_IPC_LOCK))
		return 0;
	uncharge(mm, count);
	return -ENOMEM;
}

/* For writing, so that pages which a process shares with its parent are copied first and not afterwards. */
static int pin_pages(struct vd_pinned *pinned, unsigned long address)
{
	unsigned long got = 0;
	long n;

	while (got < pinned->count) {
		n = fatal_signal_pending(current)
			    ? -EINTR
			    : pin_user_pages_fast(address + (got << PAGE_SHIFT),
						  min_t(unsigned long, pinned->count - got, BATCH),
						  FOLL_WRITE | FOLL_LONGTERM, pinned->pages + got);
		if (n <= 0) {
			unpin_user_pages(pinned->pages, got);
			return n ?: -EFAULT;
		}
		got += n;
		cond_resched();
	}
	return 0;
}

/* The pages from address on, which is aligned, of the process that calls. */
int vd_pin(struct vd_pinned *pinned, unsigned long address, unsigned long count)
{
	int rc;

	pinned->count = count;
	pinned->mm = current->mm;
	pinned->pages = kvmalloc_array(count, sizeof(*pinned->pages), GFP_KERNEL_ACCOUNT);
	if (!pinned->pages)
		return -ENOMEM;
	rc = charge(pinned->mm, count);
	if (rc)
		goto err_pages;
	rc = pin_pages(pinned, address);
	if (rc)
		goto err_account;
	mmgrab(pinned->mm);
	return 0;

err_account:
	uncharge(pinned->mm, count);
err_pages:
	kvfree(pinned->pages);
	pinned->pages = NULL;
	return rc;
}

void vd_unpin(struct vd_pinned *pinned, bool written)
{
	if (!pinned->pages)
		return;
	unpin_user_pages_dirty_lock(pinned->pages, pinned->count, written);
	kvfree(pinned->pages);
	uncharge(pinned->mm, pinned->count);
	mmdrop(pinned->mm);
	memset(pinned, 0, sizeof(*pinned));
}
