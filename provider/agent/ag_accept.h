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
 * already does.  0 or -errno; -EADDRINUSE: the host has an agent.
 */
int ag_accept_open(struct ag_agent *a);

/*
 * Accepts no process any more.  Processes that wait at a socket from the configuration are left to the next agent;
 * those that wait at the agent's own socket are turned away.
 */
void ag_accept_close(struct ag_agent *a);

/*
 * Accepts processes that wait, and refuses those that may not use the agent or for which there is
 * no room.
 */
void ag_accept(struct ag_agent *a);

/* Accepts again, when it is time, after descriptors had run out.  Returns the next deadline. */
int64_t ag_accept_timer(struct ag_agent *a, int64_t now);

#endif
