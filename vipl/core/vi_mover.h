/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Moves service threads by the load of the last interval, where the rules have the word `dynamic`: a thread of the
 * library reads the loads, u_move_decide() decides.  docs/placement.md, «Service threads that move».
 */
#ifndef VI_MOVER_H
#define VI_MOVER_H

#include <stdatomic.h>

#include "u_affinity.h"
#include "u_load.h"
#include "u_place_move.h"

#define VI_MOVER_MOST 64 /* threads; others stay where they are */

/* Shared with the thread that moves others, by the lock that vi_mover_create() got. */
struct vi_mover {
	pthread_mutex_t *lock;
	const struct u_topo *topo;
	struct u_cpuset places;
	unsigned int count;
	int number[VI_MOVER_MOST];		  /* of the thread, in the kernel */
	unsigned int index[VI_MOVER_MOST];	  /* among those of its role, for the log */
	struct u_load_thread read[VI_MOVER_MOST]; /* at the end of the last interval */
	struct u_move_thread threads[VI_MOVER_MOST];
	struct u_move_decision decided[VI_MOVER_MOST];
	enum u_move_why said[VI_MOVER_MOST]; /* in the log */
	struct u_load last, now;
	uint16_t used[U_CPUSET_END]; /* in the last interval */
	_Atomic uint32_t ends;
	bool runs;
	pthread_t thread;
};

/*
 * Makes one without threads, for rules that stay until vi_mover_destroy().  `lock`: held in all other calls but that
 * one.  NULL: no memory.
 */
struct vi_mover *vi_mover_create(const struct u_affinity *a, pthread_mutex_t *lock);
/* Ends its thread, so without the lock held; those that it has moved stay where they are.  Accepts NULL. */
void vi_mover_destroy(struct vi_mover *m);

/*
 * Takes the calling thread, number `index` of its role, which was placed on `cpus`, and starts the thread that moves.
 * 0, also if there are too many; or -errno.
 */
int vi_mover_add(struct vi_mover *m, unsigned int index, const struct u_cpuset *cpus);

/*
 * The end of an interval, of which `used` and the `used` of each thread tell: decides, moves, and logs each move, and
 * each other decision that differs from the last one about its thread.
 */
void vi_mover_step(struct vi_mover *m);

#endif
