/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Helper threads: named (vi-xfer0 ...), with all signals blocked so that the
 * application's handlers never run on them.  They do not inherit the affinity of
 * their creator: they may run on all processors of the process, or only on the one
 * asked for.  Once a thread has its name it has its affinity too.
 */
#ifndef U_THREAD_H
#define U_THREAD_H

#include <pthread.h>

#define U_ANY_CPU (-1)

/*
 * cpu is the one processor to run on, or U_ANY_CPU.  A processor that the thread may not use is logged and
 * not an error: the thread runs wherever the process may.
 * Returns 0, or -ENOMEM after logging why; never a code that means "try later".
 */
int u_thread_start_on(int cpu, pthread_t *thread, const char *name, void *(*run)(void *),
		      void *arg);

/* Starts a helper thread on any processor of the process. */
int u_thread_start(pthread_t *thread, const char *name, void *(*run)(void *), void *arg);

#endif
