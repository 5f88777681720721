/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cores of the machine that all hosts share.  A thread works on a core; a core that ran another thread must first
 * switch.
 */
#ifndef SIM_CORE_H
#define SIM_CORE_H

#include <stdbool.h>

#include "sim_engine.h"

struct sim_core {
	const void *last; /* the thread that it ran last */
	double left;	  /* when that was */
	bool busy;
};

struct sim_cores {
	struct sim_core *core;
	unsigned int count; /* 0: each thread has a core of its own */
	double switch_time;
	sg_sem_t idle;
};

/* Call after sim_engine_open().  0 or -ENOMEM. */
int sim_cores_open(struct sim_cores *cores, unsigned int count, double switch_time);

/* Waits until a core is idle, and takes it for the thread.  NULL: each has one of its own. */
struct sim_core *sim_core_take(struct sim_cores *cores, const void *thread);
void sim_core_give(struct sim_cores *cores, struct sim_core *c);

/* Forgets which thread each core ran last. */
void sim_cores_forget(struct sim_cores *cores);

#endif
