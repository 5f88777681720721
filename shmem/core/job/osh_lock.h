/* SPDX-License-Identifier: BSD-2-Clause */
/* Locks: as in the specification. */
#ifndef OSH_LOCK_H
#define OSH_LOCK_H

/*
 * Waits for the lock; an object that cannot be a lock ends the job. So does a PE that has it already, but with
 * SHMEM_THREAD_MULTIPLE that waits, for another thread to clear it.
 */
void osh_set_lock(const char *fn, long *lock);
/*
 * Completes the operations of the default context, then passes the lock on; if this PE has not got it, the job ends.
 */
void osh_clear_lock(const char *fn, long *lock);
/*
 * Does not wait for the lock. 0: this PE has it now; 1: another has it or waits for it, or this one had it before. An
 * object that cannot be a lock ends the job.
 */
int osh_test_lock(const char *fn, long *lock);

#endif
