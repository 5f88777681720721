/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Transfer threads (vi-relay): which circuits each polls, and when it sleeps.
 *
 * As in a process (docs/architecture.md, section 6) a circuit is polled, or it is armed, and then
 * its nodes ring the thread's doorbell bit with the next slot.  A circuit that moves is polled; one
 * that did not move between two ticks is armed, and all circuits are armed while the thread sleeps.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "rl_priv.h"
#include "u_futex.h"
#include "u_idle.h"
#include "u_log.h"
#include "u_membarrier.h"
#include "u_thread.h"
#include "u_time.h"

#define BUDGET 32u	/* slots of one end in one pass */
#define TICK_NS 1000000 /* between checks for circuits that do not move */

/* ---- the lists ---------------------------------------------------------------------------------- */

/* Exchanges two circuits of the thread's list. */
static void swap(struct rl_thread *t, uint32_t i, uint32_t k)
{
	struct rl_circuit *c = t->circuits[i];

	t->circuits[i] = t->circuits[k];
	t->circuits[k] = c;
	t->circuits[i]->index = i;
	t->circuits[k]->index = k;
}

static bool is_polled(const struct rl_circuit *c)
{
	return c->index < c->thread->polled;
}

/* Polls an armed circuit from now on, and withdraws its notify requests.  The caller holds the lock. */
static void make_polled(struct rl_circuit *c)
{
	struct rl_thread *t = c->thread;

	rl_clear_notify(c);
	swap(t, c->index, t->polled++);
}

/* Adds a circuit to the polled ones of the thread.  0 or -ENOMEM.  The caller holds the lock. */
int rl_thread_enlist(struct rl_thread *t, struct rl_circuit *c)
{
	if (t->count == t->cap) {
		uint32_t cap = t->cap != 0 ? 2 * t->cap : 16;
		struct rl_circuit **bigger =
			realloc(t->circuits, cap * sizeof(struct rl_circuit *));

		if (bigger == NULL)
			return -ENOMEM;
		t->circuits = bigger;
		t->cap = cap;
	}
	c->index = t->count++;
	t->circuits[c->index] = c;
	swap(t, c->index, t->polled++);
	return 0;
}

/* Takes a circuit, polled or armed, off the list of its thread.  The caller holds the lock. */
void rl_thread_delist(struct rl_circuit *c)
{
	struct rl_thread *t = c->thread;

	if (is_polled(c))
		swap(t, c->index, --t->polled);
	swap(t, c->index, --t->count);
	c->index = UINT32_MAX;
}

/*
 * Takes a broken circuit off the thread's list, keeps it for rl_broken(), and notifies the agent.  The caller
 * holds the lock.
 */
static void stopped(struct rl_circuit *c)
{
	struct rl_thread *t = c->thread;

	rl_thread_delist(c);
	t->counters.broken++;
	c->next_broken = t->broken;
	t->broken = c;
	t->relay->cfg.notify(t->relay->cfg.notify_arg);
}

void rl_thread_moved(struct rl_circuit *c)
{
	if (c->broken) {
		stopped(c);
	} else if (!is_polled(c)) {
		make_polled(c);
		port_irq_kick(c->thread->relay->cfg.irq, c->thread->db_mask);
	}
}

/* ---- looking ------------------------------------------------------------------------------------ */

/* Was this thread's bit rung since the last call?  Clears it.  Reads doorbells only after an interrupt. */
static bool rung(struct rl_thread *t)
{
	struct rl_relay *r = t->relay;
	uint32_t ticket = port_irq_ticket(r->cfg.irq);
	bool yes = false;
	unsigned int i;

	if (u_likely(ticket == t->ticket))
		return false;
	t->ticket = ticket;
	for (i = 0; i < r->cfg.port_count; i++) {
		if ((port_db_read(r->ports[i]) & t->db_mask) != 0) {
			port_db_clear(r->ports[i], t->db_mask);
			yes = true;
		}
	}
	return yes;
}

/*
 * Forwards for all polled circuits, and stops those that broke; returns how much moved.  The caller holds the lock.
 * Goes through the list downwards: a circuit that leaves is replaced by one that was already moved.
 */
static uint32_t move_polled(struct rl_thread *t)
{
	uint32_t i, moved = 0;

	for (i = t->polled; i-- > 0;) {
		moved += rl_move(t->circuits[i], BUDGET);
		if (t->circuits[i]->broken)
			stopped(t->circuits[i]);
	}
	return moved;
}

/* Makes the armed circuits for which something has come polled ones; returns how many.  The caller holds the lock. */
static uint32_t wake_armed(struct rl_thread *t)
{
	uint32_t i, woken = 0;

	for (i = t->polled; i < t->count; i++) {
		if (rl_ready(t->circuits[i])) {
			make_polled(t->circuits[i]);
			woken++;
		}
	}
	return woken;
}

/* Also for a thread that does not sleep, or that rings for others wake: it can miss doorbells, too. */
bool rl_thread_check(struct rl_thread *t, int64_t now)
{
	if (now < t->next_check)
		return false;
	t->next_check = now + RL_CHECK_NS;
	return wake_armed(t) > 0;
}

/* The nodes of an armed circuit ring when they publish; nvi_arm.c says why no ring is lost. */
bool rl_thread_arm(struct rl_thread *t, bool all)
{
	uint32_t i, first = t->polled;
	bool came = false;

	for (i = t->polled; i-- > 0;) {
		struct rl_circuit *c = t->circuits[i];
		uint32_t moves = rl_moves(c);
		bool still = moves == c->seen;

		c->seen = moves;
		if (!all && !still)
			continue;
		rl_write_notify(c);
		swap(t, i, --t->polled);
	}
	if (t->polled == first)
		return false;
	for (i = 0; i < t->relay->cfg.port_count; i++)
		port_flush(t->relay->ports[i]);
	u_membarrier();
	atomic_thread_fence(memory_order_seq_cst);
	for (i = t->polled; i < first; i++) {
		if (rl_ready(t->circuits[i])) {
			make_polled(t->circuits[i]);
			came = true;
		}
	}
	return came;
}

/* ---- the thread ----------------------------------------------------------------------------------- */

struct loop {
	struct rl_thread *t;
	int64_t next_tick;
	struct u_idle_past past;
	struct u_idle idle;
};

static enum u_idle_mode idle_mode(enum rl_wait wait)
{
	switch (wait) {
	case RL_POLL:
		return U_IDLE_SPIN;
	case RL_BLOCK:
		return U_IDLE_BLOCK;
	default:
		return U_IDLE_ADAPTIVE;
	}
}

/*
 * Checks all circuits when it is time to, as a doorbell may have been lost.  Returns true if something had
 * come.  Takes the lock.
 */
static bool check_in_time(struct loop *l, int64_t now)
{
	bool came;

	if (now < l->t->next_check)
		return false;
	pthread_mutex_lock(&l->t->lock);
	came = rl_thread_check(l->t, now);
	pthread_mutex_unlock(&l->t->lock);
	if (came)
		u_idle_slept(&l->idle, true, true);
	return came;
}

/*
 * Sleeps until the thread's bit is rung, or was since the ticket, for a limited time; after a time-out checks
 * all circuits.
 */
static void sleep_deep(struct loop *l, uint32_t ticket)
{
	struct rl_thread *t = l->t;
	int err = port_irq_wait(t->relay->cfg.irq, ticket, t->db_mask, u_idle_cap(&l->idle));

	if (err != -ETIMEDOUT) {
		u_idle_slept(&l->idle, false, true);
		return;
	}
	t->next_check = 0;
	if (!check_in_time(l, u_now_ns()))
		u_idle_slept(&l->idle, true, false);
}

/*
 * Takes one step of waiting while nothing moves: returns to poll, yields, or arms all circuits and sleeps.
 * Takes the lock.
 */
static void idle(struct loop *l, uint32_t ticket)
{
	struct rl_thread *t = l->t;
	enum u_idle_step step = u_idle(&l->idle);
	bool came;

	if (step == U_IDLE_POLL || check_in_time(l, u_now_ns()))
		return;
	pthread_mutex_lock(&t->lock);
	if (step == U_IDLE_YIELDED && t->count != 0) {
		pthread_mutex_unlock(&t->lock);
		return;
	}
	came = rl_thread_arm(t, true);
	t->counters.sleeps += !came;
	pthread_mutex_unlock(&t->lock);
	if (!came)
		sleep_deep(l, ticket);
}

/*
 * Every TICK_NS: arms circuits that do not move, unless the relay is to poll, and checks all when it is time to.
 * Takes the lock.
 */
static void tick(struct loop *l)
{
	int64_t now = u_now_ns();

	if (now < l->next_tick)
		return;
	l->next_tick = now + TICK_NS;
	pthread_mutex_lock(&l->t->lock);
	if (l->t->relay->cfg.wait != RL_POLL)
		rl_thread_arm(l->t, false);
	pthread_mutex_unlock(&l->t->lock);
	check_in_time(l, now);
}

/* Lets other threads take the lock: if this thread took it again at once, they would never get it. */
static void give_way(struct rl_thread *t)
{
	uint32_t wanted;

	while ((wanted = atomic_load_explicit(&t->wanted, memory_order_relaxed)) != 0)
		u_futex_wait(&t->wanted, wanted, UINT32_MAX, -1, true);
}

uint32_t rl_thread_pass(struct rl_thread *t)
{
	uint32_t moved;

	pthread_mutex_lock(&t->lock);
	if (rung(t))
		wake_armed(t);
	moved = move_polled(t);
	pthread_mutex_unlock(&t->lock);
	return moved;
}

/* The thread: forwards, and sleeps while nothing moves, until rl_thread_stop(). */
static void *run(void *arg)
{
	struct rl_thread *t = arg;
	enum u_idle_mode mode = idle_mode(t->relay->cfg.wait);
	struct loop l = { .t = t };
	uint32_t ticket, round = 0;

	u_idle_past_init(&l.past, mode);
	u_idle_begin(&l.idle, mode, &l.past);
	while (!atomic_load_explicit(&t->stop, memory_order_acquire)) {
		give_way(t);
		ticket = port_irq_ticket(t->relay->cfg.irq);
		if (rl_thread_pass(t) == 0) {
			idle(&l, ticket);
			continue;
		}
		u_idle_moved(&l.idle);
		if (++round % 64 == 0)
			tick(&l);
	}
	return NULL;
}

void rl_thread_lock(struct rl_thread *t)
{
	atomic_fetch_add_explicit(&t->wanted, 1, memory_order_relaxed);
	pthread_mutex_lock(&t->lock);
}

void rl_thread_unlock(struct rl_thread *t)
{
	pthread_mutex_unlock(&t->lock);
	if (atomic_fetch_sub_explicit(&t->wanted, 1, memory_order_relaxed) == 1)
		u_futex_wake(&t->wanted, 1, UINT32_MAX, true);
}

/* Starts the thread, unless it runs.  0 or -ENOMEM.  Only one thread at a time may call this and rl_thread_stop(). */
int rl_thread_start(struct rl_thread *t)
{
	char name[16] = "vi-relay0";
	int rc;

	if (t->started)
		return 0;
	name[8] = (char)('0' + t->index);
	rc = u_thread_start_on(&t->relay->cpus[t->index], &t->thread, name, run, t);
	if (rc != 0)
		return rc;
	t->started = true;
	return 0;
}

/* Ends the thread and waits for its end, if it runs.  It cannot be started again. */
void rl_thread_stop(struct rl_thread *t)
{
	if (!t->started)
		return;
	atomic_store_explicit(&t->stop, true, memory_order_release);
	port_irq_kick(t->relay->cfg.irq, t->db_mask);
	u_thread_join(t->thread);
	t->started = false;
}
