/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The watchdog: a thread that logs when the agent's event loop does not return for long, for
 * instance from a system call that waits for another process.  It sleeps while the agent waits for
 * events, and checks once a second while the agent handles any.
 */
#ifndef AG_WATCHDOG_H
#define AG_WATCHDOG_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "u_log.h"

#define AG_STAND_NS INT64_C(1000000000)

struct ag_watchdog {
	pthread_t thread;
	struct u_log_ratelimit *ratelimit;
	uint32_t host;
	int tid;		 /* id of the thread that is watched */
	_Atomic uint32_t seq;	 /* odd while that thread is at work; written by that thread */
	_Atomic uint32_t asleep; /* 1: to be woken when work begins */
	_Atomic uint32_t stop;
	_Atomic uint32_t reports; /* reports so far */
};

/*
 * Starts the watchdog of the calling thread, which counts as at work from then on.  `ratelimit`
 * must outlive it.  0 or -errno.
 */
int ag_watchdog_start(struct ag_watchdog *w, struct u_log_ratelimit *ratelimit, uint32_t host);

/* Ends the thread, and returns when it has ended.  Only after ag_watchdog_start() has returned 0. */
void ag_watchdog_stop(struct ag_watchdog *w);

/*
 * The watched thread says that it is about to wait for events, or has begun to handle some.  It calls them in
 * turns, and ag_watchdog_rest() first.
 */
void ag_watchdog_rest(struct ag_watchdog *w);
void ag_watchdog_work(struct ag_watchdog *w);

#endif
