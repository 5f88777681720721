/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Handles, and counts of the threads that use their objects.
 *
 * A handle is an id of u_idtab.h.  Objects live in pools (vi_pool.h): their memory stays readable
 * after they are destroyed, so that a look-up racing with a destroy is refused, not a crash.
 */
#ifndef VI_HANDLE_H
#define VI_HANDLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "u_base.h"
#include "u_idtab.h"

/* Types of handles (u_idtab). */
enum vi_type { VI_TYPE_NIC = 1, VI_TYPE_VI, VI_TYPE_CQ, VI_TYPE_PTAG, VI_TYPE_CONN };

static inline uint64_t vi_handle_id(const void *handle)
{
	return (uint64_t)(uintptr_t)handle;
}

static inline void *vi_id_handle(uint64_t id)
{
	return (void *)(uintptr_t)id;
}

/*
 * The object of a handle, which is not held, or NULL; logs a handle that is a parent's.  For calls that need not be
 * fast.
 */
static inline void *vi_handle_object(const void *handle, enum vi_type type)
{
	uint64_t id = vi_handle_id(handle);
	void *object = u_idtab_get(id, (uint8_t)type);

	if (u_unlikely(object == NULL))
		u_idtab_refused(id);
	return object;
}

/*
 * Threads inside a call that may last (not Post, not Done) hold an object; until
 * they drop it a destroy is refused.  The count survives the object: a thread that comes
 * too late finds VI_REF_DEAD, or another id.
 */
#define VI_REF_DEAD 0x80000000u

struct vi_ref {
	_Atomic uint32_t users;
};

/* Drops a hold on the object. */
static inline void vi_ref_put(struct vi_ref *ref)
{
	atomic_fetch_sub_explicit(&ref->users, 1, memory_order_release);
}

/* Holds the object, so that it is not destroyed.  False, and nothing is held: it is destroyed, or being destroyed. */
static inline bool vi_ref_get(struct vi_ref *ref)
{
	if (!(atomic_fetch_add_explicit(&ref->users, 1, memory_order_acquire) & VI_REF_DEAD))
		return true;
	vi_ref_put(ref);
	return false;
}

/* Refuses further holders.  False, and nothing done: a thread holds the object, or it was killed before. */
static inline bool vi_ref_kill(struct vi_ref *ref)
{
	uint32_t none = 0;

	return atomic_compare_exchange_strong_explicit(&ref->users, &none, VI_REF_DEAD,
						       memory_order_acq_rel, memory_order_relaxed);
}

/* Lets threads hold the object again. */
static inline void vi_ref_revive(struct vi_ref *ref)
{
	atomic_fetch_and_explicit(&ref->users, ~VI_REF_DEAD, memory_order_release);
}

#endif
