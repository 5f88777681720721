/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests of processes about connections.  w_ctl.h draws the exchange. */
#include "ag_connect.h"

#include <sys/socket.h>

#include "ag_addr.h"
#include "ag_attempt.h"
#include "ag_client.h"
#include "ag_cm.h"
#include "ag_conn.h"
#include "ag_end.h"
#include "ag_holder.h"
#include "ag_link.h"
#include "ag_list.h"
#include "ag_ratelimit.h"
#include "ag_resume.h"
#include "ag_resume_ask.h"
#include "ag_suspend.h"
#include "ag_waiter.h"
#include "rt_topo.h"
#include "u_log.h"
#include "u_time.h"
#include "w_ctl.h"

/*
 * Makes a waiter at the local address, which has no answer before a request arrives.  Refused: an address of another
 * host, or too many waiters.
 */
void ag_connect_listen(struct ag_client *c, const struct w_connect *m)
{
	if (ag_attempt_is_own(c, m) && ag_listen_new(c, m->token, &m->local) == NULL)
		ag_client_refuse(c, W_REFUSED, m->token, W_NO_RESOURCE,
				 "too many waiters of one process");
}

/*
 * Frees the waiter, if there still is one, and answers in any case.  If the waiter was used up, ARRIVED is on
 * its way to the process, and UNLISTENED follows it.
 */
void ag_connect_unlisten(struct ag_client *c, const struct w_token *m)
{
	struct ag_listen *l = ag_listen_by_token(c, m->token);
	struct w_token answer = { .token = m->token };

	if (l != NULL)
		ag_listen_free(l);
	w_ctl_init(&answer, W_UNLISTENED, sizeof(answer));
	ag_client_send(c, &answer, NULL, 0);
}

/* Makes the end of an attempt, and asks the other agent or holds the request; or refuses it. */
void ag_connect_request(struct ag_client *c, const struct w_connect *m)
{
	struct rt_path path;
	uint16_t host;
	struct ag_link *l = ag_attempt_link(c, m, &path, &host);
	struct ag_conn *conn;

	if (l == NULL)
		return;
	conn = ag_attempt_new(c, l, m, &path, host, AG_HELD);
	if (conn != NULL)
		ag_attempt_request(conn);
}

/*
 * Ends an attempt or an accept that is not settled: tells the other agent, if that knows of it, and answers W_REFUSED
 * with W_TIMED_OUT.  If the connection was made before this came, it is only marked as withdrawn, and the process
 * closes it; if the attempt was answered otherwise, the answer is on its way to the process, and nothing is done.
 */
void ag_connect_cancel(struct ag_client *c, const struct w_token *m)
{
	struct ag_conn *conn = ag_conn_by_token(c, m->token);

	if (conn == NULL)
		return;
	if (conn->state == AG_LINKED) {
		conn->withdrawn = true;
		return;
	}
	ag_connect_leave(conn, W_LOST_CLOSED);
	ag_client_refuse(c, W_REFUSED, m->token, W_TIMED_OUT, NULL);
}

/*
 * Allots the slice and sends ACCEPT to the other agent; the process has no answer before the other end confirms.  If
 * the attributes differ or there is no room, the process is refused and may accept again; if the other end cannot be
 * reached, the request ends, too.  Refused also: W_TIMED_OUT, the request is gone; W_BAD_STATE, it was accepted.
 */
void ag_connect_accept(struct ag_client *c, const struct w_accept *m)
{
	struct ag_conn *conn = ag_conn_of_client(c, m->conn);
	enum w_status status;

	if (conn == NULL || conn->state != AG_ARRIVED) {
		ag_client_refuse(c, W_REFUSED, m->token, conn == NULL ? W_TIMED_OUT : W_BAD_STATE,
				 NULL);
		return;
	}
	status = ag_addr_compare_attrs(&m->attrs, &conn->peer_attrs);
	if (status == W_SUCCESS)
		status = ag_cm_status(ag_conn_slice_alloc(conn));
	if (status != W_SUCCESS) {
		ag_client_refuse(c, W_REFUSED, m->token, status, NULL);
		if (status == W_NOT_REACHABLE) {
			ag_cm_send(conn, W_CM_REFUSE, status);
			ag_end_free(conn);
		}
		return;
	}
	conn->token = m->token;
	conn->attrs = m->attrs;
	ag_conn_set_state(conn, AG_ACCEPTING);
	ag_cm_send(conn, W_CM_ACCEPT, 0);
}

/* Sends REFUSE to the other agent and frees the end, if it still waits for the answer of this process. */
void ag_connect_reject(struct ag_client *c, const struct w_conn *m)
{
	struct ag_conn *conn = ag_conn_of_client(c, m->conn);

	if (conn == NULL || conn->state != AG_ARRIVED)
		return;
	ag_cm_send(conn, W_CM_REFUSE, W_REJECTED);
	ag_end_free(conn);
}

/*
 * Makes a connection, new or resumed, connected if it waits for this; else does nothing.  Between peers the first end
 * tells the other agent by CONFIRM; a client's agent has done so when the connection was linked.  The process is
 * trusted again (ag_conn_trusts()).
 */
void ag_connect_confirm(struct ag_client *c, const struct w_conn *m)
{
	struct ag_conn *conn = ag_conn_of_client(c, m->conn);

	if (conn == NULL || ag_resume_confirm(conn) || conn->state != AG_LINKED)
		return;
	c->holders.process->unconfirmed = 0;
	ag_conn_set_state(conn, AG_CONNECTED);
	if (conn->peer)
		ag_cm_send(conn, W_CM_CONFIRM, 0);
}

/*
 * Ends a connection that was not confirmed in time: tells its process and the other agent, counts that against the
 * process (ag_conn_trusts()), and frees the end.
 */
static void expire(struct ag_conn *conn, int64_t now)
{
	struct ag_holder *process = conn->client->holders.process;

	u_log_ratelimited(&conn->client->agent->ratelimit[AG_RATELIMIT_CLIENT],
			  "client %u pid %d does not confirm a connection to host %u, which ends",
			  conn->client->id, (int)conn->client->pid, conn->peer_host);
	process->unconfirmed++;
	process->trusted_at = now + AG_UNTRUSTED_NS;
	ag_end_tell_lost(conn, W_LOST_CLOSED);
	if (!conn->peer) {
		ag_connect_leave(conn, W_LOST_PROCESS);
		return;
	}
	ag_cm_send(conn, W_CM_CANCEL, W_TIMED_OUT);
	ag_end_free(conn);
}

/*
 * Has the process sent anything that was not read?  If this agent was stopped for a while, that may
 * be the confirmation.
 */
static bool has_input(const struct ag_client *c)
{
	char byte;

	return recv(c->sock, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

/* Gives the process another AG_CONFIRM_NS to confirm the connection, once. */
static void postpone(struct ag_conn *conn, int64_t now)
{
	conn->postponed = true;
	conn->confirm_until = now + AG_CONFIRM_NS;
	ag_list_remove(&conn->in_linked);
	ag_list_append(&conn->link->agent->linked, &conn->in_linked);
}

int64_t ag_connect_timers(struct ag_agent *a, int64_t now)
{
	struct ag_conn *conn;

	while (!ag_list_empty(&a->linked)) {
		conn = ag_list_entry(a->linked.next, struct ag_conn, in_linked);
		if (now < conn->confirm_until)
			return conn->confirm_until;
		if (!conn->postponed && has_input(conn->client))
			postpone(conn, now);
		else
			expire(conn, now);
	}
	return U_NEVER;
}

void ag_connect_leave(struct ag_conn *conn, enum w_lost reason)
{
	bool on_path, unheard = false;

	switch (conn->state) {
	case AG_REQUESTED:
		ag_cm_send(conn, conn->peer ? W_CM_PEER_CANCEL : W_CM_CANCEL, W_TIMED_OUT);
		ag_end_free(conn);
		return;
	case AG_HELD:
	case AG_WAITING:
		ag_end_free(conn);
		return;
	case AG_ARRIVED:
		ag_cm_send(conn, W_CM_REFUSE, W_NO_MATCH);
		ag_end_free(conn);
		return;
	case AG_LOST:
		ag_cm_send(conn, W_CM_CLOSE, reason);
		ag_end_free(conn);
		return;
	case AG_ACCEPTING:
	case AG_LINKED:
	case AG_CONNECTED:
		on_path = ag_conn_on_path(conn);
		conn->left = reason;
		if (on_path && !ag_suspend_withdraw(conn, reason))
			ag_cm_send(conn, W_CM_CLOSE, reason);
		/* True where no CLOSE of the other end will come, or it has already come. */
		unheard = !on_path || conn->path_closed || conn->resume == AG_RESUMING;
		if (!unheard)
			ag_suspend_forget(conn);
		break;
	case AG_CLOSED:
		break;
	}
	ag_end_detach(conn);
	ag_conn_set_state(conn, AG_CLOSED);
	if (unheard && !ag_resume_final_message(conn))
		ag_end_free(conn);
}

/*
 * Ends a connection that the process has closed, as ag_connect_leave() does, without an answer; the process uses the
 * slice no more.  A peer-to-peer connection that the process was told of and has not confirmed, nor cancelled, is
 * cancelled at the other end with W_NO_RESOURCE.  An unknown id is ignored.
 */
void ag_connect_close(struct ag_client *c, const struct w_conn *m)
{
	struct ag_conn *conn = ag_conn_of_client(c, m->conn);

	if (conn == NULL)
		return;
	conn->held = false;
	if (conn->state == AG_LINKED && conn->peer && !conn->withdrawn) {
		/*
		 * The process could not map the slices; a peer that waits again would not learn
		 * that.
		 */
		ag_cm_send(conn, W_CM_CANCEL, W_NO_RESOURCE);
		ag_end_free(conn);
		return;
	}
	ag_connect_leave(conn, W_LOST_CLOSED);
}

/*
 * Tells the process, which the end has, that its attempt is refused with `why` or its connection lost.  In the other
 * states there is nothing to tell.  The end stays.
 */
static void end_lost(struct ag_conn *conn, const char *why)
{
	switch (conn->state) {
	case AG_HELD:
	case AG_REQUESTED:
	case AG_WAITING:
	case AG_ACCEPTING:
		ag_client_refuse(conn->client, W_REFUSED, conn->token, W_NOT_REACHABLE, why);
		break;
	case AG_LINKED:
	case AG_CONNECTED:
		ag_end_tell_lost(conn, W_LOST_LINK);
		break;
	case AG_ARRIVED:
	case AG_LOST:
	case AG_CLOSED:
		break;
	}
}

void ag_connect_link_down(struct ag_link *l, const char *why)
{
	struct ag_list *pos, *tmp;
	struct ag_conn *conn;
	struct ag_offer *offer;

	ag_list_each(pos, tmp, &l->conns)
	{
		conn = ag_list_entry(pos, struct ag_conn, in_link);
		/* Self is down only when the agent ends, and then no final message can be sent. */
		if (ag_attempt_move(conn) || ag_resume_link_down(conn) ||
		    (conn->state == AG_CLOSED && l->index != 0 && ag_resume_final_message(conn)))
			continue;
		if (conn->client != NULL)
			end_lost(conn, why);
		ag_end_free(conn);
	}
	ag_list_each(pos, tmp, &l->agent->offers)
	{
		offer = ag_list_entry(pos, struct ag_offer, node);
		if (offer->link == l)
			ag_offer_free(offer);
	}
}
