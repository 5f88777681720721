/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fault: early_db, rings that arrive before the stores that were made earlier.
 *
 * From a fence on that was drawn, the stores of the port are held back for a while, all of them and in their order, and
 * rings pass.  A thread lands what is held when the time is over; a flush, the end of a map and too many stores land it
 * at once.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "port_deco.h"
#include "port_fault_priv.h"
#include "u_thread.h"
#include "u_time.h"

#define EARLY_STORES 512u /* that are held at most */
#define EARLY_LEAST_NS 20000
#define EARLY_MOST_NS 60000

struct early_store {
	struct fault_map *map;
	uint8_t *dst;
	uint32_t n;
	uint8_t data[U_LINE];
};

struct fault_early {
	/*
	 * Set and cleared under the lock.  A thread that has stores in the queue, or has seen what another one
	 * has there, reads true until they have landed, so it needs no lock to store directly when it reads false.
	 */
	_Atomic bool holding;

	pthread_mutex_t lock; /* protects all below */
	pthread_cond_t work;
	int64_t due; /* while holding */
	uint32_t count;
	struct early_store store[EARLY_STORES];
	pthread_t thread;
	bool started;
	bool stop;
};

/* Lands what is held; if the link is down or was since, it vanishes.  Called with the lock held. */
static void land_all(struct fault_early *e)
{
	for (uint32_t i = 0; i < e->count; i++) {
		const struct early_store *s = &e->store[i];

		if (!fault_passes(s->map))
			continue;
		deco_put(&s->map->inner.out, s->dst, s->data, s->n);
		u_out_fence(&s->map->inner.out);
	}
	e->count = 0;
	atomic_store_explicit(&e->holding, false, memory_order_release);
}

/* The thread: lands what is held when it is due, until e->stop is set. */
static void *deliver(void *arg)
{
	struct fault_early *e = arg;

	prctl(PR_SET_TIMERSLACK, 1UL);
	pthread_mutex_lock(&e->lock);
	while (!e->stop) {
		struct timespec due = { .tv_sec = e->due / 1000000000,
					.tv_nsec = e->due % 1000000000 };

		if (!atomic_load_explicit(&e->holding, memory_order_relaxed))
			pthread_cond_wait(&e->work, &e->lock);
		else if (e->due > u_now_ns())
			pthread_cond_timedwait(&e->work, &e->lock, &due);
		else
			land_all(e);
	}
	pthread_mutex_unlock(&e->lock);
	return NULL;
}

void fault_early_fence(struct fault *f)
{
	struct fault_early *e = f->early;

	if (e == NULL || !fault_chance(f, f->opt.early_db))
		return;
	pthread_mutex_lock(&e->lock);
	if (!e->started)
		e->started = u_thread_start(&e->thread, "vi-early", deliver, e) == 0;
	if (e->started && !atomic_load_explicit(&e->holding, memory_order_relaxed)) {
		e->due = u_now_ns() + EARLY_LEAST_NS +
			 (int64_t)(deco_random(&f->random) % (EARLY_MOST_NS - EARLY_LEAST_NS));
		atomic_store_explicit(&e->holding, true, memory_order_release);
		pthread_cond_signal(&e->work);
	}
	pthread_mutex_unlock(&e->lock);
}

bool fault_early_hold(struct fault_map *m, void *dst, const void *src, size_t n)
{
	struct fault_early *e = m->fault->early;
	struct early_store *s;
	bool held;

	if (e == NULL || !atomic_load_explicit(&e->holding, memory_order_acquire))
		return false;
	pthread_mutex_lock(&e->lock);
	if (e->count == EARLY_STORES)
		land_all(e);
	held = atomic_load_explicit(&e->holding, memory_order_relaxed);
	if (held) {
		s = &e->store[e->count++];
		s->map = m;
		s->dst = dst;
		s->n = (uint32_t)n;
		memcpy(s->data, src, n);
	}
	pthread_mutex_unlock(&e->lock);
	return held;
}

void fault_early_land(struct fault *f)
{
	struct fault_early *e = f->early;

	if (e == NULL)
		return;
	pthread_mutex_lock(&e->lock);
	land_all(e);
	pthread_mutex_unlock(&e->lock);
}

int fault_early_open(struct fault *f)
{
	struct fault_early *e;
	pthread_condattr_t attr;

	if (f->opt.early_db <= 0)
		return 0;
	e = calloc(1, sizeof(*e));
	if (e == NULL || pthread_condattr_init(&attr) != 0) {
		free(e);
		return -ENOMEM;
	}
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_mutex_init(&e->lock, NULL);
	pthread_cond_init(&e->work, &attr);
	pthread_condattr_destroy(&attr);
	f->early = e;
	return 0;
}

void fault_early_close(struct fault *f)
{
	struct fault_early *e = f->early;

	if (e == NULL)
		return;
	pthread_mutex_lock(&e->lock);
	e->stop = true;
	pthread_cond_signal(&e->work);
	pthread_mutex_unlock(&e->lock);
	if (e->started)
		u_thread_join(e->thread);
	pthread_cond_destroy(&e->work);
	pthread_mutex_destroy(&e->lock);
	free(e);
	f->early = NULL;
}
