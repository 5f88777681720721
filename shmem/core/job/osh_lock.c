/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * MCS locks (Mellor-Crummey and Scott): a queue of PEs, each of which spins on memory of its own.  The object at the
 * lock's home, a PE that its offset tells, has in its upper half the PE that asked last, or 0.  The object at each PE
 * has in its lower half the PE that follows it in the queue, and whether the lock was passed to it.
 *
 * Writers: of the upper half all PEs, by atomic operations; of the lower half its PE, the one that follows it in the
 * queue and the one before it, by atomic operations once the PE is in the queue.
 *
 * Threads of one PE share its object, so one of them has a lock or waits for it at a time; the others
 * queue in the process.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "osh_amo.h"
#include "osh_lock.h"
#include "osh_order.h"
#include "osh_target.h"
#include "osh_wait.h"

#define PASSED 1u /* the lock is this PE's, or will be if nobody has it */
#define FOLLOWS(pe) ((uint32_t)((pe) + 1) << 1)
#define FOLLOWER(word) ((int)((word) >> 1) - 1)

/* A thread of this PE that has a lock or waits for it, in the order of asking. */
struct local {
	long *lock;
	struct local *next;
};

static struct {
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	struct local *list;
} held = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, NULL };

/* The lower half of the object, for its own PE; the upper one has the higher address on a little-endian processor. */
static uint32_t *own_half(long *lock)
{
	return (uint32_t *)lock;
}

/* The upper half of the object, which has at the home of the lock the PE that asked last. */
static uint32_t *last_half(long *lock)
{
	return (uint32_t *)lock + 1;
}

/* The PE where the lock has its queue; an object that is not symmetric, or not aligned, ends the job. */
static int home_of(const char *fn, const long *lock)
{
	size_t offset;

	if (osh_segment_of(lock, sizeof(*lock), &offset) == OSH_SEGMENTS)
		osh_bad_access(fn, lock, sizeof(*lock), osh_pe.me);
	if (offset % sizeof(*lock) != 0)
		osh_fatal("%s: the lock at %p is not aligned to its %zu bytes", fn,
			  (const void *)lock, sizeof(*lock));
	return (int)(offset / sizeof(*lock) % (size_t)osh_pe.n);
}

/* ---- threads of this PE ---------------------------------------------------------------------- */

/* Where the list names the thread whose turn it is, or where the list ends. The caller has the mutex. */
static struct local **find_first(const long *lock)
{
	struct local **at = &held.list;

	while (*at != NULL && (*at)->lock != lock)
		at = &(*at)->next;
	return at;
}

/* Adds *l at the end of the list, which keeps it. The caller has the mutex. */
static void append(struct local *l)
{
	struct local **at = &held.list;

	while (*at != NULL)
		at = &(*at)->next;
	*at = l;
}

/* Waits until it is the turn of *l; drops the mutex, which the caller has, meanwhile. */
static OSH_COLD void wait_for_turn(const char *fn, const struct local *l)
{
	osh_wait_show(fn, l->lock, osh_pe.me);
	while (*find_first(l->lock) != l)
		pthread_cond_wait(&held.cond, &held.mutex);
	osh_wait_shown_end();
}

/*
 * Queues this thread among those of its PE that use the lock, and waits for its turn; takes the mutex itself. False,
 * only without `wait`: another thread has it. True at once, where only one thread may call.
 */
static bool enter(const char *fn, long *lock, bool wait)
{
	struct local *l;
	bool mine;

	if (osh_pe.level != OSH_THREAD_MULTIPLE)
		return true;
	l = malloc(sizeof(*l));
	if (l == NULL)
		osh_fatal("%s: out of memory", fn);
	*l = (struct local){ lock, NULL };
	pthread_mutex_lock(&held.mutex);
	mine = *find_first(lock) == NULL;
	if (mine || wait)
		append(l);
	if (!mine && wait)
		wait_for_turn(fn, l);
	pthread_mutex_unlock(&held.mutex);
	if (!mine && !wait)
		free(l);
	return mine || wait;
}

/*
 * Ends the turn of the thread of this PE whose turn it is, and wakes the others; takes the mutex itself. Does nothing
 * where only one thread may call.
 */
static void leave(long *lock)
{
	struct local **at, *l;

	if (osh_pe.level != OSH_THREAD_MULTIPLE)
		return;
	pthread_mutex_lock(&held.mutex);
	at = find_first(lock);
	l = *at;
	if (l != NULL) {
		*at = l->next;
		free(l);
	}
	pthread_cond_broadcast(&held.cond);
	pthread_mutex_unlock(&held.mutex);
}

/* ---- the lock -------------------------------------------------------------------------------- */

/*
 * The half of the object that belongs to this PE. R: pairs with the atomic operation by which the PE before passes
 * the lock: what it did under the lock is seen after it.
 */
static uint32_t own_word(long *lock)
{
	return __atomic_load_n(own_half(lock), __ATOMIC_ACQUIRE);
}

void osh_set_lock(const char *fn, long *lock)
{
	struct osh_wait w = OSH_WAIT(fn, lock);
	int home = home_of(fn, lock);
	uint32_t before;

	enter(fn, lock, true);
	/* A: this word before the swap by which the next PE learns of this one. */
	__atomic_store_n(own_half(lock), PASSED, __ATOMIC_RELEASE);
	before = osh_amo32(fn, &osh_ctx_default, OSH_AMO_SWAP, last_half(lock),
			   (uint32_t)osh_pe.me + 1, 0, home);
	if (before == 0)
		return;
	if (before == (uint32_t)osh_pe.me + 1 || before > (uint32_t)osh_pe.n)
		osh_fatal("%s: the lock at %p is held by this PE already, or was overwritten", fn,
			  (void *)lock);
	w.pe = (int)before - 1;
	/* The next PE may have told already that it follows. */
	__atomic_fetch_and(own_half(lock), ~PASSED, __ATOMIC_RELEASE);
	osh_amo32_post(fn, &osh_ctx_default, OSH_AMO_OR, own_half(lock), FOLLOWS(osh_pe.me), w.pe);
	while (!(own_word(lock) & PASSED))
		osh_wait(&w);
	osh_wait_end(&w);
}

int osh_test_lock(const char *fn, long *lock)
{
	int home = home_of(fn, lock);

	if (!enter(fn, lock, false))
		return 1;
	/* Only a PE that has the lock or waits for it is followed by another. */
	if (osh_amo32(fn, &osh_ctx_default, OSH_AMO_FETCH, last_half(lock), 0, 0, home) == 0) {
		__atomic_store_n(own_half(lock), PASSED, __ATOMIC_RELEASE);
		if (osh_amo32(fn, &osh_ctx_default, OSH_AMO_COMPARE_SWAP, last_half(lock),
			      (uint32_t)osh_pe.me + 1, 0, home) == 0)
			return 0;
		__atomic_store_n(own_half(lock), 0, __ATOMIC_RELEASE);
	}
	leave(lock);
	return 1;
}

void osh_clear_lock(const char *fn, long *lock)
{
	struct osh_wait w = OSH_WAIT(fn, lock);
	int home = home_of(fn, lock), next;
	uint32_t last;

	if (!(own_word(lock) & PASSED))
		osh_fatal("%s: the lock at %p is not held by this PE, or was overwritten", fn,
			  (void *)lock);
	osh_quiet(&osh_ctx_default);
	if (FOLLOWER(own_word(lock)) < 0) {
		last = osh_amo32(fn, &osh_ctx_default, OSH_AMO_COMPARE_SWAP, last_half(lock), 0,
				 (uint32_t)osh_pe.me + 1, home);
		if (last == (uint32_t)osh_pe.me + 1) {
			__atomic_store_n(own_half(lock), 0, __ATOMIC_RELEASE);
			leave(lock);
			return;
		}
		if (last == 0)
			osh_fatal("%s: the lock at %p was overwritten", fn, (void *)lock);
		/* Another has asked, and is about to say that it follows. */
		while (FOLLOWER(own_word(lock)) < 0)
			osh_wait(&w);
		osh_wait_end(&w);
	}
	next = FOLLOWER(own_word(lock));
	/* A: after osh_quiet(); the atomic operation passes the lock and pairs with own_word() of that PE. */
	__atomic_store_n(own_half(lock), 0, __ATOMIC_RELEASE);
	osh_amo32_post(fn, &osh_ctx_default, OSH_AMO_OR, own_half(lock), PASSED, next);
	leave(lock);
}
