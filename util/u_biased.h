/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The lock of the data path: one per VI queue and per completion queue.
 *
 * Nearly always one thread takes it again and again.  Such a lock is *biased* to that
 * thread: taking and dropping it are plain loads and stores, without a locked
 * instruction.  Another thread that wants the lock revokes the bias, which costs it
 * a membarrier (microseconds).  From then on the lock is an ordinary one, until one
 * thread has taken it many times in a row; "many" doubles with each bias that was
 * revoked, so a lock that threads really share soon stays an ordinary one.
 *
 * Not recursive (a try of the holder fails).  Zero-initialised is unlocked.  A waiter spins
 * briefly, then sleeps: two threads never spin against each other on one core.
 *
 * tests/model/biased.pml is the model of the handshake.
 */
#ifndef U_BIASED_H
#define U_BIASED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "u_base.h"

/*
 * Only one thread ever writes `seq` of a slot, the one that got the slot: a late
 * access of a thread that lost the bias must not disturb the next owner.  When all
 * slots are in use the lock is an ordinary one for all other threads.
 */
#define U_BIASED_SLOTS 4u

struct u_biased {
	_Atomic uint32_t owner; /* token + slot of the thread it is biased to, 0: none */
	_Atomic uint32_t word;	/* the ordinary lock: 0 free, 1 held, 2 held and a thread sleeps */
	_Atomic uint32_t held;	/* odd: the holder holds `word`; writer: the holder of `word` */
	struct {
		_Atomic uint32_t token; /* writer: the holder of `word`, once */
		_Atomic uint32_t seq;	/* odd: it holds the lock, or is about to check `owner` */
	} slots[U_BIASED_SLOTS];
	/* Used by the thread that holds the lock: */
	_Atomic uint32_t *entered; /* the `seq` by which it holds the lock; NULL: it holds `word` */
	/* Under `word`: */
	uint32_t last;	 /* the thread that held it last */
	uint32_t streak; /* how often it has taken it in a row */
	uint32_t need;	 /* the streak that earns the bias; 0: the first one */
};

#define U_NO_TOKEN (UINT32_MAX - (U_BIASED_SLOTS - 1))

/*
 * Names this thread: a multiple of U_BIASED_SLOTS.  It is U_NO_TOKEN until the thread first takes a lock
 * by the slow path, and stays so for the threads after the first 2^30: no lock is biased to those.
 */
extern __thread uint32_t u_thread_token __attribute__((tls_model("initial-exec")));
/* How many threads have wanted a token; for tests. */
extern _Atomic uint64_t u_biased_threads;

/*
 * The slow paths of u_biased_take(), u_biased_try() and u_biased_drop(): for a lock that is not biased to the caller.
 */
void u_biased_slow(struct u_biased *l);
/* False: it is held.  Waits only for an owner of the bias that takes the lock at the same moment. */
bool u_biased_try_slow(struct u_biased *l);
/* For a holder by `word` (`entered` is NULL): drops the lock, perhaps biases it to the caller, and wakes one waiter. */
void u_biased_drop_slow(struct u_biased *l);

/*
 * Takes the lock if it is biased to the calling thread; false: it is not, and nothing was taken.  `asks`: the thread
 * may hold the lock already; then this returns false.  Without `asks` a thread that holds it must not call this.
 */
static inline bool u_biased_enter(struct u_biased *l, bool asks)
{
	const uint32_t owner = atomic_load_explicit(&l->owner, memory_order_relaxed);
	const uint32_t slot = owner - u_thread_token;
	_Atomic uint32_t *seq;
	uint32_t before;

	if (u_unlikely(slot >= U_BIASED_SLOTS))
		return false;
	seq = &l->slots[slot].seq;
	before = atomic_load_explicit(seq, memory_order_relaxed);
	if (asks && u_unlikely(before & 1))
		return false;
	atomic_store_explicit(seq, before + 1, memory_order_relaxed);
	/* The membarrier of a thread that revokes the bias replaces the fence between store and load. */
	atomic_signal_fence(memory_order_seq_cst);
	if (u_unlikely(atomic_load_explicit(&l->owner, memory_order_acquire) != owner)) {
		atomic_store_explicit(seq, before + 2, memory_order_release);
		return false;
	}
	l->entered = seq;
	return true;
}

static inline void u_biased_take(struct u_biased *l)
{
	if (u_unlikely(!u_biased_enter(l, false)))
		u_biased_slow(l);
}

/* False: the lock is held, by another thread or by this one. */
static inline bool u_biased_try(struct u_biased *l)
{
	return u_likely(u_biased_enter(l, true)) || u_biased_try_slow(l);
}

/* Drops the lock.  A slot that was entered is left, even if the bias has been revoked since. */
static inline void u_biased_drop(struct u_biased *l)
{
	_Atomic uint32_t *seq = l->entered;

	if (u_likely(seq != NULL))
		atomic_store_explicit(seq, atomic_load_explicit(seq, memory_order_relaxed) + 1,
				      memory_order_release);
	else
		u_biased_drop_slow(l);
}

/* Does a thread hold the lock, or is it about to check `owner`?  The answer may change at any time. */
static inline bool u_biased_held(const struct u_biased *l)
{
	const uint32_t owner = atomic_load_explicit(&l->owner, memory_order_relaxed);
	const _Atomic uint32_t *seq = &l->slots[owner % U_BIASED_SLOTS].seq;

	return (atomic_load_explicit(&l->held, memory_order_relaxed) & 1) != 0 ||
	       (owner != 0 && (atomic_load_explicit(seq, memory_order_relaxed) & 1) != 0);
}

/*
 * A grace period: u_biased_grace_begin(), then u_biased_grace() on each of some locks, which
 * waits.  After that every thread that held such a lock at the beginning has dropped it at least
 * once, and a thread that takes it later sees what the caller stored before the beginning.
 * The caller holds none of the locks.
 */
void u_biased_grace_begin(void);
void u_biased_grace(struct u_biased *l);

#endif
