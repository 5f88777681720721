/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records of the other end's agent about a connection: a request, its answers, the end.
 *
 * A record may be late: it is ignored where the end that it names does not exist any more or is in
 * a state that it does not fit.
 */
#include "ag_remote.h"

#include <errno.h>
#include <unistd.h>

#include "ag_client.h"
#include "ag_cm.h"
#include "ag_conn.h"
#include "ag_connect.h"
#include "ag_end.h"
#include "ag_link.h"
#include "ag_peer.h"
#include "ag_resume.h"
#include "ag_resume_ask.h"
#include "ag_retire.h"
#include "ag_route.h"
#include "ag_share.h"
#include "ag_suspend.h"
#include "ag_waiter.h"
#include "rt_topo.h"
#include "w_ctl.h"

void ag_remote_request(struct ag_link *l, const struct w_cm *cm)
{
	struct w_arrived m = { .attrs = cm->attrs, .remote = cm->local };
	struct ag_listen *waiter = ag_listen_match(l->agent, &cm->remote);
	struct ag_conn *conn;
	struct rt_path back;

	if (cm->src_conn == 0 || ag_conn_by_peer(l->agent, cm->src_host, cm->src_conn) != NULL ||
	    ag_route_back(l->agent, cm->src_host, &cm->path, &back) != 0)
		return;
	if (!ag_cm_addresses_ok(l->agent, cm)) {
		ag_cm_refuse(l, cm, W_BAD_REQUEST);
		return;
	}
	if (waiter == NULL) {
		ag_cm_refuse(l, cm, W_NO_MATCH);
		return;
	}
	conn = ag_conn_new(waiter->client, l, AG_ARRIVED);
	if (conn == NULL) {
		ag_cm_refuse(l, cm, W_NO_RESOURCE);
		return;
	}
	conn->peer_host = cm->src_host;
	conn->path = back;
	ag_conn_set_geometry(conn, &cm->geometry);
	ag_conn_set_peer(conn, cm->src_conn);
	conn->peer_attrs = cm->attrs;
	conn->local = cm->remote;
	conn->remote = cm->local;
	m.token = waiter->token;
	m.conn = conn->id;
	ag_listen_free(waiter);
	w_ctl_init(&m, W_ARRIVED, sizeof(m));
	ag_client_send(conn->client, &m, NULL, 0);
}

void ag_remote_refuse(struct ag_link *l, const struct w_cm *cm)
{
	struct ag_conn *conn = ag_cm_end_of(l, cm);

	if (conn == NULL || ag_resume_refused(conn, cm) || conn->state != AG_REQUESTED)
		return;
	ag_client_refuse(conn->client, W_REFUSED, conn->token,
			 cm->status == W_SUCCESS ? W_REJECTED : (enum w_status)cm->status, NULL);
	ag_end_free(conn);
}

/*
 * Allots a slice and hands both slices to the process, which has to confirm, and sends CONFIRM to the other end
 * unless the two are peers.  If that fails, the request is refused and the other end gets a CANCEL; that returns
 * 0, too.
 */
int ag_remote_accept(struct ag_link *l, const struct w_cm *cm, bool last_chance)
{
	struct ag_conn *conn = ag_cm_end_of(l, cm);
	int out_fd, rc;

	if (conn != NULL && conn->resume != AG_ON_PATH)
		return ag_resume_accept(conn, cm, last_chance);
	if (conn == NULL || conn->state != AG_REQUESTED || cm->src_conn == 0)
		return 0;
	if (!ag_conn_trusts(conn->client)) {
		ag_conn_set_peer(conn, cm->src_conn);
		ag_cm_send(conn, W_CM_CANCEL, W_TIMED_OUT);
		ag_client_refuse(conn->client, W_REFUSED, conn->token, W_NO_RESOURCE, NULL);
		ag_end_free(conn);
		return 0;
	}
	conn->resumable = ag_suspend_can_resume(conn);
	rc = ag_cm_outbound(l, &cm->geometry, last_chance, &out_fd);
	if (rc == -EAGAIN)
		return rc;
	/*
	 * Relays forward between slices of one geometry, and a connection to a neighbour may be
	 * resumed over relays.
	 */
	ag_conn_limit_geometry(&conn->geometry, &cm->geometry);
	if (rc == 0) {
		rc = ag_conn_slice_alloc(conn);
		if (rc != 0)
			close(out_fd);
		else
			rc = ag_cm_linked(conn, W_LINKED, cm, out_fd);
	}
	ag_conn_set_peer(conn, cm->src_conn);
	if (rc == 0) {
		ag_conn_set_state(conn, AG_LINKED);
		conn->peer_attrs = cm->attrs;
		/*
		 * A server does not wait for this process: what it sends waits in the slice, and if the
		 * process does not confirm the server's connection is lost.  A peer waits, since it has to
		 * find another one then.
		 */
		if (!conn->peer)
			ag_cm_send(conn, W_CM_CONFIRM, 0);
		return 0;
	}
	ag_cm_send(conn, W_CM_CANCEL, ag_cm_status(rc));
	ag_client_refuse(conn->client, W_REFUSED, conn->token, ag_cm_status(rc), NULL);
	ag_end_free(conn);
	return 0;
}

/*
 * Hands both slices to the process: the connection is connected.  If that fails, the accept is refused and the
 * other end gets a CLOSE; that returns 0, too.
 */
int ag_remote_confirm(struct ag_link *l, const struct w_cm *cm, bool last_chance)
{
	struct ag_conn *conn = ag_cm_end_of(l, cm);
	int out_fd, rc;

	if (conn != NULL && conn->resume != AG_ON_PATH)
		return ag_resume_confirmed(conn, cm, last_chance);
	if (conn == NULL || conn->state != AG_ACCEPTING)
		return 0;
	conn->resumable = ag_suspend_can_resume(conn);
	rc = ag_cm_outbound(l, &cm->geometry, last_chance, &out_fd);
	if (rc == -EAGAIN)
		return rc;
	if (rc == 0)
		rc = ag_cm_linked(conn, W_LINKED, cm, out_fd);
	if (rc == 0) {
		ag_conn_set_state(conn, AG_CONNECTED);
		return 0;
	}
	ag_client_refuse(conn->client, W_REFUSED, conn->token, ag_cm_status(rc), NULL);
	ag_connect_leave(conn, W_LOST_CLOSED);
	return 0;
}

/*
 * Returns the status that the process is told: that of the record if it is one of the two that fit, else
 * W_TIMED_OUT.
 */
static enum w_status cancel_status(uint32_t status)
{
	return status == W_NO_RESOURCE || status == W_NOT_REACHABLE ? (enum w_status)status
								    : W_TIMED_OUT;
}

/*
 * The other end asked for the connection, and gave up before it was linked, had no room, or lost its link.
 * Frees an end that has arrived, is being accepted or is closed; the process is told of the second.  In other
 * states it is ignored; for a resumed connection see ag_resume_refused().
 */
void ag_remote_cancel(struct ag_link *l, const struct w_cm *cm)
{
	struct ag_conn *conn = ag_cm_end_of(l, cm);

	if (conn == NULL || conn->peer_conn == 0 || ag_resume_refused(conn, cm))
		return;
	switch (conn->state) {
	case AG_ACCEPTING:
		ag_client_refuse(conn->client, W_REFUSED, conn->token, cancel_status(cm->status),
				 cm->status == W_NO_RESOURCE ? "the other end has no room left"
							     : NULL);
		ag_end_free(conn);
		break;
	case AG_ARRIVED:
	case AG_CLOSED:
		ag_end_free(conn);
		break;
	default:
		break;
	}
}

/*
 * The other end closed the connection before it confirmed: answers with a CLOSE.  A peer waits again; the
 * accept of a server is refused, and the end freed.
 */
static void accept_undone(struct ag_conn *conn)
{
	ag_cm_send(conn, W_CM_CLOSE, W_LOST_CLOSED);
	if (conn->peer) {
		ag_peer_rewait(conn);
		return;
	}
	ag_client_refuse(conn->client, W_REFUSED, conn->token, W_TIMED_OUT, NULL);
	ag_end_free(conn);
}

/*
 * Tells the process that the connection is lost; the end is freed when it has closed, too.  A resumable
 * connection whose path is lost is suspended instead, and an accept that was not confirmed is undone.  Frees
 * the slices that the other end has left.
 */
void ag_remote_close(struct ag_link *l, const struct w_cm *cm)
{
	struct ag_conn *conn = ag_cm_end_of(l, cm);

	ag_retire_left(l, cm);
	if (conn == NULL || conn->peer_conn == 0 || ag_resume_closed(conn, cm))
		return;
	switch (conn->state) {
	case AG_ACCEPTING:
		accept_undone(conn);
		break;
	case AG_LINKED:
	case AG_CONNECTED:
		ag_conn_set_state(conn, AG_LOST);
		ag_suspend_forget(conn);
		ag_share_conn_end(conn);
		ag_end_tell_lost(conn, (enum w_lost)cm->status);
		break;
	case AG_CLOSED:
		if (cm->status != W_LOST_LINK || !ag_resume_final_message(conn))
			ag_end_free(conn);
		break;
	default:
		break;
	}
}
