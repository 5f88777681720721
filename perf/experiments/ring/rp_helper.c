/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads that run on the relays' processor. */
#include "rp.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <string.h>

static struct helper {
	pthread_t thread;
	sem_t begin, end;
	int cpu, pinned, result;
	int (*job)(void *arg); /* NULL: the end */
	void *arg;
} helpers[RP_HELPERS];

int rp_pin(int cpu)
{
	cpu_set_t set;
	int err;

	CPU_ZERO(&set);
	CPU_SET((size_t)cpu, &set);
	err = pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
	if (err == 0)
		return 0;
	ring_print_error("--pin: processor %d: %s", cpu, strerror(err));
	return -1;
}

static void await_sem(sem_t *s)
{
	while (sem_wait(s) != 0)
		;
}

static void *helper_main(void *arg)
{
	struct helper *h = arg;

	h->pinned = rp_pin(h->cpu);
	sem_post(&h->end);
	for (;;) {
		await_sem(&h->begin);
		if (h->job == NULL)
			return NULL;
		h->result = h->job(h->arg);
		sem_post(&h->end);
	}
}

int rp_helper_start(unsigned int i, int cpu)
{
	struct helper *h = &helpers[i];
	int err;

	h->cpu = cpu;
	sem_init(&h->begin, 0, 0);
	sem_init(&h->end, 0, 0);
	err = pthread_create(&h->thread, NULL, helper_main, h);
	if (err != 0) {
		ring_print_error("a thread was sought and there is none: %s", strerror(err));
		return -1;
	}
	await_sem(&h->end);
	return h->pinned;
}

void rp_helper_run(unsigned int i, int (*job)(void *arg), void *arg)
{
	helpers[i].job = job;
	helpers[i].arg = arg;
	sem_post(&helpers[i].begin);
}

int rp_helper_join(unsigned int i)
{
	await_sem(&helpers[i].end);
	return helpers[i].result;
}

void rp_helper_stop(unsigned int i)
{
	rp_helper_run(i, NULL, NULL);
	pthread_join(helpers[i].thread, NULL);
}
