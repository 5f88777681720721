/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Helper threads: named (vi-xfer0 ...), with all signals blocked so that the
 * application's handlers never run on them.  They do not inherit the affinity of
 * their creator: they may run on all processors of the process, or only on given
 * ones.  Once a thread has its name it has its affinity too.
 */
#ifndef U_THREAD_H
#define U_THREAD_H

#include <pthread.h>

#include "u_cpuset.h"

/*
 * Starts a helper thread on the processors of `cpus`; NULL or none: those of the process.  If the thread may not use
 * them, that is logged and no error: it runs wherever the process may.
 * Returns 0, or -ENOMEM after logging why; never a code that means "try later".  *thread is set only after 0;
 * u_thread_join() or u_thread_detach() has to follow.
 */
int u_thread_start_on(const struct u_cpuset *cpus, pthread_t *thread, const char *name,
		      void *(*run)(void *), void *arg);

/* Starts a helper thread on any processor of the process. */
int u_thread_start(pthread_t *thread, const char *name, void *(*run)(void *), void *arg);

/* Waits until a helper thread has ended, or declares that no thread will.  Call one of the two for each thread. */
void u_thread_join(pthread_t thread);
void u_thread_detach(pthread_t thread);

/* Binds a thread, which may run already, to processors.  Returns 0 or -errno. */
int u_thread_move(pthread_t thread, const struct u_cpuset *cpus);

/* Binds the thread of this number of the kernel, one of this process that runs.  Returns 0 or -errno. */
int u_thread_move_number(int tid, const struct u_cpuset *cpus);

/* Gives the processors on which the calling thread may run.  Returns 0, or -errno and an empty set. */
int u_thread_own_cpus(struct u_cpuset *out);

/*
 * Gives the processors of the process, which are those of its first thread, at the time of the call or of
 * u_thread_keep_cpus().  Returns 0, or -errno and an empty set.
 */
int u_thread_process_cpus(struct u_cpuset *out);

/*
 * Call it before a thread of the application is bound, which may be the first one: keeps the set of the process, for
 * good; further calls do nothing.
 */
void u_thread_keep_cpus(void);

/* In a child of fork(), before it has other threads: initialises the lock again. */
void u_thread_forked(void);

#endif
