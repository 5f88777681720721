/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Leaving a path: the process is told to suspend the connection, the path is told that it is left,
 * and the connection waits on self, with no path (it is *suspended*).
 */
#include "ag_suspend.h"

#include <stdlib.h>

#include "ag_client.h"
#include "ag_cm.h"
#include "ag_conn.h"
#include "ag_link.h"
#include "ag_list.h"
#include "ag_retire.h"
#include "ag_share.h"
#include "ag_state.h"
#include "rt_topo.h"
#include "u_time.h"
#include "w_ctl.h"

bool ag_suspend_can_resume(const struct ag_conn *conn)
{
	struct ag_agent *a = conn->link->agent;
	struct rt_end at;
	uint8_t hop;

	if (conn->path.hops == 0 || conn->attrs.reliability == W_LEVEL_UNRELIABLE)
		return false;
	for (hop = 0; hop < conn->path.hops; hop++) {
		if (rt_path_walk(a->topo, a->cfg.host_id, &conn->path, hop, &at) != 0 ||
		    (a->bridges[at.host] & 1u << conn->path.port[hop]) != 0)
			return false;
	}
	return true;
}

bool ag_suspend_is_resumable(const struct ag_conn *conn)
{
	return conn->resumable && conn->state == AG_CONNECTED && conn->client != NULL &&
	       !conn->client->gone;
}

void ag_suspend_drop_pending(struct ag_conn *conn)
{
	free(conn->pending_resume);
	conn->pending_resume = NULL;
}

void ag_suspend_set(struct ag_conn *conn, enum ag_resume resume)
{
	struct ag_agent *a = conn->link->agent;

	ag_list_remove(&conn->in_resuming);
	if (resume != AG_ON_PATH)
		ag_list_append(&a->resuming, &conn->in_resuming);
	conn->resume = resume;
	if (resume == AG_SUSPENDED && !conn->first)
		conn->ask_at = u_now_ns() + AG_ASK_NS;
}

void ag_suspend_begin_timers(struct ag_conn *conn)
{
	conn->full_port = 0;
	conn->resume_from = u_now_ns();
	conn->resume_until = conn->resume_from + AG_RESUME_NS;
}

void ag_suspend_forget(struct ag_conn *conn)
{
	/* Refuses the RESUME: its sender and the relays wait for an answer. */
	if (conn->pending_resume != NULL)
		ag_cm_refuse(conn->pending_resume->link, &conn->pending_resume->cm, W_NO_MATCH);
	ag_suspend_drop_pending(conn);
	ag_suspend_set(conn, AG_ON_PATH);
}

void ag_suspend_to_self(struct ag_conn *conn)
{
	conn->path_closed = false;
	ag_conn_move(conn, &conn->link->agent->links[0], &conn->path);
}

/*
 * After the CLOSE this end stores nothing over the path any more.  The other end may do so until it
 * has sent its own, so the slice is retired.
 */
void ag_suspend_leave_path(struct ag_conn *conn, enum w_lost reason)
{
	ag_cm_send(conn, W_CM_CLOSE, reason);
	ag_retire_slice(conn);
	ag_suspend_to_self(conn);
}

/* Frees the slice at once: the other end was not told of it, so nothing is stored there. */
void ag_suspend_give_up(struct ag_conn *conn)
{
	ag_conn_slice_free(conn);
	if (ag_conn_on_path(conn))
		ag_suspend_to_self(conn);
	ag_suspend_set(conn, AG_SUSPENDED);
}

/* Retires the slice: the ACCEPT named it, so the other end may already store there. */
void ag_suspend_leave_attempt(struct ag_conn *conn)
{
	ag_suspend_leave_path(conn, W_LOST_LINK);
	ag_suspend_set(conn, AG_SUSPENDED);
}

void ag_suspend_begin(struct ag_conn *conn)
{
	struct w_conn m = { .conn = conn->id };

	if (conn->resume == AG_ON_PATH)
		ag_suspend_begin_timers(conn);
	ag_suspend_set(conn, AG_SUSPENDING);
	ag_share_conn_end(conn);
	w_ctl_init(&m, W_SUSPEND, sizeof(m));
	ag_client_send(conn->client, &m, NULL, 0);
}

bool ag_suspend_withdraw(struct ag_conn *conn, enum w_lost reason)
{
	if (conn->resume != AG_RESUMING)
		return false;
	/*
	 * The path that this end accepted may be confirmed by now: it is left as the path of any
	 * connection.
	 */
	if (conn->first)
		ag_cm_send(conn, W_CM_CANCEL, W_TIMED_OUT);
	else
		ag_suspend_leave_path(conn, reason);
	return true;
}
