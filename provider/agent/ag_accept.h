/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Accepting processes: the socket to which they connect, and the choice of those that become
 * clients.
 */
#ifndef AG_ACCEPT_H
#define AG_ACCEPT_H

#include <stdint.h>

#include "ag_state.h"

/*
 * Binds the address of the agent and listens, or takes the socket of the configuration, which
 * already does.  Also opens the spare descriptor.  0 or -errno; -EADDRINUSE: the host has an agent.  After an error,
 * too, ag_destroy() closes what is open.
 */
int ag_accept_open(struct ag_agent *a);

/*
 * Accepts no process any more.  Processes that wait at a socket from the configuration are left to the next agent;
 * those that wait at the agent's own socket are turned away.
 */
void ag_accept_close(struct ag_agent *a);

/*
 * Accepts some of the processes that wait, up to a fixed number in a call, and refuses those that may not use the
 * agent or for which there is no room.  Where no descriptor is left, or too many sockets are being closed, accepting
 * stops for AG_RETRY_NS (ag_accept_timer()).
 */
void ag_accept(struct ag_agent *a);

/*
 * Moves the spare descriptor to the lowest number that is free as the agent begins to run, so that it is still below a
 * limit that is lowered later.
 */
void ag_accept_lower_spare(struct ag_agent *a);

/* Watches the socket again, when it is time, after accepting had stopped.  Returns the next deadline, or U_NEVER. */
int64_t ag_accept_timer(struct ag_agent *a, int64_t now);

#endif
