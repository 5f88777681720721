/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Helper threads: named (vi-xfer0 ...), with all signals blocked so that the
 * application's handlers never run on them, and not pinned by an accident of
 * their creator: they may run wherever the process may.
 */
#ifndef U_THREAD_H
#define U_THREAD_H

#include <pthread.h>

/* Returns 0, or -ENOMEM after logging why; never a code that means "try later". */
int u_thread_start(pthread_t *thread, const char *name, void *(*run)(void *), void *arg);

#endif
