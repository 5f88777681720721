/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Decides how a thread that found nothing waits: when it polls again, yields, or sleeps, and how long.
 *
 * All threads that wait for a peer use it: calls of the application (vi_wait.c), the engine
 * (nvi_engine.c), transfer threads of relays (rl_thread.c).
 *
 * The thread polls U_IDLE_POLLS times, then it yields.  If the yield returns at once, no other
 * thread ran, and polling goes on.  If it returns soon, the other thread yielded as well, and is
 * perhaps the one that this thread waits for: then polling only keeps it from the processor, and
 * half as many polls precede the next yield.
 *
 * sched_yield() costs more than the processor: on Linux 6.6 and later the thread loses the rest of
 * its time slice each time, and if it yields in a loop while other threads compute, it may get no
 * processor for long.  A thread that is woken is scheduled fairly.  So when other threads had the
 * processor for long while nothing arrived, there is contention, and the thread sleeps without a
 * yield for its next waits.
 *
 * The length of a sleep has a cap, since a doorbell may be lost.  The first cap is longer than the
 * kernel's tick: setting a processor's next timer, and cancelling it, costs 10 us each in a virtual
 * machine.  While doorbells are found lost it is short.
 */
#ifndef U_IDLE_H
#define U_IDLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "u_time.h"

#define U_IDLE_POLLS 16u	 /* between two yields */
#define U_IDLE_SPIN_POLLS 256u	 /* between two yields of a thread that never sleeps */
#define U_IDLE_NS 50000		 /* an adaptive thread sleeps when nothing has come for this long */
#define U_IDLE_ALONE_NS 1000	 /* a shorter yield ran no other thread; */
#define U_IDLE_SHARED_NS 50000	 /* one between the two met a thread that yields, too; */
#define U_IDLE_CROWDED_NS 100000 /* yields that took this long together, in vain, show contention */
#define U_IDLE_SLEEPS 32u	 /* then this many waits sleep at once, before the next yield */

#define U_IDLE_CAP_NS 16000000	    /* of the first sleep; each further one doubles it */
#define U_IDLE_CAP_LOSSY_NS 1000000 /* of the first sleep while doorbells are found lost */
#define U_IDLE_CAP_MOST_NS 256000000
#define U_IDLE_LOSSY_SLEEPS 64u /* after a doorbell was found lost this many sleeps are short */

enum u_idle_mode {
	U_IDLE_SPIN,	/* never sleeps */
	U_IDLE_YIELD,	/* yields after each poll, sleeps only under contention */
	U_IDLE_BLOCK,	/* sleeps at once */
	U_IDLE_ADAPTIVE /* polls and yields; sleeps after U_IDLE_NS, or under contention */
};

enum u_idle_step {
	U_IDLE_POLL,	/* poll again */
	U_IDLE_YIELDED, /* poll again; the processor was offered, and `now` is the time */
	U_IDLE_SLEEP	/* it is time to sleep */
};

/* State that a thread keeps from wait to wait; threads may share it, as a hint. */
struct u_idle_past {
	_Atomic uint32_t polls;	 /* before the next yield */
	_Atomic uint32_t sleeps; /* waits that still sleep at once, because of contention */
	_Atomic uint32_t lossy;	 /* sleeps that still have a short cap */
};

/* Belongs to one thread. */
struct u_idle {
	enum u_idle_mode mode;
	struct u_idle_past *past;
	uint32_t left;	  /* polls until the next yield */
	int64_t since;	  /* of the first yield since something came; 0: none yet */
	int64_t given_ns; /* time given to other threads since something came */
	int64_t cap;	  /* of the next sleep; 0: that of a first one */
	int64_t now;	  /* after the last yield */
	bool shared;	  /* another thread ran during that */
};

/* Begins with no contention, no lost doorbell, and the polls of the mode.  Before the first u_idle_begin() with it. */
void u_idle_past_init(struct u_idle_past *past, enum u_idle_mode mode);

/* Begins a wait: before its first u_idle().  `past` outlives it, and was initialized. */
static inline void u_idle_begin(struct u_idle *i, enum u_idle_mode mode, struct u_idle_past *past)
{
	i->mode = mode;
	i->past = past;
	i->left = atomic_load_explicit(&past->polls, memory_order_relaxed);
	i->since = i->given_ns = i->cap = 0;
}

/* Accounts for a yield that took `took_ns`; u_idle_offer() calls it.  Decides how many polls precede the next one. */
void u_idle_yielded(struct u_idle *i, int64_t took_ns);

/* The step after the polls: yields, and returns U_IDLE_YIELDED, unless it is time to sleep: U_IDLE_SLEEP. */
enum u_idle_step u_idle_offer(struct u_idle *i);

/* Decides what follows a poll that found nothing.  Pauses or yields if that is another poll. */
static inline enum u_idle_step u_idle(struct u_idle *i)
{
	if (i->left == 0 || i->mode == U_IDLE_BLOCK)
		return u_idle_offer(i);
	i->left--;
	u_pause();
	return U_IDLE_POLL;
}

/* Something came: the yields were not in vain. */
static inline void u_idle_moved(struct u_idle *i)
{
	i->left = atomic_load_explicit(&i->past->polls, memory_order_relaxed);
	i->since = i->given_ns = i->cap = 0;
}

/* The longest time of the next sleep, in nanoseconds. */
int64_t u_idle_cap(const struct u_idle *i);

/*
 * Accounts for a sleep.  `capped`: it lasted as long as its cap; `came`: something had come.  Both: a
 * doorbell was lost, and the next sleeps are short.  Without `came` the next cap is twice as long.
 */
void u_idle_slept(struct u_idle *i, bool capped, bool came);

#endif
