/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections that outlive their path; w_ctl.h draws the exchange.
 *
 * A reliable connection is resumable if each link of its path can be replaced by a path over
 * others. When its path is lost, each end makes its process suspend it, sends CLOSE over the old
 * path, and waits on self (ag_suspend.c).  The first end looks for a path and asks the other
 * (RESUME).  When that fails it asks again every AG_ASK_NS, and when links change, until
 * AG_RESUME_NS have passed without a path.  It asks again even if no link has changed since,
 * because an update may have come before the refusal.  A connection whose path is longer than
 * necessary is suspended and resumed in the same steps.
 *
 * A first end that is closed while its path is lost, or that finds no path in time, sends a RESUME
 * with a reason, its *final message*: without it the other end would wait for it to ask.  While it
 * waits, the other end asks the agent of the first end by QUERY if the first end still exists.  It
 * does not exist for an agent that was started after the first end's agent has ended, and then the
 * other end stops waiting.
 *
 * The epoch counts paths, so that records about an old path can be told from those about a new one.
 */
#include "ag_resume.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "ag_client.h"
#include "ag_cm.h"
#include "ag_conn.h"
#include "ag_ctl.h"
#include "ag_end.h"
#include "ag_link.h"
#include "ag_resume_ask.h"
#include "ag_retire.h"
#include "ag_route.h"
#include "ag_state.h"
#include "ag_suspend.h"
#include "w_ctl.h"

/* ---- suspending ---- */

bool ag_resume_link_down(struct ag_conn *conn)
{
	if (!ag_suspend_is_resumable(conn))
		return false;
	switch (conn->resume) {
	case AG_ON_PATH:
	case AG_RESUMED:
		ag_conn_slice_free(conn);
		ag_suspend_to_self(conn);
		ag_suspend_begin(conn);
		break;
	case AG_SUSPENDING:
		ag_conn_slice_free(conn);
		ag_suspend_to_self(conn);
		break;
	case AG_SUSPENDED:
		break;
	case AG_RESUMING:
		ag_suspend_give_up(conn);
		if (conn->first)
			ag_resume_ask(conn);
		break;
	}
	return true;
}

static void serve_pending_resume(struct ag_conn *conn);

void ag_resume_suspended(struct ag_client *c, const struct w_suspended *m)
{
	struct ag_conn *conn = ag_conn_of_client(c, m->conn);

	if (conn == NULL || conn->resume != AG_SUSPENDING)
		return;
	conn->held = false;
	if (ag_conn_on_path(conn))
		ag_suspend_leave_path(conn, W_LOST_LINK);
	conn->consumed = m->consumed;
	ag_suspend_set(conn, AG_SUSPENDED);
	if (conn->first)
		ag_resume_ask(conn);
	else if (conn->pending_resume != NULL)
		serve_pending_resume(conn);
}

/*
 * CLOSE with W_LOST_LINK says that the other end has left the path: the connection is suspended, or an attempt
 * to resume it fails.
 */
bool ag_resume_closed(struct ag_conn *conn, const struct w_cm *cm)
{
	if (!ag_suspend_is_resumable(conn) || cm->status != W_LOST_LINK)
		return false;
	conn->path_closed = true;
	switch (conn->resume) {
	case AG_ON_PATH:
	case AG_RESUMED:
		ag_suspend_begin(conn);
		break;
	case AG_RESUMING:
		ag_suspend_leave_attempt(conn);
		if (conn->first)
			ag_resume_ask(conn);
		break;
	case AG_SUSPENDING:
	case AG_SUSPENDED:
		break;
	}
	return true;
}

/*
 * Gives up the attempt to resume the connection, as its path does not exist, or has no room.  Other paths are
 * tried when links change (the update may have come before the refusal) or after AG_ASK_NS, when the refusing
 * agent may know a path or have room.  After a REFUSE for another reason the other end is gone, so the next
 * timers end the connection.
 */
bool ag_resume_refused(struct ag_conn *conn, const struct w_cm *cm)
{
	bool may_pass = cm->status == W_NOT_REACHABLE || cm->status == W_NO_RESOURCE;

	if (conn->resume != AG_RESUMING)
		return false;
	ag_suspend_give_up(conn);
	if (cm->status == W_NO_RESOURCE)
		conn->full_port = conn->path.port[0];
	if (cm->hdr.type == W_CM_REFUSE && !may_pass)
		conn->resume_until = 0; /* the other end is closed or lost, and does not wait */
	else if (conn->first && conn->paths_changed)
		ag_resume_ask(conn);
	return true;
}

/* ---- the other end ---- */

/*
 * Uses up the pending RESUME of a suspended connection: answers it with ACCEPT over its path; with REFUSE, if
 * there is no room; or not at all, if its link is down.  A final message is refused, and ends the connection:
 * its process is told, and `conn` is freed.
 */
static void serve_pending_resume(struct ag_conn *conn)
{
	struct ag_pending_resume pending = *conn->pending_resume;
	int rc;

	ag_suspend_drop_pending(conn);
	if (pending.cm.status != 0) {
		/* The relays wait for an answer. */
		ag_cm_refuse(pending.link, &pending.cm, W_NO_MATCH);
		ag_end_tell_lost(conn, (enum w_lost)pending.cm.status);
		ag_end_free(conn);
		return;
	}
	if (!ag_link_usable(pending.link))
		return;
	ag_conn_slice_free(conn);
	ag_conn_move(conn, pending.link, &pending.path);
	rc = ag_retire_has_room(conn) ? ag_conn_slice_alloc(conn) : -ENOSPC;
	if (rc != 0) {
		ag_cm_refuse(pending.link, &pending.cm, ag_cm_status(rc));
		ag_suspend_to_self(conn);
		return;
	}
	conn->epoch = pending.cm.epoch;
	ag_suspend_set(conn, AG_RESUMING);
	ag_cm_send(conn, W_CM_ACCEPT, 0);
}

/* Is the sender of the record the other end of `conn`?  False for NULL. */
static bool is_of(const struct ag_conn *conn, const struct w_cm *cm)
{
	return conn != NULL && conn->peer_host == cm->src_host && conn->peer_conn == cm->src_conn;
}

void ag_resume_query(struct ag_link *l, const struct w_cm *cm)
{
	if (!is_of(ag_conn_get(l->agent, cm->dst_conn), cm) && !ag_ctl_busy(l))
		ag_cm_answer(l, cm, W_CM_UNKNOWN, 0);
}

/*
 * The first end is gone for good: no id is given twice, so an unknown id stays unknown.  The next timers end
 * the connection.
 */
void ag_resume_unknown(struct ag_link *l, const struct w_cm *cm)
{
	struct ag_conn *conn = ag_conn_get(l->agent, cm->dst_conn);

	if (!is_of(conn, cm) || !ag_resume_waits_for_first(conn))
		return;
	conn->resume_until = 0;
	l->agent->dirty = true;
}

/* Returns the newest epoch for which the first end asked. */
static uint32_t last_epoch(const struct ag_conn *conn)
{
	return conn->pending_resume != NULL ? conn->pending_resume->cm.epoch : conn->epoch;
}

/*
 * Returns the end that a RESUME names, or NULL if it may not be resumed by it.  A RESUME that is older than the
 * last one counts as such: it may have come by a slower path.
 */
static struct ag_conn *resumed_end(struct ag_link *l, const struct w_cm *cm)
{
	struct ag_conn *conn = ag_conn_get(l->agent, cm->dst_conn);

	if (!is_of(conn, cm) || conn->first || !ag_suspend_is_resumable(conn) ||
	    (int32_t)(cm->epoch - last_epoch(conn)) <= 0)
		return NULL;
	return conn;
}

void ag_resume_request(struct ag_link *l, const struct w_cm *cm)
{
	struct ag_conn *conn = resumed_end(l, cm);
	struct rt_path back;

	if (conn == NULL || ag_route_back(l->agent, cm->src_host, &cm->path, &back) != 0) {
		ag_cm_refuse(l, cm, W_NO_MATCH);
		return;
	}
	if (conn->pending_resume == NULL)
		conn->pending_resume = malloc(sizeof(*conn->pending_resume));
	if (conn->pending_resume == NULL) {
		ag_cm_refuse(l, cm, W_NO_RESOURCE);
		return;
	}
	*conn->pending_resume = (struct ag_pending_resume){ .link = l, .path = back, .cm = *cm };
	if (conn->resume == AG_ON_PATH || conn->resume == AG_RESUMED)
		ag_suspend_begin(conn);
	else if (conn->resume == AG_RESUMING)
		ag_suspend_leave_attempt(conn);
	if (conn->resume == AG_SUSPENDED)
		serve_pending_resume(conn);
}

/*
 * Hands the slices of the new path to the process, which has to confirm them; if that fails, the connection is
 * suspended again.
 */
int ag_resume_confirmed(struct ag_conn *conn, const struct w_cm *cm, bool last_chance)
{
	int out_fd, rc;

	if (conn->first || conn->resume != AG_RESUMING)
		return 0;
	rc = ag_cm_outbound(conn->link, &cm->geometry, last_chance, &out_fd);
	if (rc == -EAGAIN)
		return rc;
	/* The process has already got the count of consumed slots from RESUME: a CONFIRM has none. */
	if (rc == 0)
		rc = ag_cm_linked(conn, W_RESUMED, cm, out_fd);
	if (rc == 0)
		ag_suspend_set(conn, AG_RESUMED);
	else
		ag_suspend_leave_attempt(conn);
	return 0;
}

/* ---- the first end, answered ---- */

/*
 * Allots a slice and hands both to the process, which has to confirm them; if that fails, the other end gets a
 * CANCEL and the connection is suspended again.
 */
int ag_resume_accept(struct ag_conn *conn, const struct w_cm *cm, bool last_chance)
{
	int out_fd, rc;

	if (!conn->first || conn->resume != AG_RESUMING || cm->src_conn != conn->peer_conn ||
	    conn->state != AG_CONNECTED)
		return 0;
	rc = ag_cm_outbound(conn->link, &cm->geometry, last_chance, &out_fd);
	if (rc == -EAGAIN)
		return rc;
	if (rc == 0) {
		rc = ag_conn_slice_alloc(conn);
		if (rc != 0)
			close(out_fd);
		else
			rc = ag_cm_linked(conn, W_RESUMED, cm, out_fd);
	}
	if (rc == 0) {
		ag_suspend_set(conn, AG_RESUMED);
		return 0;
	}
	ag_cm_send(conn, W_CM_CANCEL, ag_cm_status(rc));
	ag_suspend_give_up(conn);
	return 0;
}

bool ag_resume_confirm(struct ag_conn *conn)
{
	if (conn->resume == AG_ON_PATH)
		return false;
	if (conn->resume == AG_RESUMED) {
		ag_suspend_set(conn, AG_ON_PATH);
		if (conn->first)
			ag_cm_send(conn, W_CM_CONFIRM, 0);
	}
	return true;
}
