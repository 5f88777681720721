/* SPDX-License-Identifier: BSD-2-Clause */
/* Reductions and scans. */
#ifndef OSH_REDUCE_H
#define OSH_REDUCE_H

#include "osh_team.h"

/*
 * An operation that combines n elements: into[i] = into[i] op from[i].  The regions do not
 * overlap, or are the same.
 */
typedef void (*osh_combine)(void *into, const void *from, size_t n);

/* Combines `n` elements of `elem` bytes. 0, or -1 where `team` is NULL; any other fault ends the job. */
int osh_reduce(const char *fn, struct osh_team *team, void *dest, const void *source, size_t elem,
	       size_t n, osh_combine combine);
/* Prefix combination; `exclusive`: without the member's own, and of zeros for the first. Returns as osh_reduce(). */
int osh_scan(const char *fn, struct osh_team *team, void *dest, const void *source, size_t elem,
	     size_t n, osh_combine combine, bool exclusive);

#endif
