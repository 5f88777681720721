/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vi_stages: where the time of one message goes.
 *
 *	st_main.c	options, the two processes, the report
 *	st_side.c	one process: its VI, the round trips, its buffer of stamps
 *	st_match.c	computes the stages from the stamps of both
 */
#ifndef ST_H
#define ST_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "u_trace.h"

#define ST_ROUNDS 100u /* of a batch: both buffers of stamps stay in the cache */
#define ST_SKIPPED 10u /* of them, before the measurement, until both sides run */
#define ST_MAX_BATCHES 10000u

/* The points of a message, in their order; the first three are at the sender. */
enum st_point {
	ST_POSTED,
	ST_WRITTEN,
	ST_PUBLISHED,
	ST_SEEN,
	ST_COPIED,
	ST_COMPLETED,
	ST_TAKEN,
	ST_POINTS,
};

struct st_config {
	uint32_t size, messages, batches;
	const char *hosts[2]; /* NULL: the default */
	bool pin, tsc, json;
	int cpu[2]; /* -1: not chosen */
	double timeout;
};

struct st_message {
	uint64_t at[ST_POINTS]; /* 0: not seen */
	uint32_t sent_slot, seen_slot;
};

/* Between the two processes. */
struct st_shared {
	_Atomic uint32_t arrived[2]; /* writer: that side; barriers that it has reached */
	uint32_t id;		     /* names the two on the fabric */
	_Atomic bool failed;
	_Atomic uint32_t blamed; /* whose cause counts: 1 + side */
	char cause[2][240];	 /* writer: that side */
	struct {
		char bytes[64];
	} address[2];				 /* writer: that side */
	struct st_message message[2][ST_ROUNDS]; /* by sender; each side writes its points */
	uint64_t turned[ST_ROUNDS];		 /* writer: side 1; from taken to posted */
	double stamped_ns, bare_ns;
};

/* One number per matched message. */
struct st_series {
	double *v;
	size_t count;
};

struct st_result {
	/* [0] from point 0 to 1, and so on; then the whole, and from taken to the next post. */
	struct st_series stage[ST_POINTS + 1];
	struct st_series stamped, bare; /* half round trips, one per batch */
	double stamp_ns, ns_per_tick;
	size_t left_out;
};

#define ST_WHOLE (ST_POINTS - 1)
#define ST_TURN ST_POINTS

/* ---- st_side.c ---- */

/* Runs one side to its end.  Returns 0 or -errno; then sh->cause has the reason. */
int st_side_run(const struct st_config *cfg, struct st_shared *sh, int side, struct st_result *res);
/* Notes that a side failed, with a reason that both sides can read.  Returns -EIO. */
__attribute__((format(printf, 3, 4))) int st_fail(struct st_shared *sh, int side, const char *fmt,
						  ...);

/* ---- st_match.c ---- */

int st_result_init(struct st_result *res, uint32_t batches);
void st_result_fini(struct st_result *res);
/*
 * Sorts the stamps [from, to) of one side: those of the message that it sent go to `sent`, those
 * of the message that it received to `received`; either may be NULL.
 */
void st_match(const struct u_trace_ring *ring, uint32_t from, uint32_t to, struct st_message *sent,
	      struct st_message *received);
/* Adds one message, unless a point of it is missing. */
void st_result_add(struct st_result *res, const struct st_message *m);
void st_series_add(struct st_series *s, double value);
/* The value at the given percentile, 0 of none; sorts. */
double st_series_at(struct st_series *s, double percent);
double st_series_mean(const struct st_series *s);

#endif
