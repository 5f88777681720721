/* SPDX-License-Identifier: BSD-2-Clause */
/* Asynchronous errors, and the dispatcher that calls the consumer's handlers. */
#ifndef VI_EVENT_H
#define VI_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include "vi_notify.h"
#include "vipl.h"

struct vi_cq;
struct vi_dispatcher;
struct vi_nic;
struct vi_vi;
struct vi_wq;

typedef void vi_error_handler(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *desc);

/* Makes a dispatcher.  `main`: vi_dispatch(), for the thread, which is not started yet.  NULL: out of memory. */
struct vi_dispatcher *vi_event_create(struct vi_nic *nic, void *(*main)(void *));
/*
 * Stops and frees it, and drops what is queued; waits for a running handler unless called from one: then its thread
 * frees it after that.  Accepts NULL.
 */
void vi_event_destroy(struct vi_dispatcher *d);
/* Starts the thread, if it does not run.  0 or -ENOSPC.  Takes the event lock. */
int vi_event_start(struct vi_nic *nic);
/*
 * Sets the error handler, and starts the thread for it; NULL: errors go to the log.  0, or -ENOSPC: the thread cannot
 * be started, and the handler is as before.
 */
int vi_event_handler(struct vi_nic *nic, vi_error_handler *handler, void *context);

/*
 * Queues an asynchronous error for the NIC's handler; never blocks, callable
 * with queue locks held.  vi may be NULL.  When many wait, an event that
 * is queued already is not queued again; when too many wait, it is counted and
 * lost, except VIP_ERROR_CONN_LOST of a VI.  Starts the thread; takes the event lock.
 */
void vi_event_raise(struct vi_nic *nic, struct vi_vi *vi, VIP_RESOURCE_CODE resource,
		    VIP_ERROR_CODE code);
/* As vi_event_raise() for a VI that broke; `quiet`: not for the log, but a handler gets it. */
void vi_event_raise_broken(struct vi_vi *vi, VIP_ERROR_CODE code, bool quiet);
/*
 * As vi_event_raise() for a descriptor of a work queue, which is not read, and also names the CQ; op: its
 * VIP_STATUS_OP_ bits.
 */
void vi_event_raise_desc(struct vi_wq *wq, VIP_DESCRIPTOR *desc, uint32_t op,
			 VIP_RESOURCE_CODE resource, VIP_ERROR_CODE code);

/*
 * An armed handler of this queue or CQ may be due: the dispatcher checks.  Its thread was started before:
 * vi_event_start().  Queue locks may be held; takes the event lock.
 */
void vi_event_ready(struct vi_nic *nic, struct vi_ready *ready);

/*
 * The object is being destroyed: drops its events and takes it off the list; then waits for a running handler of it,
 * unless the caller is that handler.  The id in the object is 0 already, `id` the one that it had.  Caller holds no
 * lock; takes the event lock.
 */
void vi_event_forget_vi(struct vi_vi *vi, uint64_t id);
void vi_event_forget_cq(struct vi_cq *cq, uint64_t id);

#endif
