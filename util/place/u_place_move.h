/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Moves service threads, which are held on one core each, by the load of the last interval: docs/placement.md,
 * «Service threads that move».  Nothing here has a side effect.
 */
#ifndef U_PLACE_MOVE_H
#define U_PLACE_MOVE_H

#include <stdbool.h>
#include <stdint.h>

#include "u_cpuset.h"
#include "u_topo.h"

#define U_MOVE_LITTLE                                                                              \
	50 /* a thread that uses less than this of its processor, in thousandths, stays */
#define U_MOVE_CROWDED 300 /* so much use of its core by others is too much */
#define U_MOVE_GAIN 250	   /* a core is better if others use so much less of it */
#define U_MOVE_CACHE 100   /* a core under another cache counts as used so much more */
#define U_MOVE_IN_TURN                                                                             \
	2	      /* intervals in turn for which the core was crowded, then the thread moves */
#define U_MOVE_REST 4 /* intervals after a move in which it stays; for some threads up to 3 more */

enum u_move_why {
	U_MOVE_QUIET,	  /* others use little of its core */
	U_MOVE_IDLE,	  /* its core is crowded, but it needs little of it */
	U_MOVE_RESTS,	  /* it has moved not long ago */
	U_MOVE_WAITS,	  /* its core has been crowded for too few intervals */
	U_MOVE_NO_BETTER, /* no other core is used so much less */
	U_MOVE_LATER,	  /* another thread moves after this interval */
	U_MOVE_GOES	  /* it moves */
};

/* A service thread. */
struct u_move_thread {
	struct u_cpuset cpus; /* of its core: where it is held */
	unsigned int used;    /* in the last interval, in thousandths of a processor */
	/* Kept from interval to interval; 0 at the beginning. */
	unsigned int crowded; /* intervals in turn for which others used too much of its core */
	unsigned int rest;    /* intervals for which it stays */
};

/* The circumstances after an interval. */
struct u_move_case {
	const struct u_topo
		*topo; /* NULL: unknown; then each processor counts as a core, under one cache */
	struct u_cpuset places; /* the processors to which the threads may be moved */
	const uint16_t
		*used; /* of each processor by its number, in thousandths: used by all threads */
	unsigned int salt; /* of the process: others of its kind rest for other times */
};

struct u_move_decision {
	enum u_move_why why;
	unsigned int others; /* in thousandths: how much others used its core */
	struct u_cpuset to;  /* for U_MOVE_GOES: the processors of the other core */
	unsigned int
		others_there; /* how much they were used; also for U_MOVE_NO_BETTER, of the best */
};

/*
 * Decides for the n threads of a process after an interval, out[i] for threads[i].  At most one moves: the one whose
 * core others use most.  Changes what is kept of each, and the place of the one that moves.
 */
void u_move_decide(const struct u_move_case *c, struct u_move_thread *threads, unsigned int n,
		   struct u_move_decision *out);

/* Leaves one core of `set` in it, that of its first processor. */
void u_move_first_core(const struct u_topo *topo, struct u_cpuset *set);

#define U_MOVE_TEXT 160

/* Writes one line: what was decided and why.  Returns `out`. */
char *u_move_text(const struct u_move_decision *d, char out[U_MOVE_TEXT]);

#endif
