/* SPDX-License-Identifier: BSD-2-Clause */
/* Handlers and file descriptors that wait for an entry of a completion queue. */
#ifndef VI_CQ_NOTIFY_H
#define VI_CQ_NOTIFY_H

#include <stdint.h>

#include "vi_objects.h"

/* Counts `n` armed handlers or descriptors off again. */
void vi_cq_disarm(struct vi_cq *cq, uint32_t n);

/* Something completed on a queue of cq: makes handlers and descriptor due.  The queue's lock may be held. */
void vi_cq_alert(struct vi_cq *cq);

/*
 * Arms a one-shot handler, which the dispatcher's thread calls when there is an entry, perhaps at once, and takes
 * that.
 */
int vi_cq_notify(struct vi_cq *cq, void *context,
		 void (*handler)(VIP_PVOID, VIP_NIC_HANDLE, VIP_VI_HANDLE, VIP_BOOLEAN));
/* Gives the event descriptor, which stays the CQ's; the first call makes it.  0, or -EMFILE, which is logged. */
int vi_cq_fd(struct vi_cq *cq, int *fd_out);
/* Empties the event descriptor, and makes it readable once, when there is an entry, perhaps at once. */
int vi_cq_arm(struct vi_cq *cq);

#endif
