/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes that come: the socket to which they connect, and which of them become clients. */
#ifndef AG_ACCEPT_H
#define AG_ACCEPT_H

#include <stdint.h>

#include "ag_state.h"

/* Binds the address of the agent and listens.  0 or -errno; -EADDRINUSE: the host has an agent. */
int ag_accept_open(struct ag_agent *a);

/* Accepts processes that wait, and turns away those that may not come or find no room. */
void ag_accept(struct ag_agent *a);

/* Accepts again after an interruption.  Returns the next deadline. */
int64_t ag_accept_timer(struct ag_agent *a, int64_t now);

#endif
