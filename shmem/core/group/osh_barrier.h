/* SPDX-License-Identifier: BSD-2-Clause */
/* Synchronisation of the members of a team. */
#ifndef OSH_BARRIER_H
#define OSH_BARRIER_H

#include "osh_team.h"

int osh_sync(const char *fn, struct osh_team *team);
void osh_sync_all(const char *fn);
void osh_barrier_all(const char *fn);
/* Synchronises all PEs at their end, when they take part in nothing else any more. */
void osh_barrier_end(const char *fn);

#endif
