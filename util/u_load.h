/* SPDX-License-Identifier: BSD-2-Clause */
/* How much of each processor, and by a thread, was used: what the kernel counts, and the difference of two readings. */
#ifndef U_LOAD_H
#define U_LOAD_H

#include <stdint.h>

#include "u_cpuset.h"

#define U_LOAD_FILE "/proc/stat"
#define U_LOAD_THREADS "/proc/self/task"

/* The kernel's ticks for each processor since it booted; 0 for those that are not online. */
struct u_load {
	uint64_t used[U_CPUSET_END]; /* by threads, interrupts, and other guests of the machine */
	uint64_t all[U_CPUSET_END];
};

/* Reads it; `path` is U_LOAD_FILE except in tests.  0; or -errno, -ENODATA for a file without processors. */
int u_load_read(const char *path, struct u_load *out);

/* How much of each was used between two readings, in thousandths; all of one that is not online at both. */
void u_load_between(const struct u_load *before, const struct u_load *after,
		    uint16_t out[U_CPUSET_END]);

/* A thread of this process. */
struct u_load_thread {
	uint64_t started; /* with the number tells it from a later thread */
	uint64_t used;	  /* ticks since then */
};

/* Reads it; `folder` is U_LOAD_THREADS except in tests.  0; or -errno, -ESRCH: there is no such thread any more. */
int u_load_read_thread(const char *folder, int tid, struct u_load_thread *out);

#endif
