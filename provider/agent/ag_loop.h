/* SPDX-License-Identifier: BSD-2-Clause */
/* The events for which the event loop of ag_run() waits, and ending its wait. */
#ifndef AG_LOOP_H
#define AG_LOOP_H

#include <stdint.h>

#include "ag_state.h"

/* The data of an event: its kind in the upper half of the word, the index of its object in the lower. */
#define AG_EV_WAKE 0u
#define AG_EV_LISTEN 1u
#define AG_EV_CABLE 2u	 /* the listening cable socket of a link */
#define AG_EV_PORT 3u	 /* the port of a link */
#define AG_EV_CLIENT 4u	 /* the socket of a client */
#define AG_EV_PROCESS 5u /* the process of a client has ended */
#define AG_EV(kind, index) ((uint64_t)(kind) << 32 | (index))

/* Time until a step that failed for want of a resource is tried again. */
#define AG_RETRY_NS (100 * INT64_C(1000000))

/*
 * Makes the epoll set and the wake-up descriptor.  0 or -errno; the caller closes descriptors that
 * were made.
 */
int ag_loop_open(struct ag_agent *a);

/* Watches `fd` for `events`, or changes these; `what` is an AG_EV().  0 or -errno. */
int ag_loop_watch(struct ag_agent *a, int fd, uint32_t events, uint64_t what);

/*
 * Stops watching `fd`.  To be called before another thread closes it: while the loop waits, the
 * kernel sometimes holds a reference to a watched file, and then the loop's thread would release
 * the file, and with it the descriptors in messages that were not read.
 */
void ag_loop_unwatch(struct ag_agent *a, int fd);

/* Ends the wait of the loop, which then checks every link for rings.  Any thread or signal handler may call it. */
void ag_loop_wake(struct ag_agent *a);
/* Makes ag_run() return.  Any thread or signal handler may call it. */
void ag_loop_stop(struct ag_agent *a);

#endif
