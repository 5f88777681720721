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
	const struct u_cpuset
		*cpus; /* of each thread, empty: wherever the process may; NULL: all so */
	unsigned int first_db_bit; /* doorbell bit of thread 0; the others follow */
	struct port_irq *irq;	   /* where this host's doorbells interrupt */
	struct port *const *ports; /* those that circuits use; all outlive the relay */
	unsigned int port_count;
	/* Called when rl_broken() has something, by any thread; must not call back. */
	void (*notify)(void *arg);
	void *notify_arg;
};

struct rl_counters {
	uint64_t circuits;	/* now */
	uint64_t slots, bytes;	/* forwarded */
	uint64_t sleeps, rings; /* of the threads, by them */
	uint64_t broken;	/* circuits stopped because a node broke the rules */
};

/* One end of a new circuit. */
struct rl_side {
	struct port *port;
	struct port_map in, out;
	uint32_t db_mask; /* the doorbell bit to ring at the node */
	uint32_t first;	  /* number of the first slot of this node; all before it were consumed */
	uint32_t cursor;  /* and where its payload buffer begins */
};

#endif
