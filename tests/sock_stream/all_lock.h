/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * all_lock.h - the locks of the lists of all streams and wait objects, and of a wait object, as a thread has
 * them that a handler interrupts
 */
#ifndef ALL_LOCK_H
#define ALL_LOCK_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

void all_lock(void);
void all_unlock(void);
bool all_locked(void);

struct st_wait;
void wait_lock(struct st_wait *w);
void wait_unlock(struct st_wait *w);

/* The lengths of the lists; by the thread that has the lock. */
int all_streams(void);
int all_waits(void);

#ifdef __cplusplus
}
#endif

#endif
