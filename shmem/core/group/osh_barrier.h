/* SPDX-License-Identifier: BSD-2-Clause */
/* Synchronisation of the members of a team. */
#ifndef OSH_BARRIER_H
#define OSH_BARRIER_H

#include "osh_team.h"

/* Waits until all members have called it; completes no operations. 0; or -1: `team` is NULL. */
int osh_sync(const char *fn, struct osh_team *team);
/* osh_sync() of the world; outside of a job, and in a child of fork(), it ends the process. */
void osh_sync_all(const char *fn);
/* Completes the operations of the default context, then as osh_sync_all(). */
void osh_barrier_all(const char *fn);
/*
 * Synchronises all PEs at their end, when they take part in nothing else any more: a PE that waits for another message
 * ends the job. Completes no operations. The world has to exist.
 */
void osh_barrier_end(const char *fn);

#endif
