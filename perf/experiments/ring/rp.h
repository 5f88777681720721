/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cost of relays, on two processors.
 *
 * A sender, a relay and a receiver that all poll need three processors.  Sender and receiver of a
 * message never work at the same time, so one thread can be both, with a NIC on each host; the
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
	int cpu[2];	   /* the leader's, the relays' */
	unsigned int only; /* latency, bandwidth or both */
};

/* ---- rp_helper.c ---- */

/* Starts helper `i` (below RP_HELPERS), pinned to processor `cpu`.  0, or -1 after saying why. */
int rp_helper_start(unsigned int i, int cpu);
/* Gives helper `i` a job and returns at once; rp_helper_join() waits for its result. */
void rp_helper_run(unsigned int i, int (*job)(void *arg), void *arg);
int rp_helper_join(unsigned int i);
/* Ends helper `i`, which has no job. */
void rp_helper_stop(unsigned int i);

/* Pins the calling thread, and those that it starts later.  0, or -1 after printing the reason. */
int rp_pin(int cpu);

/* ---- rp_median.c ---- */

/* Sorts `n` values and returns the middle one. */
double rp_median(double *v, unsigned int n);

static inline void rp_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ __volatile__("yield");
#endif
}

/* ---- rp_raw.c: the limits of the processors ---- */

/* The time of a cache line from one processor to the other, nanoseconds. */
int rp_line(double *out);

#define RP_GEOMETRIES 9u

struct rp_copies {
	double rate; /* GB/s */
	uint64_t chunk, ring;
};

/*
 * Messages of so many bytes through hops + 1 copies, with one buffer for each hop between them, in
 * chunks: the leader makes the first and the last copy, one helper those between, or a helper each
 * (`apart`), which yields when it has nothing to copy.  In several geometries.
 */
int rp_copies(unsigned int hops, uint64_t bytes, bool apart, struct rp_copies out[RP_GEOMETRIES]);

/* ---- rp_vipl.c: the figures of VIPL programs ---- */

/* NICs on host 0 and on those up to `hops` links away; the neighbour's threads run on cpu[1]. */
int rp_open(const struct rp_config *cfg);
void rp_close(void);

/* Half of the round trip of a message, nanoseconds, for each of n sizes, over one connection. */
int rp_trips(unsigned int hops, const uint64_t *bytes, unsigned int n, double *out);

/* Messages one after the other, two links or more away; GB/s. */
int rp_flow(unsigned int hops, bool write, uint64_t bytes, double *out);

#endif
