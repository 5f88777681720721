/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The one lock of the data path: short, per VI queue, almost never contended.
 *
 * A waiter spins briefly, then sleeps in the kernel: two threads never spin
 * against each other on one core.  Not recursive.  Zero-initialised is unlocked.
 */
#ifndef U_LOCK_H
#define U_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "u_base.h"

struct u_lock {
	_Atomic uint32_t word; /* 0 free, 1 held, 2 held and a thread sleeps */
};

#define U_LOCK_INIT                                                                                \
	{                                                                                          \
		0                                                                                  \
	}

/* The slow paths of u_lock_take() and u_lock_drop(): take the lock after a wait, and wake a thread that sleeps. */
void u_lock_slow(struct u_lock *l);
void u_lock_wake(struct u_lock *l);

/* False: it is held, perhaps by this thread. */
static inline bool u_lock_try(struct u_lock *l)
{
	uint32_t free_word = 0;

	return atomic_load_explicit(&l->word, memory_order_relaxed) == 0 &&
	       atomic_compare_exchange_strong_explicit(&l->word, &free_word, 1,
						       memory_order_acquire, memory_order_relaxed);
}

static inline void u_lock_take(struct u_lock *l)
{
	if (u_unlikely(!u_lock_try(l)))
		u_lock_slow(l);
}

static inline void u_lock_drop(struct u_lock *l)
{
	if (u_unlikely(atomic_exchange_explicit(&l->word, 0, memory_order_release) == 2))
		u_lock_wake(l);
}

#endif
