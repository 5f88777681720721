/* SPDX-License-Identifier: BSD-2-Clause */
#include "u_biased.h"

#include "u_futex.h"
#include "u_idle.h"
#include "u_membarrier.h"
#include "u_time.h"

#define SPINS 64
#define NAP_NS 50000
#define FIRST_NEED 32u
#define MOST_NEED (1u << 24)

__thread uint32_t u_thread_token __attribute__((tls_model("initial-exec"))) = U_NO_TOKEN;

/* The thread sanitizer does not know that a membarrier orders stores and loads. */
#if defined(__SANITIZE_THREAD__)
static bool may_bias(void)
{
	return false;
}
#else
static bool may_bias(void)
{
	return u_membarrier_private_available();
}
#endif

_Atomic uint64_t u_biased_threads;

/* The token of this thread.  No token is given twice; U_NO_TOKEN when none is left. */
static uint32_t own_token(void)
{
	uint64_t token;

	if (u_thread_token == U_NO_TOKEN) {
		token = U_BIASED_SLOTS *
			(atomic_fetch_add_explicit(&u_biased_threads, 1, memory_order_relaxed) + 1);
		u_thread_token = (uint32_t)u_min64(token, U_NO_TOKEN);
	}
	return u_thread_token;
}

/* Waits until *seq is not `seen`; the thread that changes it does not wake waiters. */
static void wait_seq(const _Atomic uint32_t *seq, uint32_t seen)
{
	struct u_idle_past past;
	struct u_idle idle;

	u_idle_past_init(&past, U_IDLE_ADAPTIVE);
	u_idle_begin(&idle, U_IDLE_ADAPTIVE, &past);
	while (atomic_load_explicit(seq, memory_order_acquire) == seen)
		if (u_idle(&idle) == U_IDLE_SLEEP)
			u_nap_ns(NAP_NS);
}

/*
 * Ends the bias, and waits until its owner does not hold the lock.  The next bias needs twice the streak.  Caller
 * holds `word`.
 */
static void take_bias_away(struct u_biased *l, uint32_t owner)
{
	const _Atomic uint32_t *seq = &l->slots[owner % U_BIASED_SLOTS].seq;
	uint32_t seen;

	atomic_store_explicit(&l->owner, 0, memory_order_relaxed);
	/*
	 * A thread that reads `owner` after this finds it changed; the sequence shows a thread that read it
	 * before.
	 */
	u_membarrier_private();
	seen = atomic_load_explicit(seq, memory_order_acquire);
	if (seen & 1)
		wait_seq(seq, seen);
	l->need = l->need < MOST_NEED ? l->need * 2 : l->need;
	l->streak = 0;
}

/* The slot of thread `me`, a new one if need be; U_BIASED_SLOTS when there is none.  Caller holds `word`. */
static uint32_t find_slot(struct u_biased *l, uint32_t me)
{
	for (uint32_t i = 0; i < U_BIASED_SLOTS; i++) {
		uint32_t token = atomic_load_explicit(&l->slots[i].token, memory_order_relaxed);

		if (token == me)
			return i;
		if (token == 0) {
			atomic_store_explicit(&l->slots[i].token, me, memory_order_relaxed);
			return i;
		}
	}
	return U_BIASED_SLOTS;
}

/* Biases the lock to thread `me`, if that is possible.  Caller holds `word`. */
static U_COLD void earn_bias(struct u_biased *l, uint32_t me)
{
	uint32_t slot = may_bias() && me != U_NO_TOKEN ? find_slot(l, me) : U_BIASED_SLOTS;

	if (slot < U_BIASED_SLOTS)
		atomic_store_explicit(&l->owner, me + slot, memory_order_relaxed);
	l->streak = 0;
}

/* Makes the caller, who has just taken `word`, the holder of the lock; ends a bias, which may wait for its owner. */
static void become_holder(struct u_biased *l)
{
	uint32_t owner = atomic_load_explicit(&l->owner, memory_order_relaxed);
	uint32_t me = own_token();

	if (owner != 0)
		take_bias_away(l, owner);
	/* Odd before the holder loads anything: u_biased_grace_begin() orders it. */
	atomic_store_explicit(&l->held, atomic_load_explicit(&l->held, memory_order_relaxed) + 1,
			      memory_order_relaxed);
	l->entered = NULL;
	if (l->last != me) {
		l->last = me;
		l->streak = 0;
	}
	if (l->need == 0)
		l->need = FIRST_NEED;
	l->streak++;
}

/* Takes `word` if it is free; become_holder() has to follow.  False: a thread holds it. */
static bool word_try(struct u_biased *l)
{
	uint32_t free_word = 0;

	return atomic_load_explicit(&l->word, memory_order_relaxed) == 0 &&
	       atomic_compare_exchange_strong_explicit(&l->word, &free_word, 1,
						       memory_order_acquire, memory_order_relaxed);
}

/* Takes `word`: spins, then sleeps until it is free.  become_holder() has to follow. */
static void word_take(struct u_biased *l)
{
	for (int i = 0; i < SPINS; i++) {
		if (word_try(l))
			return;
		u_pause();
	}
	while (atomic_exchange_explicit(&l->word, 2, memory_order_acquire) != 0)
		u_futex_wait(&l->word, 2, UINT32_MAX, -1, true);
}

void u_biased_slow(struct u_biased *l)
{
	word_take(l);
	become_holder(l);
}

bool u_biased_try_slow(struct u_biased *l)
{
	uint32_t owner = atomic_load_explicit(&l->owner, memory_order_relaxed);

	/* If the owner holds the lock, a membarrier would only confirm that. */
	if (owner != 0 &&
	    (atomic_load_explicit(&l->slots[owner % U_BIASED_SLOTS].seq, memory_order_relaxed) & 1))
		return false;
	if (!word_try(l))
		return false;
	become_holder(l);
	return true;
}

void u_biased_drop_slow(struct u_biased *l)
{
	/* Not earlier: an owner that still holds `word` would also enter its slot when it tries again. */
	if (l->streak >= l->need)
		earn_bias(l, l->last);
	atomic_store_explicit(&l->held, atomic_load_explicit(&l->held, memory_order_relaxed) + 1,
			      memory_order_release);
	if (atomic_exchange_explicit(&l->word, 0, memory_order_release) == 2)
		u_futex_wake(&l->word, 1, UINT32_MAX, true);
}

void u_biased_grace_begin(void)
{
	if (may_bias())
		u_membarrier_private();
}

/* Waits until *seq changes, if it is odd. */
static void wait_odd(const _Atomic uint32_t *seq)
{
	uint32_t seen = atomic_load_explicit(seq, memory_order_acquire);

	if (seen & 1)
		wait_seq(seq, seen);
}

void u_biased_grace(struct u_biased *l)
{
	if (!may_bias()) {
		u_biased_take(l);
		u_biased_drop(l);
		return;
	}
	for (uint32_t i = 0; i < U_BIASED_SLOTS; i++)
		wait_odd(&l->slots[i].seq);
	wait_odd(&l->held);
}
