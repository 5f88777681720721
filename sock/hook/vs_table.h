/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Descriptors and their objects.
 *
 * A descriptor has an object when it is a TCP connection that may be promoted or counted, or an
 * epoll set that has one; all others have none, and their calls go to the kernel after one look here.
 * Chunks of the table and objects are never unmapped, so a look-up takes no lock: it takes a
 * reference of an object that has one, then looks whether the descriptor still has the object.
 */
#ifndef VS_TABLE_H
#define VS_TABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vs_base.h"

#define VS_CHUNK 1024
#define VS_CHUNKS 1024 /* so descriptors from 1 Mi upwards have no object */

struct vs_obj;

struct vs_chunk {
	struct vs_obj *_Atomic at[VS_CHUNK];
};

extern struct vs_chunk *_Atomic vs_chunks[VS_CHUNKS];
extern _Atomic unsigned int vs_table_objects; /* descriptors that have an object */

/* The object of a descriptor, or NULL; the caller has no reference. */
static inline struct vs_obj *vs_peek(int fd)
{
	struct vs_chunk *c;

	if (vs_unlikely((unsigned int)fd >= VS_CHUNK * VS_CHUNKS))
		return NULL;
	c = atomic_load_explicit(&vs_chunks[(unsigned int)fd / VS_CHUNK], memory_order_acquire);
	if (vs_likely(!c))
		return NULL;
	return atomic_load_explicit(&c->at[(unsigned int)fd % VS_CHUNK], memory_order_acquire);
}

/* How many descriptors have an object. */
static inline unsigned int vs_table_count(void)
{
	return atomic_load_explicit(&vs_table_objects, memory_order_relaxed);
}

/* As vs_get(), for a descriptor that had an object a moment ago. */
struct vs_obj *vs_get_slow(int fd);

/* The object of a descriptor with a reference, or NULL. */
static inline struct vs_obj *vs_get(int fd)
{
	return vs_likely(!vs_peek(fd)) ? NULL : vs_get_slow(fd);
}

/*
 * An object with one reference and all else 0, whose last reference calls `end`.  NULL: no memory, or this is a signal
 * handler that has interrupted a use of the table.
 */
struct vs_obj *vs_obj_create(enum vs_kind kind, void (*end)(struct vs_obj *o));
void vs_hold(struct vs_obj *o);
/* Gives a reference back; the last one ends the object.  Then this thread's late ends are tried (vs_late.h). */
void vs_put(struct vs_obj *o);

/* Takes a reference of an object that may have ended: false, it has, and is not to be used. */
bool vs_hold_living(struct vs_obj *o);

/*
 * Gives a descriptor an object, of which the table takes a reference; an earlier one loses it.  0; -ENOMEM, also in a
 * signal handler that has interrupted a use of the table; -EMFILE for a number that is too high to have one.
 */
int vs_table_set(int fd, struct vs_obj *o);
/* Takes the object away: the caller gets the reference of the table.  NULL: it had none. */
struct vs_obj *vs_table_take(int fd);
/* The lowest descriptor from `from` on that has an object, or -1. */
int vs_table_next(int from);
/* In a child of fork(): the lock that another thread may have held is free. */
void vs_table_forked(void);

#endif
