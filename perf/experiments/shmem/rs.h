/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An OpenSHMEM program of the ring experiments, one PE on each host of a fabric that is up; shmem.h
 * only.
 *
 * The fabric's links are slower than their profile by the dilation; all results are divided by it.
 */
#ifndef RS_H
#define RS_H

#include <pthread.h>
#include <shmem.h>
#include <stdbool.h>
#include <stdint.h>

#define RS_HOSTS_MAX 64u
#define RS_CALLERS 8u /* puts that a PE has under way at any time in E3 and E4 */

struct rs_task {
	const char *experiment;
	unsigned int number;  /* of the experiment, from 0 */
	unsigned int threads; /* transfer threads of the agents; only reported */
	unsigned int links;
	uint64_t bytes;
	uint64_t count;
	unsigned int dilation;
	unsigned int
		post_ns; /* processor time of a put, charged for each; of a barrier, for all of it */
	bool blocking;	 /* E1, E2: shmem_double_put in place of shmem_putmem_nbi */
	bool get;	 /* E1, E2: gets in place of puts */
	unsigned int me, hosts;
};

/* How long after its call a put had returned, the target had seen its last word, and quiet had returned. */
struct rs_steps {
	double call_us, seen_us, done_us;
};

/* At PE 0; elsewhere it is not used. */
struct rs_result {
	double value;
	const char *unit;
	double rate;	       /* E3, E4: GB/s of one host; else 0 */
	struct rs_steps steps; /* experiment steps; else 0 */
};

/* ---- rs_clock.c ---- */

int64_t rs_now(void);
/* Sleeps as long as a processor slower by the dilation would work; short times add up. */
void rs_charge(int64_t *owed, int64_t ns);
/* Ends the job, with status 1, after a line on standard error. */
_Noreturn void rs_fail(const char *what);
/* Symmetric memory, zeroed. */
void *rs_room(size_t bytes);
/* The median of `n` times, which it sorts. */
int64_t rs_median(int64_t *times, uint64_t n);
/* A context of the calling thread. */
shmem_ctx_t rs_context(void);
/* Puts of 64 bytes until connection and grant are there. */
void rs_warm(const struct rs_task *t, shmem_ctx_t ctx, void *to, int pe);
/* The mean at PE 0 of what PEs have; those with NAN have none. */
double rs_mean(const struct rs_task *t, double mine);

/* ---- experiments: all PEs call them ---- */

/* E1, E2: puts to neighbours over some links at once; GB/s of one link, the mean. */
void rs_rate(const struct rs_task *t, struct rs_result *out);
/* E3, E4: puts of all PEs to all others, each with a quiet.  Microseconds, and the rate. */
void rs_put(const struct rs_task *t, struct rs_result *out);
/* The steps of puts of PE 0 to PE 1, one at a time; microseconds until all is done. */
void rs_steps(const struct rs_task *t, struct rs_result *out);
/* shmem_barrier_all; microseconds. */
void rs_barrier(const struct rs_task *t, struct rs_result *out);
/* The processor time of a put of 64 bytes with a quiet, nanoseconds. */
void rs_cost(const struct rs_task *t, struct rs_result *out);

#endif
