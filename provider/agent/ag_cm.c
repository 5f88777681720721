/* SPDX-License-Identifier: BSD-2-Clause */
/* What processes ask about connections; the state machine of w_ctl.h seen from below. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ag_priv.h"
#include "u_log.h"

void ag_cm_send(struct ag_conn *conn, enum w_ctl_type type, uint32_t status)
{
	struct ag_link *l = conn->link;
	struct w_cm cm = {
		.src_host = (uint16_t)l->agent->cfg.host_id,
		.dst_host = conn->peer_host,
		.status = status,
		.src_conn = conn->id,
		.dst_conn = conn->peer_conn,
		.attrs = conn->attrs,
		.geometry = conn->geometry,
		.local = conn->local,
		.remote = conn->remote,
		.epoch = conn->epoch,
		.consumed = conn->consumed,
	};

	ag_path_set(&cm.path, &conn->path);
	w_ctl_init(&cm, type, sizeof(cm));
	ag_ctl_send(l, &cm);
}

enum w_status ag_cm_status(int err)
{
	switch (-err) {
	case 0:
		return W_SUCCESS;
	case ENOTCONN: /* the cable is out */
	case ENOENT:   /* what the neighbour had named went with it */
	case ERANGE:
	case EPROTO:
		return W_NOT_REACHABLE;
	default:
		return W_NO_RESOURCE;
	}
}

void ag_cm_answer(struct ag_link *l, const struct w_cm *req, enum w_ctl_type type,
		  enum w_status status)
{
	struct w_cm cm = {
		.src_host = req->dst_host,
		.dst_host = req->src_host,
		.status = status,
		.src_conn = req->dst_conn,
		.dst_conn = req->src_conn,
		.epoch = req->epoch,
	};
	struct rt_path back;

	if (ag_path_back(l->agent, req->src_host, &req->path, &back) != 0)
		return;
	ag_path_set(&cm.path, &back);
	if (back.hops > 0)
		cm.path.at = (uint8_t)(req->path.hops - req->path.at + 1);
	w_ctl_init(&cm, type, sizeof(cm));
	ag_ctl_send(l, &cm);
}

void ag_cm_refuse(struct ag_link *l, const struct w_cm *req, enum w_status status)
{
	ag_cm_answer(l, req, W_CM_REFUSE, status);
}

enum w_status ag_attrs_compare(const struct w_vi_attrs *a, const struct w_vi_attrs *b)
{
	if (a->reliability != b->reliability)
		return W_BAD_RELIABILITY;
	if (a->max_transfer != b->max_transfer)
		return W_BAD_MTU;
	if (a->qos != b->qos)
		return W_BAD_QOS;
	return W_SUCCESS;
}

/* A process speaks for its own host; otherwise the request is refused. */
static bool local_is_own(struct ag_client *c, const struct w_connect *m)
{
	if (ag_host_of(c->agent, m->local.host, m->local.host_len) == (int)c->agent->cfg.host_id)
		return true;
	ag_client_refuse(c, W_REFUSED, m->token, W_BAD_REQUEST,
			 "the local address names another host");
	return false;
}

void ag_cm_listen(struct ag_client *c, const struct w_connect *m)
{
	if (local_is_own(c, m) && ag_listen_new(c, m->token, &m->local) == NULL)
		ag_client_refuse(c, W_REFUSED, m->token, W_NO_RESOURCE,
				 "too many waiters of one process");
}

/* Not found: the waiter was used up and ARRIVED is on its way; answered all the same. */
void ag_cm_unlisten(struct ag_client *c, const struct w_token *m)
{
	struct ag_listen *l = ag_listen_by_token(c, m->token);
	struct w_token answer = { .token = m->token };

	if (l != NULL)
		ag_listen_free(l);
	w_ctl_init(&answer, W_UNLISTENED, sizeof(answer));
	ag_client_send(c, &answer, NULL, 0);
}

/* Any number that differs between the connections of a fabric: equal paths are shared by it. */
static uint32_t flow_of(const struct ag_client *c, uint64_t token)
{
	uint64_t h = (uint64_t)c->agent->cfg.host_id << 48 ^ (uint64_t)c->id << 24 ^ token;

	return (uint32_t)(h * UINT64_C(0x9e3779b97f4a7c15) >> 32);
}

/*
 * The path to the host of `remote` for an attempt of this host's; otherwise refuses it and returns
 * NULL.
 */
static struct ag_link *link_to(struct ag_client *c, const struct w_connect *m, struct rt_path *path,
			       uint16_t *host_out)
{
	struct ag_agent *a = c->agent;
	int host = ag_host_of(a, m->remote.host, m->remote.host_len);
	char text[160];

	if (!local_is_own(c, m))
		return NULL;
	if (host < 0) {
		ag_client_refuse(c, W_REFUSED, m->token, W_NOT_REACHABLE,
				 "the address names no host of this fabric");
		return NULL;
	}
	if (ag_route_find(a, (unsigned int)host, flow_of(c, m->token), path, text, sizeof(text)) !=
	    0) {
		ag_client_refuse(c, W_REFUSED, m->token, W_NOT_REACHABLE, text);
		return NULL;
	}
	*host_out = (uint16_t)host;
	return ag_route_link(a, path);
}

static struct ag_conn *attempt(struct ag_client *c, struct ag_link *l, const struct w_connect *m,
			       const struct rt_path *path, uint16_t host, enum ag_state state)
{
	struct ag_conn *conn = ag_conn_new(c, l, state);

	if (conn == NULL) {
		ag_client_refuse(c, W_REFUSED, m->token, W_NO_RESOURCE,
				 "too many connections of one process");
		return NULL;
	}
	conn->peer_host = host;
	conn->path = *path;
	conn->token = m->token;
	conn->attrs = m->attrs;
	conn->local = m->local;
	conn->remote = m->remote;
	return conn;
}

static void request_send(struct ag_conn *conn)
{
	ag_conn_set_state(conn, AG_REQUESTED);
	conn->first = true;
	ag_conn_set_geometry(conn, NULL);
	ag_cm_send(conn, conn->peer ? W_CM_PEER : W_CM_REQ, 0);
}

/* Asks the other agent, when the requests before this one were sent and there is room. */
static void request(struct ag_conn *conn)
{
	struct ag_link *l = conn->link;

	if (ag_list_empty(&l->held) && !ag_ctl_busy(l))
		request_send(conn);
	else
		ag_list_append(&l->held, &conn->in_held);
}

bool ag_cm_unhold(struct ag_link *l)
{
	struct ag_conn *conn;
	bool sent = false;

	while (!ag_list_empty(&l->held) && !ag_ctl_busy(l) && l->broken == NULL) {
		conn = ag_list_entry(l->held.next, struct ag_conn, in_held);
		ag_list_remove(&conn->in_held);
		request_send(conn);
		sent = true;
	}
	return sent;
}

void ag_cm_connect(struct ag_client *c, const struct w_connect *m)
{
	struct rt_path path;
	uint16_t host;
	struct ag_link *l = link_to(c, m, &path, &host);
	struct ag_conn *conn;

	if (l == NULL)
		return;
	conn = attempt(c, l, m, &path, host, AG_HELD);
	if (conn != NULL)
		request(conn);
}

/* Is there a waiting peer whose two addresses are both `addr`? */
static bool twin_waits(struct ag_link *l, const struct w_addr *addr)
{
	struct ag_list *pos, *tmp;
	struct ag_conn *conn;

	ag_list_each(pos, tmp, &l->conns)
	{
		conn = ag_list_entry(pos, struct ag_conn, in_link);
		if (conn->state == AG_WAITING && ag_addr_equal(&conn->local, addr) &&
		    ag_addr_equal(&conn->remote, addr))
			return true;
	}
	return false;
}

static bool decides(struct ag_link *l, const struct w_connect *m)
{
	int order = ag_addr_compare(&m->local, &m->remote);

	return order < 0 || (order == 0 && !twin_waits(l, &m->local));
}

void ag_cm_peer(struct ag_client *c, const struct w_connect *m)
{
	struct rt_path path;
	uint16_t host;
	struct ag_link *l = link_to(c, m, &path, &host);
	struct ag_conn *conn;
	struct ag_offer *offer;

	if (l == NULL)
		return;
	conn = attempt(c, l, m, &path, host, decides(l, m) ? AG_WAITING : AG_HELD);
	if (conn == NULL)
		return;
	conn->peer = true;
	if (conn->state == AG_HELD) {
		request(conn);
		return;
	}
	offer = ag_offer_match(conn);
	if (offer != NULL)
		ag_peer_join(conn, offer);
}

/* Of an attempt that was answered meanwhile: the answer is on its way, nothing to do. */
void ag_cm_cancel(struct ag_client *c, const struct w_token *m)
{
	struct ag_conn *conn = ag_conn_by_token(c, m->token);

	if (conn == NULL)
		return;
	if (conn->state == AG_LINKED) {
		conn->withdrawn = true;
		return;
	}
	ag_cm_leave(conn, W_LOST_CLOSED);
	ag_client_refuse(c, W_REFUSED, m->token, W_TIMED_OUT, NULL);
}

void ag_cm_accept(struct ag_client *c, const struct w_accept *m)
{
	struct ag_conn *conn = ag_conn_of_client(c, m->conn);
	enum w_status status;

	if (conn == NULL || conn->state != AG_ARRIVED) {
		ag_client_refuse(c, W_REFUSED, m->token, conn == NULL ? W_TIMED_OUT : W_BAD_STATE,
				 NULL);
		return;
	}
	status = ag_attrs_compare(&m->attrs, &conn->peer_attrs);
	if (status == W_SUCCESS)
		status = ag_cm_status(ag_conn_slice_alloc(conn));
	if (status != W_SUCCESS) {
		ag_client_refuse(c, W_REFUSED, m->token, status, NULL);
		if (status == W_NOT_REACHABLE) {
			ag_cm_send(conn, W_CM_REFUSE, status);
			ag_conn_free(conn);
		}
		return;
	}
	conn->token = m->token;
	conn->attrs = m->attrs;
	ag_conn_set_state(conn, AG_ACCEPTING);
	ag_cm_send(conn, W_CM_ACCEPT, 0);
}

void ag_cm_reject(struct ag_client *c, const struct w_conn *m)
{
	struct ag_conn *conn = ag_conn_of_client(c, m->conn);

	if (conn == NULL || conn->state != AG_ARRIVED)
		return;
	ag_cm_send(conn, W_CM_REFUSE, W_REJECTED);
	ag_conn_free(conn);
}

void ag_cm_confirm(struct ag_client *c, const struct w_conn *m)
{
	struct ag_conn *conn = ag_conn_of_client(c, m->conn);

	if (conn == NULL || ag_resume_confirm(conn) || conn->state != AG_LINKED)
		return;
	ag_conn_set_state(conn, AG_CONNECTED);
	ag_cm_send(conn, W_CM_CONFIRM, 0);
}

void ag_cm_close(struct ag_client *c, const struct w_conn *m)
{
	struct ag_conn *conn = ag_conn_of_client(c, m->conn);

	if (conn == NULL)
		return;
	if (conn->state == AG_LINKED && conn->peer && !conn->withdrawn) {
		/* It could not map what it was handed; a peer that went on waiting would not know. */
		ag_cm_send(conn, W_CM_CANCEL, W_NO_RESOURCE);
		ag_conn_free(conn);
		return;
	}
	ag_cm_leave(conn, W_LOST_CLOSED);
}

void ag_cm_leave(struct ag_conn *conn, enum w_lost reason)
{
	bool on_path, unheard = false;

	switch (conn->state) {
	case AG_REQUESTED:
		ag_cm_send(conn, conn->peer ? W_CM_PEER_CANCEL : W_CM_CANCEL, W_TIMED_OUT);
		ag_conn_free(conn);
		return;
	case AG_HELD:
	case AG_WAITING:
		ag_conn_free(conn);
		return;
	case AG_ARRIVED:
		ag_cm_send(conn, W_CM_REFUSE, W_NO_MATCH);
		ag_conn_free(conn);
		return;
	case AG_LOST:
		ag_cm_send(conn, W_CM_CLOSE, reason);
		ag_conn_free(conn);
		return;
	case AG_ACCEPTING:
	case AG_LINKED:
	case AG_CONNECTED:
		on_path = ag_conn_on_path(conn);
		conn->left = reason;
		if (on_path && !ag_resume_withdraw(conn, reason))
			ag_cm_send(conn, W_CM_CLOSE, reason);
		/* No CLOSE comes, or none is waited for. */
		unheard = !on_path || conn->path_closed || conn->resume == AG_RESUMING;
		if (!unheard)
			ag_resume_forget(conn);
		break;
	case AG_CLOSED:
		break;
	}
	ag_conn_detach(conn);
	ag_conn_set_state(conn, AG_CLOSED);
	if (unheard && !ag_resume_last_word(conn))
		ag_conn_free(conn);
}

void ag_cm_tell_lost(struct ag_conn *conn, enum w_lost reason)
{
	struct w_lost_msg m = { .conn = conn->id, .reason = reason };

	w_ctl_init(&m, W_LOST, sizeof(m));
	if (conn->client != NULL)
		ag_client_send(conn->client, &m, NULL, 0);
}

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
		ag_cm_tell_lost(conn, W_LOST_LINK);
		break;
	case AG_ARRIVED:
	case AG_LOST:
	case AG_CLOSED:
		break;
	}
}

/* Who has not asked the other agent yet, or waits for it to ask, may do so over another link. */
static bool goes_elsewhere(struct ag_conn *conn)
{
	struct ag_agent *a = conn->link->agent;
	bool held = conn->state == AG_HELD;
	struct rt_path path;
	char why[160];

	if ((!held && conn->state != AG_WAITING) ||
	    ag_route_find(a, conn->peer_host, flow_of(conn->client, conn->token), &path, why,
			  sizeof(why)) != 0)
		return false;
	ag_conn_move(conn, ag_route_link(a, &path), &path);
	if (held)
		request(conn);
	return true;
}

/* Both ends of every connection over the link are gone; so are offers that came over it. */
void ag_cm_link_down(struct ag_link *l, const char *why)
{
	struct ag_list *pos, *tmp;
	struct ag_conn *conn;
	struct ag_offer *offer;

	ag_list_each(pos, tmp, &l->conns)
	{
		conn = ag_list_entry(pos, struct ag_conn, in_link);
		/* Self goes down when the agent leaves: then nobody has a word any more. */
		if (goes_elsewhere(conn) || ag_resume_link_down(conn) ||
		    (conn->state == AG_CLOSED && l->index != 0 && ag_resume_last_word(conn)))
			continue;
		if (conn->client != NULL)
			end_lost(conn, why);
		ag_conn_free(conn);
	}
	ag_list_each(pos, tmp, &l->agent->offers)
	{
		offer = ag_list_entry(pos, struct ag_offer, node);
		if (offer->link == l)
			ag_offer_free(offer);
	}
}
