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

/*
 * Combines the `n` elements of `elem` bytes of all members, one by one, into the dest of all, which may be the source.
 * 0, or -1 where `team` is NULL; any other fault ends the job. For n = 0 it waits for nobody.
 */
int osh_reduce(const char *fn, struct osh_team *team, void *dest, const void *source, size_t elem,
	       size_t n, osh_combine combine);
/*
 * Combines the elements of the members up to this one, into the dest of this one, which may be the source;
 * `exclusive`: without the member's own, and zeros for the first. Returns as osh_reduce().
 */
int osh_scan(const char *fn, struct osh_team *team, void *dest, const void *source, size_t elem,
	     size_t n, osh_combine combine, bool exclusive);

#endif
