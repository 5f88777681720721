/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes that measure: their processors, and waiting for their end. */
#ifndef PF_SIDE_H
#define PF_SIDE_H

#include <stdint.h>
#include <sys/types.h>

double pf_clock_ns(void);

/* The first two that this process may use; -ENODEV when there is only one, then both are that. */
int pf_first_cpus(int cpu[2]);

/* Entries that are not positive are no processes. */
void pf_kill_children(const pid_t *pids, uint32_t n);

/*
 * Waits for the end of n children; the first failure, or the time limit in seconds, ends the
 * rest.  0, -ECHILD or -ETIMEDOUT.  SIGCHLD must be blocked.  Clears the entries of those that ended.
 */
int pf_await_children(pid_t *pids, uint32_t n, double timeout);

#endif
