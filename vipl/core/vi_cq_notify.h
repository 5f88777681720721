/* SPDX-License-Identifier: BSD-2-Clause */
/* Handlers and file descriptors that wait for an entry of a completion queue. */
#ifndef VI_CQ_NOTIFY_H
#define VI_CQ_NOTIFY_H

#include <stdint.h>

#include "vi_objects.h"

/* Counts `n` armed handlers or descriptors off again. */
void vi_cq_disarm(struct vi_cq *cq, uint32_t n);

/*
 * Something completed on a queue of cq: makes armed handlers due, and the descriptor readable if it is armed, which it
 * then no longer is.  The queue's lock and cq->lock may be held; takes the event lock.
 */
void vi_cq_alert(struct vi_cq *cq);

/*
 * Arms a one-shot handler, which the dispatcher's thread calls when there is an entry, perhaps at once, and takes
 * that.  0; -ENOSPC: the thread cannot be started; -ENOMEM.  Also moves packets.  Takes cq->lock and locks of VIs.
 */
int vi_cq_notify(struct vi_cq *cq, void *context,
		 void (*handler)(VIP_PVOID, VIP_NIC_HANDLE, VIP_VI_HANDLE, VIP_BOOLEAN));
/*
 * Gives the event descriptor, which stays the CQ's; the first call makes it.  0, or -EMFILE, which is logged.  Takes
 * cq->lock.
 */
int vi_cq_fd(struct vi_cq *cq, int *fd_out);
/*
 * Empties the event descriptor, and makes it readable once, when there is an entry, perhaps at once.  0, or -EMFILE as
 * vi_cq_fd(), which it calls.  Also moves packets.  Takes cq->lock and locks of VIs.
 */
int vi_cq_arm(struct vi_cq *cq);

#endif
