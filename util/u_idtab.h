/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Handles that cannot be forged into pointers: an id names a slot and its
 * generation, so that a stale or invented handle is refused, not followed.
 *
 * An id is 64 bits: type (8) | generation (24) | slot (32); never 0.  Look-up
 * takes no lock.  The memory of a slot's object must stay readable after
 * u_idtab_del() (objects live in pools), because a look-up may race with it.
 *
 * Ids are valid in the process that made them.  In a child of fork() every id of the
 * parent is refused, with one line in the log; ids that the child makes differ from those.
 */
#ifndef U_IDTAB_H
#define U_IDTAB_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "u_base.h"

#define U_IDTAB_SLOTS (1u << 18) /* for live ids and for slots that are not used again yet */

struct u_idtab_slot {
	_Atomic uint64_t id; /* the live id, 0 when free */
	void *_Atomic object;
};

/* One table for the process.  It has 4 MiB, but only pages in use take memory. */
extern struct u_idtab_slot u_idtab_slots[U_IDTAB_SLOTS];

/*
 * After a failed look-up: writes the line about ids of a parent, once in a process, if `id` is one of them or
 * u_idtab_orphaned().
 */
void u_idtab_refused(uint64_t id);

/* In a child of fork(), before it has other threads: from here on its parent's ids are refused. */
void u_idtab_forked(void);

/*
 * Was this process made by clone() or _Fork(), so that u_idtab_forked() did not run?  The
 * kernel clears the table there: every look-up fails, nothing can be entered.  This is known only
 * if pages have 4096 bytes.
 */
bool u_idtab_orphaned(void);

/*
 * Enters `object` under a fresh id of `type` (1..255).  Returns 0 when the table is full or u_idtab_orphaned(), there
 * is no memory, or `type` is 0 or `object` NULL.
 */
uint64_t u_idtab_add(uint8_t type, void *object);

/* Removes `id`; later look-ups of it return NULL.  Unknown ids are ignored. */
void u_idtab_del(uint64_t id);

/*
 * The object of `type` in the slot that `id` names, or NULL.  It may be the object of another id, which
 * the slot had before or has now: the caller compares the id in the object.
 */
static inline void *u_idtab_peek(uint64_t id, uint8_t type)
{
	const struct u_idtab_slot *slot = &u_idtab_slots[id % U_IDTAB_SLOTS];
	void *object;

	if (u_unlikely((uint8_t)(atomic_load_explicit(&slot->id, memory_order_acquire) >> 56) !=
		       type))
		return NULL;
	object = atomic_load_explicit(&slot->object, memory_order_relaxed);
	/* A thread that sees an id sees an object, which stays there when the id is removed. */
	if (object == NULL)
		__builtin_unreachable();
	return object;
}

/* The object entered under `id` if it is live and of `type`, else NULL. */
static inline void *u_idtab_get(uint64_t id, uint8_t type)
{
	/* An index beyond the table leads to another slot, whose id differs from this one. */
	const struct u_idtab_slot *slot = &u_idtab_slots[id % U_IDTAB_SLOTS];

	if (u_unlikely((uint8_t)(id >> 56) != type ||
		       atomic_load_explicit(&slot->id, memory_order_acquire) != id))
		return NULL;
	return atomic_load_explicit(&slot->object, memory_order_relaxed);
}

#endif
