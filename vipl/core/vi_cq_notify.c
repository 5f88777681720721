/* SPDX-License-Identifier: BSD-2-Clause */
/* Handlers and the event descriptor of a completion queue. */
#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "u_cancel.h"
#include "u_fd.h"
#include "u_log.h"
#include "u_membarrier.h"
#include "vi_cq_list.h"
#include "vi_cq_notify.h"
#include "vi_event.h"
#include "vi_objects.h"
#include "vi_provider.h"

static void count_armed(struct vi_cq *cq)
{
	atomic_fetch_add_explicit(&cq->nic->notify_armed, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&cq->armed, 1, memory_order_relaxed);
}

void vi_cq_disarm(struct vi_cq *cq, uint32_t n)
{
	atomic_fetch_sub_explicit(&cq->armed, n, memory_order_relaxed);
	atomic_fetch_sub_explicit(&cq->nic->notify_armed, n, memory_order_relaxed);
}

U_COLD void vi_cq_alert(struct vi_cq *cq)
{
	const int cancel U_AT_END(u_cancel_back) = u_cancel_off();
	const uint64_t one = 1;
	int before = errno;

	if (atomic_exchange_explicit(&cq->fd_armed, 0, memory_order_acquire) != 0) {
		vi_cq_disarm(cq, 1);
		/* It fails only when the counter is full: then the descriptor is readable anyway. */
		if (write(cq->event_fd, &one, sizeof(one)) < 0)
			errno = before;
	}
	if (atomic_load_explicit(&cq->armed, memory_order_relaxed) != 0)
		vi_event_ready(cq->nic, &cq->ready);
}

/*
 * For a CQ that counts as armed: arms the NIC's channels, moves packets, and alerts the CQ if it has an entry then.
 * Threads that complete something after this see that the CQ is armed; an earlier completion is seen here.  This is the
 * expensive side of the barrier, so that announce_cq() has the cheap one.  Takes locks of VIs, and cq->lock.
 */
static void armed_barrier(struct vi_cq *cq)
{
	bool there;

	cq->nic->ops->arm(cq->nic);
	atomic_thread_fence(memory_order_seq_cst);
	u_membarrier_own();
	cq->nic->ops->progress(cq->nic);
	u_biased_take(&cq->lock);
	there = vi_cq_has_entry(cq);
	u_biased_drop(&cq->lock);
	if (there)
		vi_cq_alert(cq);
}

int vi_cq_notify(struct vi_cq *cq, void *context,
		 void (*handler)(VIP_PVOID, VIP_NIC_HANDLE, VIP_VI_HANDLE, VIP_BOOLEAN))
{
	struct vi_notify *n;
	int err = vi_event_start(cq->nic);

	if (err != 0)
		return err;
	n = calloc(1, sizeof(*n));
	if (n == NULL)
		return -ENOMEM;
	n->context = context;
	n->on_cq = handler;
	u_biased_take(&cq->lock);
	vi_notify_append(&cq->notify_first, &cq->notify_last, n);
	count_armed(cq);
	u_biased_drop(&cq->lock);
	armed_barrier(cq);
	return 0;
}

int vi_cq_fd(struct vi_cq *cq, int *fd_out)
{
	char text[U_FD_ERROR];
	int fd, err = 0;

	u_biased_take(&cq->lock);
	fd = cq->event_fd;
	if (fd == VI_CQ_FD_NONE) {
		fd = u_fd_above_std(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
		err = errno;
		if (fd >= 0)
			cq->event_fd = fd;
	}
	u_biased_drop(&cq->lock);
	if (fd < 0) {
		u_error("vipl", "no event descriptor for a completion queue: %s",
			u_fd_error(err, text));
		return -EMFILE;
	}
	*fd_out = fd;
	return 0;
}

int vi_cq_arm(struct vi_cq *cq)
{
	uint64_t count;
	int fd, before = errno;
	int err = vi_cq_fd(cq, &fd);

	if (err != 0)
		return err;
	/* Nothing to read is the usual case. */
	if (read(fd, &count, sizeof(count)) < 0)
		errno = before;
	count_armed(cq);
	if (atomic_exchange_explicit(&cq->fd_armed, 1, memory_order_release) != 0)
		vi_cq_disarm(cq, 1);
	armed_barrier(cq);
	return 0;
}
