/* SPDX-License-Identifier: BSD-2-Clause */
/* Which connections are carried. */
#ifndef VF_HOST_H
#define VF_HOST_H

#include <stdbool.h>
#include <sys/types.h>

#include "vs_rules.h"

/* Reads the environment of vi_run; `promote` is its --promote.  False, after an error line. */
bool vf_host_init(enum vs_policy promote);

/* False: nothing is carried for a connection to or from this address, whatever else is known of it. */
bool vf_host_may(const struct vs_addr *a);

/*
 * Is a connection of that thread's program to be carried?  The rules allow it, and the fabric knows the peer's address.
 * Asks the agent, which answers at once.
 */
bool vf_host_carries(pid_t thread, const struct vs_addr *peer, const struct vs_addr *local);

#endif
