/* SPDX-License-Identifier: BSD-2-Clause */
/* State that the dispatcher's lists (vi_event.c) and its thread (vi_dispatch.c) share. */
#ifndef VI_EVENT_PRIV_H
#define VI_EVENT_PRIV_H

#include <pthread.h>

#include "u_lock.h"
#include "vi_event.h"

#define VI_EVENTS_MAX 256u /* a power of two */
#define VI_LOST_QUIET 2u   /* vi->conn_lost */

struct vi_event {
	uint64_t vi, cq; /* ids, 0 for none */
	VIP_DESCRIPTOR *desc;
	VIP_RESOURCE_CODE resource;
	VIP_ERROR_CODE code;
	uint32_t op; /* VIP_STATUS_OP_ bits */
	bool quiet;  /* nothing was lost: not for the log */
};

struct vi_dispatcher {
	struct u_lock lock; /* the event lock */
	struct vi_nic *nic;
	vi_error_handler *handler; /* NULL: errors go to the log */
	void *context;
	struct vi_event events[VI_EVENTS_MAX];
	uint32_t first, last; /* counters, masked on use */
	uint64_t lost;
	bool check_for_lost; /* a VI has conn_lost set */
	struct vi_ready *ready_first, *ready_last;
	/* For the limit on log lines; used by the thread only. */
	int64_t log_second;
	uint32_t logged, unlogged;
	uint64_t now_vi, now_cq; /* the VI or CQ of the running handler */
	bool started, stop, detached;
	void *(*main)(void *); /* the thread's function; its argument is the dispatcher */
	pthread_t thread;
	_Atomic uint32_t work;	   /* futex: bumped for the thread */
	_Atomic uint32_t returned; /* futex: bumped when a handler has returned */
};

/*
 * The VIP_STATUS_OP_ bits of an error that names no descriptor: those of a send if it is not about another operation.
 */
uint32_t vi_event_op(VIP_ERROR_CODE code);

#endif
