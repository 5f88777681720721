/* SPDX-License-Identifier: BSD-2-Clause */
/* Handlers that wait for a completion. */
#ifndef VI_NOTIFY_H
#define VI_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

#include "vipl.h"

struct vi_cq;
struct vi_wq;

/* One-shot handler of VipSendNotify, VipRecvNotify, VipCQNotify. */
struct vi_notify {
	struct vi_notify *next;
	VIP_PVOID context;
	void (*on_desc)(VIP_PVOID, VIP_NIC_HANDLE, VIP_VI_HANDLE, VIP_DESCRIPTOR *);
	void (*on_cq)(VIP_PVOID, VIP_NIC_HANDLE, VIP_VI_HANDLE, VIP_BOOLEAN);
};

/* An entry of the dispatcher's list of queues to serve; under the event lock. */
struct vi_ready {
	struct vi_ready *next;
	bool queued;
	struct vi_wq *wq; /* one of the two, for life */
	struct vi_cq *cq;
};

/*
 * Takes the first handler off a list that is not empty; the caller frees it.  Caller holds the lock of the queue or CQ
 * that has the list.
 */
struct vi_notify *vi_notify_take(struct vi_notify **first, struct vi_notify **last);
/* Frees the handlers of a list; returns how many.  Calls none.  Caller holds the lock of the list. */
uint32_t vi_notify_cancel(struct vi_notify **first, struct vi_notify **last);
/* Appends a handler of calloc(), which the list then owns.  Caller holds the lock of the list. */
void vi_notify_append(struct vi_notify **first, struct vi_notify **last, struct vi_notify *n);

#endif
