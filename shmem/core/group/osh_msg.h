/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Short messages between members of a team.
 */
#ifndef OSH_MSG_H
#define OSH_MSG_H

#include "osh_team.h"

/*
 * Sends n bytes, at most OSH_MSG_DATA, to a member, as a message of the team's kind; waits while it has no room for
 * more. Puts by osh_ctx_internal that came before arrive before.
 */
void osh_msg_send(const char *fn, struct osh_team *team, int to, const void *data, size_t n);
/*
 * Whether a member has sent one that was not taken; does not wait. One of another kind than that of the team ends the
 * job.
 */
bool osh_msg_is_there(const char *fn, const struct osh_team *team, int from);
/*
 * Waits for the next message of a member and takes it, n bytes, as many as were sent; one of another kind than that of
 * the team ends the job.
 */
void osh_msg_recv(const char *fn, struct osh_team *team, int from, void *data, size_t n);

/* Tells a member that the puts before are there. */
static inline void osh_msg_signal(const char *fn, struct osh_team *team, int to)
{
	osh_msg_send(fn, team, to, NULL, 0);
}

/* Waits until a member has called osh_msg_signal(). */
static inline void osh_msg_await(const char *fn, struct osh_team *team, int from)
{
	osh_msg_recv(fn, team, from, NULL, 0);
}

#endif
