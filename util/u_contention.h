/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting under contention: when to yield, and when to sleep instead.
 *
 * A thread that finds nothing yields.  If the yield returns at once, no other thread ran; if it
 * returns soon, the other thread yielded as well, and is perhaps the one that is waited for.  But
 * sched_yield() costs more than the processor: on Linux 6.6 and later the thread loses the rest of
 * its time slice, each time, and one that yields in a loop beside threads that compute may get no
 * processor for long.  A thread that is woken is scheduled fairly.  So when other threads had the
 * processor for long while nothing arrived, there is contention, and the thread sleeps without a
 * yield for its next waits.
 */
#ifndef U_CONTENTION_H
#define U_CONTENTION_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "u_time.h"

#define U_ALONE_NS 1000		/* a shorter yield ran no other thread; */
#define U_CONTENTION_NS 100000	/* yields that took as much together, in vain, show contention */
#define U_CONTENTION_SLEEPS 32u /* then so many waits sleep at once, before the next yield */

struct u_contention {
	int64_t given_ns; /* time given to others since something arrived */
	uint32_t sleeps;  /* left */
};

/* Accounts for a yield of that length. */
static inline void u_contention_learn(struct u_contention *c, int64_t took_ns)
{
	if (took_ns < U_ALONE_NS)
		return;
	c->given_ns += took_ns;
	if (c->given_ns >= U_CONTENTION_NS) {
		c->given_ns = 0;
		c->sleeps = U_CONTENTION_SLEEPS;
	}
}

/* Yields; `now` is the time.  Returns how long it took. */
static inline int64_t u_contention_offer(struct u_contention *c, int64_t now)
{
	int64_t took;

	sched_yield();
	took = u_now_ns() - now;
	u_contention_learn(c, took);
	return took;
}

/* Something arrived: the yields were not in vain. */
static inline void u_contention_moved(struct u_contention *c)
{
	c->given_ns = 0;
}

/* Is it time to sleep?  Asked once for each wait. */
static inline bool u_contention_sleeps(struct u_contention *c)
{
	if (c->sleeps == 0)
		return false;
	c->sleeps--;
	return true;
}

#endif
