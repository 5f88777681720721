/* SPDX-License-Identifier: BSD-2-Clause */
/* The cores of the machine that all hosts share. */
#include "sim_core.h"

#include <errno.h>
#include <stdlib.h>

/* The core that ran this thread last, else the one that has been idle the longest. */
static struct sim_core *core_choose(struct sim_cores *cores, const void *thread)
{
	struct sim_core *best = NULL;

	for (unsigned int i = 0; i < cores->count; i++) {
		struct sim_core *c = &cores->core[i];

		if (c->busy)
			continue;
		if (c->last == thread)
			return c;
		if (best == NULL || c->left < best->left)
			best = c;
	}
	return best;
}

int sim_cores_open(struct sim_cores *cores, unsigned int count, double switch_time)
{
	*cores = (struct sim_cores){ .count = count, .switch_time = switch_time };
	if (count == 0)
		return 0;
	cores->core = calloc(count, sizeof(*cores->core));
	if (cores->core == NULL)
		return -ENOMEM;
	cores->idle = sg_sem_init((int)count);
	return 0;
}

struct sim_core *sim_core_take(struct sim_cores *cores, const void *thread)
{
	struct sim_core *c;

	if (cores->count == 0)
		return NULL;
	sg_sem_acquire(cores->idle);
	c = core_choose(cores, thread);
	c->busy = true;
	if (c->last != NULL && c->last != thread)
		sim_engine_sleep(cores->switch_time);
	c->last = thread;
	return c;
}

void sim_core_give(struct sim_cores *cores, struct sim_core *c)
{
	if (c == NULL)
		return;
	c->busy = false;
	c->left = sim_engine_now();
	sg_sem_release(cores->idle);
}

void sim_cores_forget(struct sim_cores *cores)
{
	for (unsigned int i = 0; i < cores->count; i++)
		cores->core[i].last = NULL;
}
