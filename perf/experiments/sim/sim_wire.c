/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim_wire.h"

#include <errno.h>
#include <stddef.h>

void sim_queue_init(struct sim_queue *q)
{
	q->head = NULL;
	q->tail = &q->head;
	q->filled = sg_sem_init(0);
}

void sim_queue_put(struct sim_queue *q, struct sim_frag *frag)
{
	frag->next = NULL;
	*q->tail = frag;
	q->tail = &frag->next;
	sg_sem_release(q->filled);
}

struct sim_frag *sim_queue_get(struct sim_queue *q, bool *slept)
{
	struct sim_frag *frag;

	if (slept != NULL)
		*slept = q->head == NULL;
	sg_sem_acquire(q->filled);
	frag = q->head;
	q->head = frag->next;
	if (q->head == NULL)
		q->tail = &q->head;
	return frag;
}

static void fly(void *arg)
{
	struct sim_wire *w = arg;

	for (;;) {
		struct sim_frag *frag = sim_queue_get(&w->flying, NULL);

		sim_engine_sleep(frag->due - sim_engine_now());
		w->arrive(w->arg, frag);
	}
}

void sim_wire_store(struct sim_wire *w, struct sim_frag *frag)
{
	sg_sem_acquire(w->idle);
	sim_engine_transfer(w->route, sim_wire_bytes(frag->payload));
	sg_sem_release(w->idle);
	frag->due = sim_engine_now() + w->latency;
	sim_queue_put(&w->flying, frag);
}

void sim_wire_post(struct sim_wire *w, struct sim_frag *frag)
{
	sim_queue_put(&w->waiting, frag);
}

static void dma(void *arg)
{
	struct sim_wire *w = arg;

	for (;;)
		sim_wire_store(w, sim_queue_get(&w->waiting, NULL));
}

int sim_wire_open(struct sim_wire *w, unsigned int route, double latency, bool has_dma,
		  sim_arrive_fn *arrive, void *arg)
{
	int err;

	w->route = route;
	w->latency = latency;
	w->arrive = arrive;
	w->arg = arg;
	sim_queue_init(&w->waiting);
	sim_queue_init(&w->flying);
	w->idle = sg_sem_init(1);
	err = sim_engine_spawn(fly, w, true);
	if (err == 0 && has_dma)
		err = sim_engine_spawn(dma, w, true);
	return err;
}
