/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What relays cost, on two processors.
 *
 * A sender, a relay and a receiver that all poll want three processors.  Sender and receiver of a
 * message never work at the same time, so one thread can be both, with a NIC on either host; the
 * relay polls on the other processor.  Every line still goes from one processor to the other at
 * each hop.  The *leader* is that thread; *helpers* run on the relay's processor, as the
 * neighbour that answers and as the relays of bare copies, and sleep while relays poll.
 */
#ifndef RP_H
#define RP_H

#include <stdatomic.h>
#include <stdint.h>

#include "rv.h"

#define RP_HOPS_MAX 4u
#define RP_HELPERS (RP_HOPS_MAX - 1)
#define RP_BATCHES_MAX 64u
#define RP_PATIENCE_NS INT64_C(60000000000)

struct rp_config {
	unsigned int rounds, hops;
	int cpu[2]; /* the leader's, the relays' */
	bool latency, bandwidth;
};

/* ---- rp_main.c ---- */

/*
 * Has helper i, of which there are as many as relays, do a job on their processor; returns at once.
 * rp_helper_join() gives its result.
 */
void rp_helper_run(unsigned int i, int (*job)(void *arg), void *arg);
int rp_helper_join(unsigned int i);

/* The calling thread, and those that it starts, run on this processor.  0, or -1 after saying why. */
int rp_pin(int cpu);

/* The middle one of n values, which are sorted. */
double rp_median(double *v, unsigned int n);

static inline void rp_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ __volatile__("yield");
#endif
}

/* ---- rp_raw.c: what the processors can do ---- */

/* One way of a cache line from one to the other, nanoseconds. */
int rp_line(double *out);

#define RP_GEOMETRIES 9u

struct rp_copies {
	double rate; /* GB/s */
	uint64_t chunk, ring;
};

/*
 * Messages of so many bytes through hops + 1 copies and as many rings between as there are hops, in
 * chunks: the first and the last by the leader, those between by one helper, or each by one of its
 * own (`apart`), which offers the processor when it has nothing to copy.  In several geometries.
 */
int rp_copies(unsigned int hops, uint64_t bytes, bool apart, struct rp_copies out[RP_GEOMETRIES]);

/* ---- rp_vipl.c: what VIPL programs get ---- */

/* NICs on host 0 and on those up to `hops` links away; the neighbour's threads run on cpu[1]. */
int rp_open(const struct rp_config *cfg);
void rp_close(void);

/* Half of the round trip of a message, nanoseconds, for each of n sizes, over one connection. */
int rp_trips(unsigned int hops, const uint64_t *bytes, unsigned int n, double *out);

/* Messages one after the other, two links or more away; GB/s. */
int rp_flow(unsigned int hops, bool write, uint64_t bytes, double *out);

#endif
