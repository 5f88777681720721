/* SPDX-License-Identifier: BSD-2-Clause */
/* st_core.h - the cores of pollers, and which of them has the core of the caller */
#ifndef ST_CORE_H
#define ST_CORE_H

#include <sched.h>
#include <stdbool.h>

struct st_core {
	bool one;	/* the thread is held on one core */
	cpu_set_t cpus; /* the processors of that core; those of the thread, where `one` is false */
};

/*
 * Places the calling thread, poller `number`, by the rules, and gives its core if these put it on that of the threads
 * that it serves; else `cpus` is empty.  `one` is false also where the kernel does not tell which processors are a
 * core.
 */
void st_core_place(unsigned number, struct st_core *out);
/*
 * The index among `n` of one that has the processor of the calling thread: `own` if that has, or if none has.  *here:
 * it is held on the core of the calling thread.
 */
unsigned st_core_pick(const struct st_core *cores, unsigned n, unsigned own, bool *here);
/* True: one of them is a core with one processor. */
bool st_core_any_single(const struct st_core *cores, unsigned n);

#endif
