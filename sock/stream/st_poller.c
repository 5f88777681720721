/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stream goes to its poller by the stack `given` and comes back by the stack `back`; in between it is the poller's
 * alone.  tests/model/sock_poller.pml is the model of the two sleeps, the program's on a waker, which several pollers
 * write to, and the poller's.
 */
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "st_core.h"
#include "st_poller.h"
#include "st_ready.h"

#define IDLE_NS 5000000u /* without news for this long: armed, and given back */
#define YIELD_EVERY                                                                                \
	64u /* passes without news, then other threads get the processor if they wait for it */

struct st_waker {
	_Atomic bool wanted; /* by a sleeper; taken off by the poller that writes */
	int fd;
	unsigned poller; /* of its streams, unless another one is on the core of the thread that gives one */
	uint64_t era;
	struct st_waker *next_free, *next;
};

struct st_watch {
	struct st_watch *next;
	struct st_stream *s; /* with a reference */
	unsigned events;
	struct st_waker *waker;
	void *owner;
	_Atomic bool dropped;
	bool arms, armed; /* st_arm() was called; and nothing was there when it was sure */
	uint64_t since;
	uint64_t era;
};

struct poller {
	pthread_t thread;
	unsigned number;
	_Atomic(struct st_watch *) given, back;
	_Atomic bool dozes;
	int fd;
	struct st_watch *mine;
};

static struct {
	struct st_lock lock; /* of wakers, free watches, start and end */
	_Atomic unsigned count;
	unsigned turn; /* the next waker's poller */
	bool by_core;  /* rules put them on the cores of those that call; written before `count` */
	sem_t placed;  /* by each poller, once it has its place */
	_Atomic bool ends;
	_Atomic uint64_t era; /* of handles; grows with fork and end */
	struct st_waker *wakers, *free_wakers, *old_wakers;
	struct st_watch *free_watches;
	struct poller all[ST_POLLERS_MOST];
	struct st_core core[ST_POLLERS_MOST]; /* of each; written before `placed` */
} pollers;

bool st_pollers_on(void)
{
	return atomic_load_explicit(&pollers.count, memory_order_acquire) > 0;
}

/* ---- stacks -------------------------------------------------------------------------------------------------- */

static void push(_Atomic(struct st_watch *) *stack, struct st_watch *w)
{
	w->next = atomic_load_explicit(stack, memory_order_relaxed);
	while (!atomic_compare_exchange_weak_explicit(stack, &w->next, w, memory_order_release,
						      memory_order_relaxed))
		;
}

/* All of it, those that were pushed first at the front. */
static struct st_watch *take_all(_Atomic(struct st_watch *) *stack)
{
	struct st_watch *w, *list = NULL, *next;

	if (atomic_load_explicit(stack, memory_order_relaxed) == NULL)
		return NULL;
	for (w = atomic_exchange_explicit(stack, NULL, memory_order_acquire); w != NULL; w = next) {
		next = w->next;
		w->next = list;
		list = w;
	}
	return list;
}

/* ---- wakers -------------------------------------------------------------------------------------------------- */

struct st_waker *st_waker_get(void)
{
	unsigned n = atomic_load(&pollers.count);
	struct st_waker *b;

	if (n == 0 || st_lock(&pollers.lock) != 0)
		return NULL;
	b = pollers.free_wakers;
	if (b != NULL) {
		pollers.free_wakers = b->next_free;
		atomic_store(&b->wanted, false);
		st_sys_clear(b->fd);
	} else if ((b = calloc(1, sizeof(*b))) != NULL) {
		b->fd = st_sys_eventfd(st_low_fd());
		if (b->fd >= 0) {
			b->poller = pollers.turn++ % n;
			b->era = pollers.era;
			b->next = pollers.wakers;
			pollers.wakers = b;
		} else {
			free(b);
			b = NULL;
		}
	}
	st_unlock(&pollers.lock);
	return b;
}

bool st_waker_valid(const struct st_waker *b)
{
	return b != NULL && b->era == atomic_load_explicit(&pollers.era, memory_order_relaxed);
}

/* It keeps its descriptor: a poller that has given back its last stream may be about to look at it. */
void st_waker_put(struct st_waker *b)
{
	if (!st_waker_valid(b) || st_lock(&pollers.lock) != 0)
		return;
	atomic_store(&b->wanted, false);
	b->next_free = pollers.free_wakers;
	pollers.free_wakers = b;
	st_unlock(&pollers.lock);
}

int st_waker_fd(const struct st_waker *b)
{
	return b->fd;
}

void st_waker_want(struct st_waker *b)
{
	if (!st_waker_valid(b))
		return;
	atomic_store_explicit(&b->wanted, true, memory_order_relaxed);
	/* Pairs with that of give_back(). */
	atomic_thread_fence(memory_order_seq_cst);
}

void st_waker_clear(struct st_waker *b)
{
	if (st_waker_valid(b))
		st_sys_clear(b->fd);
}

/* ---- a poller ------------------------------------------------------------------------------------------------ */

/*
 * Gives the stream back to the program, and wakes the sleeper that wants that.  An armed stream is not told of: its
 * peer rings.  But a sleeper may have been woken by that before the stream was in the list, and sleep again.
 */
static void give_back(struct poller *p, struct st_watch *w)
{
	bool dropped = atomic_load_explicit(&w->dropped, memory_order_relaxed), armed = w->armed;
	unsigned events = w->events;
	struct st_stream *s = w->s;
	struct st_waker *b = w->waker;

	st_get(s);
	push(&p->back, w); /* from here on it is not ours */
	/* Pairs with that of st_waker_want(), after which the sleeper looks. */
	atomic_thread_fence(memory_order_seq_cst);
	armed = armed && st_arm_holds(s, events);
	st_put(s);
	if (dropped || armed)
		return;
	st_count(&st_counts.polled, 1);
	if (atomic_load_explicit(&b->wanted, memory_order_relaxed) &&
	    atomic_exchange(&b->wanted, false)) {
		st_sys_signal(b->fd);
		st_count(&st_counts.poller_wakes, 1);
	}
}

/* True: the stream has to go back: it has events, was dropped, or had none for so long that it is armed now. */
static bool look(struct st_watch *w, uint64_t now)
{
	if (atomic_load_explicit(&w->dropped, memory_order_relaxed) ||
	    st_check(w->s, w->events) != 0)
		return true;
	if (now - w->since < IDLE_NS)
		return false;
	if (!w->arms) {
		w->arms = true;
		return st_arm(w->s, w->events) != 0;
	}
	if (!st_arm_is_sure(w->s, w->events))
		return false;
	w->armed = st_check(w->s, w->events) == 0;
	return true;
}

/* Looks at all; how many went back. */
static unsigned pass(struct poller *p)
{
	struct st_watch **at = &p->mine, *w;
	uint64_t now = st_now_ns();
	unsigned n = 0;

	while ((w = *at) != NULL) {
		if (look(w, now)) {
			*at = w->next;
			give_back(p, w);
			n++;
		} else {
			at = &w->next;
		}
	}
	return n;
}

/* Takes the streams that were given into its own list. */
static void take_given(struct poller *p)
{
	struct st_watch *list = take_all(&p->given), *w;
	uint64_t now = list != NULL ? st_now_ns() : 0;

	while ((w = list) != NULL) {
		list = w->next;
		w->since = now;
		w->next = p->mine;
		p->mine = w;
	}
}

/* Sleeps until a stream is given, or the end. */
static void doze(struct poller *p)
{
	struct pollfd fd = { .fd = p->fd, .events = POLLIN };

	atomic_store_explicit(&p->dozes, true, memory_order_relaxed);
	/* Pairs with that of wake(). */
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&p->given, memory_order_relaxed) == NULL &&
	    !atomic_load(&pollers.ends) && st_sys_poll(&fd, 1, NULL) > 0)
		st_sys_clear(p->fd);
	atomic_store_explicit(&p->dozes, false, memory_order_relaxed);
}

/* Wakes the poller if it dozes. */
static void wake(struct poller *p)
{
	/* Pairs with that of doze(), after which the poller looks. */
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&p->dozes, memory_order_relaxed) &&
	    atomic_exchange(&p->dozes, false))
		st_sys_signal(p->fd);
}

/* A poller's thread: looks at its streams until the end, and sleeps while it has none. */
static void *run(void *arg)
{
	struct poller *p = arg;
	unsigned empty = 0;

	st_core_place(p->number, &pollers.core[p->number]);
	sem_post(&pollers.placed);
	while (!atomic_load_explicit(&pollers.ends, memory_order_relaxed)) {
		take_given(p);
		if (p->mine == NULL)
			doze(p);
		else if (pass(p) > 0)
			empty = 0;
		else if (++empty % YIELD_EVERY == 0)
			sched_yield();
	}
	return NULL;
}

/* ---- streams ------------------------------------------------------------------------------------------------- */

bool st_watch_valid(const struct st_watch *w)
{
	return w != NULL && w->era == atomic_load_explicit(&pollers.era, memory_order_relaxed);
}

/* A watch from the free ones or the heap, its members not set; NULL: none. */
static struct st_watch *new_watch(void)
{
	struct st_watch *w;

	if (st_lock(&pollers.lock) != 0)
		return NULL;
	w = pollers.free_watches;
	if (w != NULL)
		pollers.free_watches = w->next;
	st_unlock(&pollers.lock);
	return w != NULL ? w : malloc(sizeof(*w));
}

/* The poller on the core of this thread, if there is one, else the set's; `count` is above 0. */
static unsigned by_core(unsigned own)
{
	bool here;
	unsigned n = st_core_pick(pollers.core, atomic_load(&pollers.count), own, &here);

	st_count(&st_counts.given, 1);
	st_count(&st_counts.given_one_core, here);
	return n;
}

struct st_watch *st_watch_give(struct st_stream *s, unsigned events, struct st_waker *b,
			       void *owner)
{
	struct st_watch *w;
	struct poller *p;

	if (!st_pollers_on() || !st_waker_valid(b) || st_on_vi(s) != (ST_IN | ST_OUT))
		return NULL;
	w = new_watch();
	if (w == NULL)
		return NULL;
	st_get(s);
	*w = (struct st_watch){
		.s = s, .events = events, .waker = b, .owner = owner, .era = b->era
	};
	p = &pollers.all[pollers.by_core ? by_core(b->poller) : b->poller];
	push(&p->given, w);
	wake(p);
	return w;
}

void st_watch_drop(struct st_watch *w)
{
	if (st_watch_valid(w))
		atomic_store_explicit(&w->dropped, true, memory_order_relaxed);
}

/* Tells the owners of these watches, but for those that were dropped, and frees all; how many have news. */
static int come_back(struct st_watch *list, void (*back)(void *owner, bool armed))
{
	struct st_watch *w;
	int news = 0;

	while ((w = list) != NULL) {
		list = w->next;
		if (!w->dropped) {
			bool armed = w->armed && st_arm_holds(w->s, w->events);

			news += !armed;
			back(w->owner, armed);
		}
		st_put(w->s);
		st_lock(&pollers.lock);
		w->next = pollers.free_watches;
		pollers.free_watches = w;
		st_unlock(&pollers.lock);
	}
	return news;
}

int st_watch_take(void (*back)(void *owner, bool armed))
{
	unsigned n = atomic_load_explicit(&pollers.count, memory_order_acquire);
	int news = 0;

	for (unsigned i = 0; i < n; i++)
		news += come_back(take_all(&pollers.all[i].back), back);
	return news;
}

/* ---- start and end ------------------------------------------------------------------------------------------- */

/* Starts a poller, whose thread blocks all signals: 0, -errno. */
static int start(struct poller *p, unsigned number)
{
	sigset_t all, before;
	char name[16];
	int rc;

	memset(p, 0, sizeof(*p));
	p->number = number;
	p->fd = st_sys_eventfd(st_low_fd());
	if (p->fd < 0)
		return p->fd;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = -pthread_create(&p->thread, NULL, run, p);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc != 0) {
		st_sys_close(p->fd);
		return rc;
	}
	snprintf(name, sizeof(name), "vi-poll%u", number);
	pthread_setname_np(p->thread, name);
	return 0;
}

/* Waits until the first `n` have their places, and notes whether one is on a core of those that call. */
static void await_places(unsigned n)
{
	pollers.by_core = false;
	for (unsigned i = 0; i < n; i++) {
		while (sem_wait(&pollers.placed) != 0)
			;
	}
	for (unsigned i = 0; i < n; i++)
		pollers.by_core |= CPU_COUNT(&pollers.core[i].cpus) > 0;
}

void st_pollers_start(void)
{
	unsigned n;

	if (st_process.config.pollers == 0 || st_pollers_on())
		return;
	atomic_store(&pollers.ends, false);
	sem_init(&pollers.placed, 0, 0);
	for (n = 0; n < st_process.config.pollers; n++) {
		if (start(&pollers.all[n], n) != 0) {
			st_log("only %u of %u poller%s could be started", n,
			       st_process.config.pollers,
			       st_process.config.pollers == 1 ? "" : "s");
			break;
		}
	}
	await_places(n);
	atomic_store_explicit(&pollers.count, n, memory_order_release);
}

bool st_pollers_share(void)
{
	return st_core_any_single(pollers.core, atomic_load(&pollers.count));
}

/* For come_back() where nobody is to be told. */
static void no_owner(void *owner, bool armed)
{
	(void)owner;
	(void)armed;
}

/*
 * Closes all wakers; handles of before are not valid from now on.  Their memory stays, and that of watches: owners have
 * pointers, and compare eras.
 */
static void forget_wakers(void)
{
	struct st_waker **at;

	for (at = &pollers.wakers; *at != NULL; at = &(*at)->next)
		st_sys_close((*at)->fd);
	*at = pollers.old_wakers;
	pollers.old_wakers = pollers.wakers;
	pollers.wakers = pollers.free_wakers = NULL;
	atomic_fetch_add(&pollers.era, 1);
}

void st_pollers_end(void)
{
	unsigned n = atomic_exchange(&pollers.count, 0);

	atomic_store(&pollers.ends, true);
	for (unsigned i = 0; i < n; i++) {
		struct poller *p = &pollers.all[i];

		st_sys_signal(p->fd);
		pthread_join(p->thread, NULL);
		st_sys_close(p->fd);
		come_back(p->mine, no_owner);
		come_back(take_all(&p->given), no_owner);
		come_back(take_all(&p->back), no_owner);
	}
	forget_wakers();
}

void st_pollers_forked(void)
{
	unsigned n = atomic_exchange(&pollers.count, 0);

	for (unsigned i = 0; i < n; i++)
		st_sys_close(pollers.all[i].fd);
	memset(&pollers.lock, 0, sizeof(pollers.lock));
	forget_wakers();
}
