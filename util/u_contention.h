/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting under contention: when to yield, and when to sleep instead.
 *
 * A thread that finds nothing offers its processor.  An offer that comes back at once was not taken, one
 * that comes back soon was taken by who yields as well, perhaps the very thread that is waited for.  But
 * sched_yield() gives away more than the processor: on Linux 6.6 and later the thread falls behind by the
 * rest of its slice, each time, and who yields in a loop beside threads that compute may get no processor
 * for long.  A wake-up places a thread fairly.  So when others had the processor for long while
 * nothing came, there is contention, and for a while the thread sleeps without an offer.
 */
#ifndef U_CONTENTION_H
#define U_CONTENTION_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "u_time.h"

#define U_ALONE_NS 1000		/* an offer that took less was not taken; */
#define U_CONTENTION_NS 100000	/* offers in vain that took as much together show contention */
#define U_CONTENTION_SLEEPS 32u /* then so many waits sleep at once, before the next offer */

struct u_contention {
	int64_t given_ns; /* to others, since something came */
	uint32_t sleeps;  /* left */
};

/* What a yield that took so long tells. */
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

/* Something came: what was given away was not in vain. */
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
