/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of SimGrid in use: links, actors that sleep, wait and transfer, simulated time. */
#ifndef SIM_ENGINE_H
#define SIM_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include <simgrid/semaphore.h>

struct sim_link {
	double rate;	/* bytes per microsecond */
	double latency; /* microseconds before the first byte */
};

/* The links that a transfer takes, all at once. */
struct sim_route {
	const uint32_t *links;
	unsigned int count;
};

typedef void sim_actor_fn(void *arg);

/* Once in a process.  0 or -errno. */
int sim_engine_open(const struct sim_link *links, unsigned int link_count,
		    const struct sim_route *routes, unsigned int route_count);
/* daemon: the simulation ends without waiting for it.  0 or -errno. */
int sim_engine_spawn(sim_actor_fn *fn, void *arg, bool daemon);
/* Runs until every actor that is not a daemon has ended. */
void sim_engine_run(void);

double sim_engine_now(void);
/* The rest is for actors. */
void sim_engine_sleep(double time);
void sim_engine_transfer(unsigned int route, double bytes);

#endif
