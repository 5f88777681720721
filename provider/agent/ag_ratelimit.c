/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rate limits of the agent's log: lines that neighbours, relayed hosts and processes can cause
 * without end are limited.
 */
#include "ag_ratelimit.h"

#include "u_log.h"
#include "u_time.h"

static struct u_log_ratelimit ratelimit(enum u_log_level level, const char *what, const char *whose)
{
	return (struct u_log_ratelimit)U_LOG_RATELIMIT(level, "ag", what, whose);
}

void ag_ratelimits_init(struct u_log_ratelimit r[AG_RATELIMITS])
{
	r[AG_RATELIMIT_CLIENT] =
		ratelimit(U_LOG_WARN, "processes that were dropped or turned away", NULL);
	r[AG_RATELIMIT_CLOSE] =
		ratelimit(U_LOG_WARN, "waits for descriptors of others to close", NULL);
	r[AG_RATELIMIT_STAND] = ratelimit(U_LOG_ERROR, "standstills of this agent", NULL);
	r[AG_RATELIMIT_CIRCUIT] =
		ratelimit(U_LOG_WARN, "connections of others that were cut", NULL);
	r[AG_RATELIMIT_LOST] = ratelimit(U_LOG_INFO, "connections that were lost", NULL);
}

void ag_ratelimits_init_link(struct u_log_ratelimit r[AG_LINK_RATELIMITS], const char *name)
{
	r[AG_RATELIMIT_STATE] = ratelimit(U_LOG_INFO, "ups and downs of link", name);
	r[AG_RATELIMIT_SETUP] = ratelimit(U_LOG_ERROR, "failures to set up link", name);
	r[AG_RATELIMIT_CUT] = ratelimit(U_LOG_WARN, "cuts and cables of link", name);
	r[AG_RATELIMIT_RECORD] = ratelimit(U_LOG_WARN, "bad records of port", name);
	r[AG_RATELIMIT_ROOM] = ratelimit(U_LOG_INFO, "want of room at port", name);
	r[AG_RATELIMIT_MEMORY] =
		ratelimit(U_LOG_INFO, "memory that cannot be shared at port", name);
}

int64_t ag_ratelimits_tell(struct u_log_ratelimit *ratelimits, unsigned int count)
{
	int64_t at, next = U_NEVER;
	unsigned int i;

	for (i = 0; i < count; i++) {
		at = u_log_ratelimit_tell(&ratelimits[i]);
		next = at < next ? at : next;
	}
	return next;
}
