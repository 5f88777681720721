/* SPDX-License-Identifier: BSD-2-Clause */
/* Active sets, the teams of old programs. */
#ifndef OSH_SET_H
#define OSH_SET_H

#include "osh_team.h"

/*
 * A team for an active set: start, start + 2^log_stride, ... `size` PEs of the world. Kept by the library, so that
 * the next use finds it; for all PEs it is osh_world. The first use is collective over its members. Never NULL: an
 * invalid set, or one without this PE, ends the job, and a call outside of a job the process.
 */
struct osh_team *osh_active_set(const char *fn, int start, int log_stride, int size);

/* Ends the teams of all active sets; before osh_teams_close(). */
void osh_sets_close(void);

#endif
