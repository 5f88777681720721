/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Admission: which users may use this agent, and limits by which one user leaves resources for
 * others.
 */
#include "ag_admission.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "ag_cfg.h"
#include "ag_ratelimit.h"
#include "ag_state.h"
#include "u_close.h"
#include "u_log.h"
#include "w_ctl.h"

/* Window memory: pieces of a client, and of all of one user. */
#define CLIENT_ALLOCS 4096u
#define USER_ALLOCS 16384u
/*
 * Descriptors that wait for one client, and for all clients of one user.  When a user's clients
 * have more, the client with most of them is dropped.
 */
#define CLIENT_FDS 2048u
#define USER_FDS 8192u
/* Connections of one user that have not said HELLO; with more, the oldest is dropped. */
#define USER_SILENT 256u
#define GROUPS_MAX 65536

/* Returns `many`, or `few` where the process may have few descriptors. */
static uint32_t at_most(uint64_t few, uint32_t many)
{
	return few < many ? (uint32_t)few : many;
}

void ag_admission_limits(struct ag_agent *a)
{
	struct rlimit rl = { .rlim_cur = 1024 };

	getrlimit(RLIMIT_NOFILE, &rl);
	a->client_fds = at_most(rl.rlim_cur / 8, CLIENT_FDS);
	a->user_fds = at_most(rl.rlim_cur / 4, USER_FDS);
	/* Each piece keeps one descriptor in this process. */
	a->client_allocs = at_most(rl.rlim_cur / 8, CLIENT_ALLOCS);
	a->user_allocs = at_most(rl.rlim_cur / 4, USER_ALLOCS);
	a->fds = rl.rlim_cur;
	a->user_silent = at_most(rl.rlim_cur / 16 + (rl.rlim_cur < 16), USER_SILENT);
}

/* Is `group` the group of the peer process, or among its further groups?  False, too, if these cannot be read. */
static bool in_groups(int sock, const struct ucred *cred, gid_t group)
{
	gid_t some[64], *groups = some;
	socklen_t len = sizeof(some);
	bool found = cred->gid == group;
	size_t i;

	if (found)
		return true;
	if (getsockopt(sock, SOL_SOCKET, SO_PEERGROUPS, some, &len) != 0) {
		if (errno != ERANGE || len > GROUPS_MAX * sizeof(gid_t))
			return false;
		groups = malloc(len);
		if (groups == NULL ||
		    getsockopt(sock, SOL_SOCKET, SO_PEERGROUPS, groups, &len) != 0)
			len = 0;
	}
	for (i = 0; i < len / sizeof(gid_t) && !found; i++)
		found = groups[i] == group;
	if (groups != some)
		free(groups);
	return found;
}

bool ag_admission_allowed(struct ag_agent *a, int sock, struct ucred *cred)
{
	socklen_t len = sizeof(*cred);

	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, cred, &len) != 0)
		return false;
	if (cred->uid == a->cfg.owner || cred->uid == 0)
		return true;
	return a->cfg.group != AG_NO_GROUP && in_groups(sock, cred, a->cfg.group);
}

/* Sends one line, if the socket takes it, and closes the socket. */
void ag_admission_turn_away(int sock, enum w_status status, const char *text)
{
	struct w_refused m = { .status = status };

	w_ctl_init(&m, W_DONE, sizeof(m));
	snprintf(m.text, sizeof(m.text), "%s", text);
	w_ctl_send(sock, &m, NULL, 0);
	u_hang_up(sock);
}

bool ag_admission_closing_keeps_up(struct ag_agent *a)
{
	unsigned int count = u_close_busy();

	if (count < U_CLOSE_MAX)
		return true;
	u_log_ratelimited(
		&a->ratelimit[AG_RATELIMIT_CLOSE],
		"%u sockets with descriptors of others are being closed, which takes as long as "
		"their senders like; nobody new is taken meanwhile",
		count);
	return false;
}
