/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Holders: each counts the resources of an agent that a user, or a process, has, and limits them.
 * So one process leaves some for other processes of its user, and one user leaves some for others.
 */
#ifndef AG_HOLDER_H
#define AG_HOLDER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "ag_list.h"
#include "ag_state.h"
#include "port.h"

enum ag_thing {
	AG_CLIENTS, /* connections to the agent */
	AG_OPENING, /* ends of connections with a slice that are not connected yet */
	AG_CONNS,   /* ends of connections */
	AG_LISTENS, /* waiters */
	AG_THINGS
};

struct ag_holder {
	struct ag_list node; /* of agent->holders */
	uid_t uid;
	pid_t pid;	  /* 0: all processes of the user */
	uint32_t clients; /* that refer to it */
	uint32_t count[AG_THINGS];
	uint64_t window[PORT_PER_HOST]; /* bytes of the window of each port */
	uint32_t unconfirmed; /* of a process: connections in a row that it did not confirm in time */
	int64_t trusted_at;   /* the time from which it may connect again */
};

/* The holders for which a client counts: its user and its process. */
struct ag_holders {
	struct ag_holder *user, *process;
};

/*
 * Gets the holders of a new client, until ag_holders_put().  A process whose id the agent cannot see (another
 * PID namespace) has a holder for each client.  0, or -ENOMEM with nothing to put.  The last ag_holders_put() of a
 * holder frees it, whatever it counts.
 */
int ag_holders_get(struct ag_agent *a, uid_t uid, pid_t pid, struct ag_holders *out);
void ag_holders_put(struct ag_holders *h);

/* May user and process both have one more of a thing?  If not, logs that, at a limited rate.  Counts nothing. */
bool ag_holders_may(struct ag_agent *a, const struct ag_holders *h, enum ag_thing thing);
void ag_holders_count(struct ag_holders *h, enum ag_thing thing, int more);

/*
 * May both have so many more bytes of a port's window, which has `window` bytes?  If not, logs that.  Counts
 * nothing.
 */
bool ag_holders_may_use(struct ag_agent *a, const struct ag_holders *h, uint32_t port,
			uint64_t window, uint64_t bytes);
void ag_holders_use(struct ag_holders *h, uint32_t port, int64_t bytes);

#endif
