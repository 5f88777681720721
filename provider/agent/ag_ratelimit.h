/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rate limits of the agent's log: a limited number of lines is written of each kind that a
 * neighbour, a relayed host or a process can cause without end; the others are counted.
 */
#ifndef AG_RATELIMIT_H
#define AG_RATELIMIT_H

#include <stdint.h>

#include "u_log.h"

/* Kinds of lines for each of which the agent has one limit, */
enum ag_ratelimit {
	AG_RATELIMIT_CLIENT,
	AG_RATELIMIT_CLOSE,
	AG_RATELIMIT_STAND,
	AG_RATELIMIT_CIRCUIT,
	AG_RATELIMIT_LOST,
	AG_RATELIMITS
};

/* and for each of which every link has one. */
enum ag_link_ratelimit {
	AG_RATELIMIT_STATE,
	AG_RATELIMIT_SETUP,
	AG_RATELIMIT_CUT,
	AG_RATELIMIT_RECORD,
	AG_RATELIMIT_ROOM,
	AG_RATELIMIT_MEMORY,
	AG_LINK_RATELIMITS
};

/* Initialises all limits of the agent, with nothing counted. */
void ag_ratelimits_init(struct u_log_ratelimit r[AG_RATELIMITS]);

/* Sets the limits of a link.  `name` is that of its port and must outlive them. */
void ag_ratelimits_init_link(struct u_log_ratelimit r[AG_LINK_RATELIMITS], const char *name);

/*
 * Logs how many lines were left out, where such a count is due.  Returns the time at which the next one is due,
 * or U_NEVER.
 */
int64_t ag_ratelimits_tell(struct u_log_ratelimit *ratelimits, unsigned int count);

#endif
