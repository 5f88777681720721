/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The agent of one host (VIA's kernel agent, in user space): owns the host's ports, brings links
 * up, makes connections for the processes of the host, allots slices, and tells processes which of
 * their connections are lost.  It is never on the path of a message.
 *
 * A library, so that tests run many agents as threads of one process; viaductd is a thin main
 * around it.
 */
#ifndef AG_AGENT_H
#define AG_AGENT_H

#include <stdint.h>

#include "ag_cfg.h"

struct ag_agent;
struct port;

/*
 * Binds the host's addresses and makes its ports; processes can connect from then on.  0 with an agent for
 * ag_destroy(), -EADDRINUSE when the host already has an agent, -EINVAL for a bad configuration or a `listen_sock` of
 * another address (the log says why), or another -errno.  The agent keeps nothing of `cfg` but `listen_sock`, which
 * belongs to it from then on; after an error it may be open or closed.  Opens /dev/null as those of the descriptors
 * 0..2 that are closed.
 */
int ag_create(const struct ag_cfg *cfg, struct ag_agent **out);

/*
 * Serves until stopped: ag_stop(), W_ADMIN_STOP or, with `leave_when_idle`, no process with a NIC for grace_ms.
 * Returns 0 or -errno; the agent stays for ag_destroy().
 */
int ag_run(struct ag_agent *a);

/*
 * One turn of ag_run(): waits for something to handle, until *until at most (a time of u_now_ns(); 0: not at all), then
 * handles what is ready and what is due.  *until becomes the time of the next turn at the latest.  0, 1 where ag_run()
 * would return 0, or -errno.
 *
 * A `stepped` agent checks only at the start of a turn whether neighbours have rung, and no later ring ends its
 * wait.  It still has transfer threads.
 */
int ag_step(struct ag_agent *a, int64_t *until);

/* Makes ag_run() return.  Any thread or signal handler may call it. */
void ag_stop(struct ag_agent *a);

/* Closes every client and port, and frees the agent.  ag_run() must have returned.  Accepts NULL. */
void ag_destroy(struct ag_agent *a);

/*
 * Counts of the objects that an agent holds, for tests of leaks; valid only while ag_run() is not
 * running.
 */
struct ag_usage {
	uint32_t clients, conns, listens, allocs, offers, circuits;
	/* entries that a search of their tables passes at most */
	uint32_t longest_circuits, longest_conns;
	uint64_t window_used;	/* over all ports */
	uint64_t relay_dropped; /* records so far that no neighbour should have sent */
	uint64_t relay_refused; /* circuits so far for which there was no room */
};
/* Fills in all of `out`.  It takes no lock. */
void ag_usage(const struct ag_agent *a, struct ag_usage *out);

#endif
