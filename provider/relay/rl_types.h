/* SPDX-License-Identifier: BSD-2-Clause */
/* The configuration of a relay, its counters, and the ends of circuits: rl_relay.h. */
#ifndef RL_TYPES_H
#define RL_TYPES_H

#include <stdbool.h>
#include <stdint.h>

#include "port.h"
#include "u_cpuset.h"
#include "w_slot.h"

#define RL_THREADS_MAX 8u

enum rl_wait {
	RL_ADAPTIVE, /* polls for a while, then sleeps on its doorbell bit */
	RL_POLL,     /* never sleeps while it has circuits */
	RL_BLOCK,    /* sleeps at once */
};

struct rl_cfg {
	unsigned int threads; /* 1..RL_THREADS_MAX */
	enum rl_wait wait;
	/* the processors of each thread; an empty set, or NULL for all threads: those of the process */
	const struct u_cpuset *cpus;
	unsigned int first_db_bit; /* doorbell bit of thread 0; the others follow */
	struct port_irq *irq;	   /* the interrupts of this host's doorbells */
	struct port *const *ports; /* the ports that circuits use; all outlive the relay */
	unsigned int port_count;
	/* Called by any thread when rl_broken() has something; must not call the relay. */
	void (*notify)(void *arg);
	void *notify_arg;
};

struct rl_counters {
	uint64_t circuits;	/* now */
	uint64_t slots, bytes;	/* forwarded */
	uint64_t sleeps, rings; /* sleeps of the threads, and rings by them */
	uint64_t broken;	/* circuits stopped because a node broke the rules */
};

/* One end of a new circuit. */
struct rl_side {
	struct port *port;
	struct port_map in, out;
	uint32_t db_mask; /* the doorbell bit to ring at the node */
	uint32_t first;	  /* number of the next slot of this node; all before it were consumed */
	uint32_t cursor;  /* the cursor of its payload buffer at that slot */
};

#endif
