/* SPDX-License-Identifier: BSD-2-Clause */
/* Deadlines, and the sleep of a thread: with absolute times. */
#ifndef VS_TIME_H
#define VS_TIME_H

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

uint64_t vs_now_ns(void); /* CLOCK_MONOTONIC */
/* How long a thread looks before it sleeps; 0 with VIADUCT_WAIT=block. */
extern uint64_t vs_spin_ns;
/* Sets vs_spin_ns by VIADUCT_WAIT. */
void vs_spin_init(void);
struct timespec vs_in_ns(uint64_t ns); /* from now on; saturates */

bool vs_bad_time(const struct timespec *t);		    /* EINVAL of the kernel; NULL is none */
struct timespec vs_time_left(const struct timespec *until); /* 0 when it is over */

/* ppoll() up to an absolute time of CLOCK_MONOTONIC; NULL: no end.  -1 with errno, as that. */
int vs_sleep_poll(struct pollfd *v, nfds_t n, const struct timespec *until, const sigset_t *mask);

/* As vs_sleep_poll(); `brief`: at most a millisecond, after which 1 is returned and not 0. */
int vs_sleep_slice(struct pollfd *v, nfds_t n, const struct timespec *until, bool brief,
		   const sigset_t *mask);

#endif
