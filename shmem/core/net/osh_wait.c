/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A wait looks often at first, then lets others run, then sleeps for times that grow up to NAP_MAX_NS:
 * a PE that waits long takes little of a processor, and one that is short of processors takes none from
 * those that it waits for.
 */
#include <sched.h>
#include <string.h>
#include <time.h>

#include "osh_state.h"
#include "osh_wait.h"

#define SPINS 2000u		 /* looks without a system call; some microseconds */
#define OVERSUBSCRIBED_SPINS 20u /* where PEs of this machine share processors */
#define YIELDS 200u		 /* looks with a yield between them */
#define NAP_NS 20000u
#define NAP_MAX_NS 200000u
#define PROGRESS_EVERY 32u /* looks between two calls that move packets */

/* Pauses between two looks, without a system call. */
static inline void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("isb" ::: "memory");
#endif
}

/* The launcher sees one thread of a PE, the first that waits. */
static atomic_flag shown = ATOMIC_FLAG_INIT;
static _Thread_local bool is_mine;

void osh_wait_show(const char *fn, const volatile void *addr, int pe)
{
	struct boot_status *s = boot_status();

	/* R: pairs with the end of another thread's wait, which cleared its flag. */
	if (!is_mine && atomic_flag_test_and_set_explicit(&shown, memory_order_acquire))
		return;
	is_mine = true;
	strncpy(s->routine, fn, sizeof(s->routine) - 1);
	atomic_store_explicit(&s->address, (uint64_t)(uintptr_t)addr, memory_order_relaxed);
	atomic_store_explicit(&s->peer, pe, memory_order_relaxed);
	/* A: the routine, address and peer before the word by which oshrun sees that they are valid. */
	atomic_store_explicit(&s->waiting, 1, memory_order_release);
}

void osh_wait_shown_end(void)
{
	struct boot_status *s = boot_status();

	atomic_fetch_add_explicit(&s->steps, 1, memory_order_relaxed);
	if (!is_mine)
		return;
	atomic_store_explicit(&s->waiting, 0, memory_order_release);
	is_mine = false;
	/* A: pairs with osh_wait_show() of another thread. */
	atomic_flag_clear_explicit(&shown, memory_order_release);
}

_Noreturn OSH_COLD void osh_wait_in_vain(const char *fn, int pe)
{
	osh_fatal("%s: waits for PE %d, which is at its end: it has called shmem_finalize or exit",
		  fn, pe);
}

/*
 * Ends the job where the PE waited for had left before the last look at the condition; else notes whether it has now.
 * A PE that has left the job sends nothing more, and one at its end the messages of that barrier alone. All that it
 * did before was done when it said so: if the condition does not hold after that, it never will.
 */
static void give_up_on_left(struct osh_wait *w)
{
	const struct boot_status *s = w->pe >= 0 ? boot_status_of(w->pe) : NULL;

	if (w->in_vain)
		osh_wait_in_vain(w->fn, w->pe);
	if (s == NULL)
		return;
	/* R: pairs with leave() and begin_end() in osh_init.c of that PE: what it sent before is here. */
	w->in_vain = atomic_load_explicit(&s->left, memory_order_acquire) != 0 ||
		     (!w->at_end && atomic_load_explicit(&s->ending, memory_order_acquire) != 0);
}

/*
 * A wait after `rounds` others without a spin: yields, later sleeps and moves packets, or ends the job where w->pe has
 * left. The first is noted for the launcher.
 */
static OSH_COLD void wait_long(struct osh_wait *w, uint32_t rounds)
{
	struct timespec nap = { 0, NAP_NS };

	if (rounds == 0)
		osh_wait_show(w->fn, w->addr, w->pe);
	if (rounds < YIELDS) {
		sched_yield();
		return;
	}
	give_up_on_left(w);
	/* The call is cheap compared with a nap, and packets from relays move only by it. */
	if (osh_pe.has_far_peers)
		VipxProgress(osh_pe.nic);
	nap.tv_nsec = (long)osh_min(NAP_NS * (1 + (rounds - YIELDS) / 16), NAP_MAX_NS);
	nanosleep(&nap, NULL);
}

void osh_wait(struct osh_wait *w)
{
	uint32_t spins = osh_pe.oversubscribed ? OVERSUBSCRIBED_SPINS : SPINS, rounds = w->rounds;

	if (rounds != UINT32_MAX)
		w->rounds++;
	if (osh_pe.has_far_peers && rounds % PROGRESS_EVERY == PROGRESS_EVERY - 1)
		VipxProgress(osh_pe.nic);
	if (osh_likely(rounds < spins))
		relax();
	else
		wait_long(w, rounds - spins);
}

void osh_wait_end(struct osh_wait *w)
{
	if (osh_unlikely(w->rounds > (osh_pe.oversubscribed ? OVERSUBSCRIBED_SPINS : SPINS)))
		osh_wait_shown_end();
}
