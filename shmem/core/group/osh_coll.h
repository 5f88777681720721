/* SPDX-License-Identifier: BSD-2-Clause */
/* Collectives that move data without changing it, and what they share with reductions. */
#ifndef OSH_COLL_H
#define OSH_COLL_H

#include "osh_msg.h"
#include "osh_target.h"

/*
 * Gives n bytes of the root, a number in the team, to the dest of all, its own, too. 0, or -1 where `team` is NULL, as
 * all collectives; any other fault ends the job, such as a dest that is not symmetric memory of that length. Returns
 * when the data are here, whatever the others have. For n = 0 it waits for nobody, except with SHMEM_DEBUG.
 */
int osh_broadcast(const char *fn, struct osh_team *team, void *dest, const void *source, size_t n,
		  int root);
/*
 * Joins `n` bytes of each member, a number that may differ, in the order of the members, in the dest of all. 0, or -1
 * where `team` is NULL.
 */
int osh_collect(const char *fn, struct osh_team *team, void *dest, const void *source, size_t n);
/* As osh_collect(), where `n` is equal everywhere; for n = 0 it waits for nobody. */
int osh_fcollect(const char *fn, struct osh_team *team, void *dest, const void *source, size_t n);
/*
 * Gives `n` bytes to each member: block i of the source, to the block of the giver's number in the dest of member i. 0,
 * or -1 where `team` is NULL.
 */
int osh_alltoall(const char *fn, struct osh_team *team, void *dest, const void *source, size_t n);
/*
 * As osh_alltoall(), for blocks of `n` elements of `elem` bytes; strides in elements, of which one below 1 ends the
 * job. 0, or -1 where `team` is NULL.
 */
int osh_alltoalls(const char *fn, struct osh_team *team, void *dest, const void *source,
		  ptrdiff_t dest_stride, ptrdiff_t source_stride, size_t elem, size_t n);

/* As osh_broadcast(), for active sets: the root's dest is left alone. 0, or -1 where `team` is NULL. */
int osh_broadcast_others(const char *fn, struct osh_team *team, void *dest, const void *source,
			 size_t n, int root);

/* ---- shared with reductions ------------------------------------------------------------------ */

/* Puts n bytes to a member's `dest`, a symmetric address; messages that are sent to it later arrive after them. */
void osh_coll_put(const char *fn, struct osh_team *team, int to, void *dest, const void *source,
		  size_t n);

/*
 * Gives a member, which calls osh_coll_recv() with equal n, n bytes for its `dest`: up to OSH_MSG_DATA in the message
 * itself, more by a put before it.
 */
static inline void osh_coll_send(const char *fn, struct osh_team *team, int to, void *dest,
				 const void *source, size_t n)
{
	if (n <= OSH_MSG_DATA) {
		osh_msg_send(fn, team, to, source, n);
	} else {
		osh_coll_put(fn, team, to, dest, source, n);
		osh_msg_signal(fn, team, to);
	}
}

/* Waits for the n bytes that a member gives by osh_coll_send(); they are in `dest` then. */
static inline void osh_coll_recv(const char *fn, struct osh_team *team, int from, void *dest,
				 size_t n)
{
	osh_msg_recv(fn, team, from, dest, n <= OSH_MSG_DATA ? n : 0);
}

/* Ends the job unless `dest` is symmetric memory of n bytes or more, or n is 0. */
static inline void osh_coll_room(const char *fn, const void *dest, size_t n)
{
	size_t offset;

	if (n > 0 && osh_unlikely(osh_segment_of(dest, n, &offset) == OSH_SEGMENTS))
		osh_bad_access(fn, dest, n, osh_pe.me);
}

/* Copies n bytes, unless they are there already. */
static inline void osh_coll_copy(void *dest, const void *source, size_t n)
{
	if (dest != source && n > 0)
		__builtin_memcpy(dest, source, n);
}

#endif
