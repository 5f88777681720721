/* SPDX-License-Identifier: BSD-2-Clause */
/* What SHMEM_DEBUG adds: members of a collective compare their arguments. */
#ifndef OSH_CHECK_H
#define OSH_CHECK_H

#include "osh_env.h"
#include "osh_team.h"

/*
 * What osh_check() does with SHMEM_DEBUG: all members exchange messages, and a difference in routine, dest (NULL is
 * one, too), length or root ends the job. Does nothing for NULL and for one member. The caller sets the kind of the
 * team after it.
 */
void osh_check_arguments(const char *fn, struct osh_team *team, const void *dest, size_t n,
			 int root);

/*
 * What osh_check_source() does with SHMEM_DEBUG: ends the job if `source` is not symmetric memory of n bytes here, or,
 * by messages of all members, not the same symmetric address at the others. The team is not NULL; the caller sets its
 * kind after it.
 */
void osh_check_symmetric(const char *fn, struct osh_team *team, const void *source, size_t n);

/* With SHMEM_DEBUG: ends the job if another member calls another routine, or with another dest, length or root. */
static inline void osh_check(const char *fn, struct osh_team *team, const void *dest, size_t n,
			     int root)
{
	if (osh_unlikely(osh_env.debug))
		osh_check_arguments(fn, team, dest, n, root);
}

/* With SHMEM_DEBUG: ends the job if `source` is not one symmetric address at all members. */
static inline void osh_check_source(const char *fn, struct osh_team *team, const void *source,
				    size_t n)
{
	if (osh_unlikely(osh_env.debug))
		osh_check_symmetric(fn, team, source, n);
}

#endif
