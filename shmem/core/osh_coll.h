/* SPDX-License-Identifier: BSD-2-Clause */
/* What the units of collectives share. */
#ifndef OSH_COLL_H
#define OSH_COLL_H

#include "osh_check.h"
#include "osh_fast.h"
#include "osh_link.h"
#include "osh_team.h"

/* Puts n bytes to a member's `dest`, a symmetric address; messages that are sent to it later come behind. */
void osh_coll_put(const char *fn, struct osh_team *team, int to, void *dest, const void *source,
		  size_t n);

/* Tells a member that the puts before are there; and waits for that of a member. */
static inline void osh_coll_tell(const char *fn, struct osh_team *team, int to)
{
	osh_cell_send(fn, team, to, NULL, 0);
}

static inline void osh_coll_hear(const char *fn, struct osh_team *team, int from)
{
	osh_cell_recv(fn, team, from, NULL, 0);
}

/* Gives a member n bytes for its `dest`, few of them in the message itself; and waits for what a member gives. */
static inline void osh_coll_give(const char *fn, struct osh_team *team, int to, void *dest,
				 const void *source, size_t n)
{
	if (n <= OSH_CELL_DATA) {
		osh_cell_send(fn, team, to, source, n);
	} else {
		osh_coll_put(fn, team, to, dest, source, n);
		osh_coll_tell(fn, team, to);
	}
}

static inline void osh_coll_take(const char *fn, struct osh_team *team, int from, void *dest,
				 size_t n)
{
	osh_cell_recv(fn, team, from, dest, n <= OSH_CELL_DATA ? n : 0);
}

/* May some members reach each other over other hosts only?  In a ring of three all are neighbours. */
static inline bool osh_coll_has_relays(const struct osh_team *team)
{
	return !team->near && team->n > 3;
}

/* Ends the job unless `dest` is symmetric memory of that many bytes. */
static inline void osh_coll_room(const char *fn, const void *dest, size_t n)
{
	size_t offset;

	if (n > 0 && osh_unlikely(osh_segment_of(dest, n, &offset) == OSH_SEGMENTS))
		osh_bad_access(fn, dest, n, osh_pe.me);
}

/* Copies what need not be where it is already. */
static inline void osh_coll_copy(void *dest, const void *source, size_t n)
{
	if (dest != source && n > 0)
		__builtin_memcpy(dest, source, n);
}

#endif
