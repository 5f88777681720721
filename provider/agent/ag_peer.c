/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records of other agents (and of this one, for connections within the host).
 * Each was checked by w_ctl_check(); what it names may not exist or not fit, and
 * then it is ignored: ends vanish on both sides at any time.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "ag_priv.h"
#include "u_fd.h"
#include "u_log.h"
#include "u_time.h"

/* The end that a record is about: ours by its name, if it is the sender's other end. */
static struct ag_conn *end_of(struct ag_link *l, const struct w_cm *cm)
{
	struct ag_conn *conn;

	if (cm->dst_conn == 0)
		conn = ag_conn_by_peer(l->agent, cm->src_host, cm->src_conn);
	else
		conn = ag_conn_get(l->agent, cm->dst_conn);
	if (conn == NULL || conn->link != l || conn->peer_host != cm->src_host ||
	    conn->epoch != cm->epoch)
		return NULL;
	if (conn->peer_conn != 0 && cm->src_conn != 0 && conn->peer_conn != cm->src_conn)
		return NULL;
	return conn;
}

/* Does a request come from where it says it comes from, and is it for this host? */
static bool addresses_ok(struct ag_agent *a, const struct w_cm *cm)
{
	return ag_host_of(a, cm->local.host, cm->local.host_len) == (int)cm->src_host &&
	       ag_host_of(a, cm->remote.host, cm->remote.host_len) == (int)a->cfg.host_id;
}

static void on_req(struct ag_link *l, const struct w_cm *cm)
{
	struct w_arrived m = { .attrs = cm->attrs, .remote = cm->local };
	struct ag_listen *waiter = ag_listen_match(l->agent, &cm->remote);
	struct ag_conn *conn;
	struct rt_path back;

	if (cm->src_conn == 0 || ag_conn_by_peer(l->agent, cm->src_host, cm->src_conn) != NULL ||
	    ag_path_back(l->agent, cm->src_host, &cm->path, &back) != 0)
		return;
	if (!addresses_ok(l->agent, cm)) {
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

static void on_refuse(struct ag_link *l, const struct w_cm *cm)
{
	struct ag_conn *conn = end_of(l, cm);

	if (conn == NULL || ag_resume_refused(conn, cm) || conn->state != AG_REQUESTED)
		return;
	ag_client_refuse(conn->client, W_REFUSED, conn->token,
			 cm->status == W_SUCCESS ? W_REJECTED : (enum w_status)cm->status, NULL);
	ag_conn_free(conn);
}

int ag_cm_outbound(struct ag_link *l, const struct w_geometry *g, bool last_chance, int *fd_out)
{
	char text[U_FD_ERROR];
	int rc = port_peer_slice_open(l->port, g->slice_id, g->slice_len, fd_out);

	if (rc == -ENOENT && !last_chance)
		return -EAGAIN;
	if (rc != 0)
		u_log_ratelimited(&l->ratelimit[AG_RATELIMIT_RECORD],
				  "port %s: the neighbour's slice %u cannot be opened: %s",
				  l->port->limits.name, g->slice_id, u_fd_error(-rc, text));
	return rc;
}

int ag_cm_linked(struct ag_conn *conn, enum w_ctl_type type, const struct w_cm *cm, int out_fd)
{
	struct ag_link *l = conn->link;
	struct w_linked m = {
		.token = conn->token,
		.conn = conn->id,
		.attrs = cm->attrs,
		.inbound = conn->geometry,
		.outbound = cm->geometry,
		.port = l->index,
		.hops = conn->path.hops,
		.resumable = conn->resumable,
		.consumed = cm->consumed,
	};
	int fds[2] = { conn->slice.fd, out_fd };

	if (ag_client_port(conn->client, l) != 0) {
		close(out_fd);
		return -EMFILE;
	}
	conn->slice.fd = -1;
	w_ctl_init(&m, type, sizeof(m));
	ag_client_send(conn->client, &m, fds, 2);
	return 0;
}

static int on_accept(struct ag_link *l, const struct w_cm *cm, bool last_chance)
{
	struct ag_conn *conn = end_of(l, cm);
	int out_fd, rc;

	if (conn != NULL && conn->resume != AG_ON_PATH)
		return ag_resume_accept(conn, cm, last_chance);
	if (conn == NULL || conn->state != AG_REQUESTED || cm->src_conn == 0)
		return 0;
	conn->resumable = ag_resume_can(conn);
	rc = ag_cm_outbound(l, &cm->geometry, last_chance, &out_fd);
	if (rc == -EAGAIN)
		return rc;
	/* Relays forward between slices that are alike, and a neighbour may become one who is farther. */
	ag_geometry_limit(&conn->geometry, &cm->geometry);
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
		return 0;
	}
	ag_cm_send(conn, W_CM_CANCEL, ag_cm_status(rc));
	ag_client_refuse(conn->client, W_REFUSED, conn->token, ag_cm_status(rc), NULL);
	ag_conn_free(conn);
	return 0;
}

static int on_confirm(struct ag_link *l, const struct w_cm *cm, bool last_chance)
{
	struct ag_conn *conn = end_of(l, cm);
	int out_fd, rc;

	if (conn != NULL && conn->resume != AG_ON_PATH)
		return ag_resume_confirmed(conn, cm, last_chance);
	if (conn == NULL || conn->state != AG_ACCEPTING)
		return 0;
	conn->resumable = ag_resume_can(conn);
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
	ag_cm_leave(conn, W_LOST_CLOSED);
	return 0;
}

static enum w_status cancel_status(uint32_t status)
{
	return status == W_NO_RESOURCE || status == W_NOT_REACHABLE ? (enum w_status)status
								    : W_TIMED_OUT;
}

/* The client gave up before it was linked, or has no room, or its link is gone. */
static void on_cancel(struct ag_link *l, const struct w_cm *cm)
{
	struct ag_conn *conn = end_of(l, cm);

	if (conn == NULL || conn->peer_conn == 0 || ag_resume_refused(conn, cm))
		return;
	switch (conn->state) {
	case AG_ACCEPTING:
		ag_client_refuse(conn->client, W_REFUSED, conn->token, cancel_status(cm->status),
				 cm->status == W_NO_RESOURCE ? "the other end has no room left"
							     : NULL);
		ag_conn_free(conn);
		break;
	case AG_ARRIVED:
	case AG_CLOSED:
		ag_conn_free(conn);
		break;
	default:
		break;
	}
}

/* The client closed what it was just linked to, before it confirmed. */
static void accept_undone(struct ag_conn *conn)
{
	ag_cm_send(conn, W_CM_CLOSE, W_LOST_CLOSED);
	if (conn->peer) {
		ag_peer_rewait(conn);
		return;
	}
	ag_client_refuse(conn->client, W_REFUSED, conn->token, W_TIMED_OUT, NULL);
	ag_conn_free(conn);
}

static void on_close(struct ag_link *l, const struct w_cm *cm)
{
	struct ag_conn *conn = end_of(l, cm);

	ag_resume_left(l, cm);
	if (conn == NULL || conn->peer_conn == 0 || ag_resume_closed(conn, cm))
		return;
	switch (conn->state) {
	case AG_ACCEPTING:
		accept_undone(conn);
		break;
	case AG_LINKED:
	case AG_CONNECTED:
		ag_conn_set_state(conn, AG_LOST);
		ag_resume_forget(conn);
		ag_mem_conn_end(conn);
		ag_cm_tell_lost(conn, (enum w_lost)cm->status);
		break;
	case AG_CLOSED:
		if (cm->status != W_LOST_LINK || !ag_resume_last_word(conn))
			ag_conn_free(conn);
		break;
	default:
		break;
	}
}

/* ---- peer to peer ---- */

void ag_peer_join(struct ag_conn *conn, struct ag_offer *offer)
{
	enum w_status status = ag_attrs_compare(&conn->attrs, &offer->attrs);

	conn->peer_attrs = offer->attrs;
	ag_conn_move(conn, offer->link, &offer->path);
	ag_conn_set_geometry(conn, &offer->geometry);
	ag_conn_set_peer(conn, offer->src_conn);
	ag_offer_free(offer);
	if (status == W_SUCCESS)
		status = ag_cm_status(ag_conn_slice_alloc(conn));
	if (status != W_SUCCESS) {
		ag_cm_send(conn, W_CM_REFUSE, status);
		ag_client_refuse(conn->client, W_REFUSED, conn->token, status, NULL);
		ag_conn_free(conn);
		return;
	}
	ag_conn_set_state(conn, AG_ACCEPTING);
	ag_cm_send(conn, W_CM_ACCEPT, 0);
}

void ag_peer_rewait(struct ag_conn *conn)
{
	struct ag_offer *offer;

	ag_conn_slice_free(conn);
	ag_conn_set_peer(conn, 0);
	ag_conn_set_state(conn, AG_WAITING);
	offer = ag_offer_match(conn);
	if (offer != NULL)
		ag_peer_join(conn, offer);
}

static struct ag_conn *waiting_on(struct ag_link *l, const struct ag_offer *offer)
{
	struct ag_list *pos, *tmp;
	struct ag_conn *conn;

	ag_list_each(pos, tmp, &l->conns)
	{
		conn = ag_list_entry(pos, struct ag_conn, in_link);
		if (conn->state == AG_WAITING && ag_addr_equal(&conn->local, &offer->remote) &&
		    ag_addr_equal(&conn->remote, &offer->local))
			return conn;
	}
	return NULL;
}

/* The peer that the offer is for; it may expect it over another link than it came over. */
static struct ag_conn *waiting_for(struct ag_agent *a, const struct ag_offer *offer)
{
	struct ag_conn *conn = NULL;
	uint32_t i;

	for (i = 0; i < a->link_count && conn == NULL; i++)
		conn = waiting_on(&a->links[i], offer);
	return conn;
}

static void on_peer(struct ag_link *l, const struct w_cm *cm)
{
	struct ag_agent *a = l->agent;
	struct ag_offer *offer;
	struct ag_conn *conn;

	if (cm->src_conn == 0 || ag_conn_by_peer(a, cm->src_host, cm->src_conn) != NULL ||
	    ag_offer_by_conn(a, cm->src_host, cm->src_conn) != NULL)
		return;
	if (!addresses_ok(a, cm)) {
		ag_cm_refuse(l, cm, W_BAD_REQUEST);
		return;
	}
	offer = ag_offer_new(l, cm);
	if (offer == NULL) {
		ag_cm_refuse(l, cm, W_NO_RESOURCE);
		return;
	}
	conn = waiting_for(a, offer);
	if (conn != NULL)
		ag_peer_join(conn, offer);
}

static void on_peer_cancel(struct ag_link *l, const struct w_cm *cm)
{
	struct ag_offer *offer = ag_offer_by_conn(l->agent, cm->src_host, cm->src_conn);
	struct ag_conn *conn;

	if (offer != NULL) {
		/* It is withdrawn by the path that it came. */
		if (offer->link == l)
			ag_offer_free(offer);
		return;
	}
	conn = ag_conn_by_peer(l->agent, cm->src_host, cm->src_conn);
	if (conn == NULL || conn->link != l || conn->epoch != cm->epoch)
		return;
	if (conn->state == AG_ACCEPTING && conn->peer)
		ag_peer_rewait(conn);
	else if (conn->state == AG_CLOSED)
		ag_conn_free(conn);
}

static void on_heartbeat(struct ag_link *l, const struct w_cm *cm)
{
	struct w_cm answer = *cm;

	if (cm->status != 1)
		return;
	answer.status = 0;
	answer.src_host = cm->dst_host;
	answer.dst_host = cm->src_host;
	answer.path.port[0] = (uint8_t)l->index;
	ag_ctl_send(l, &answer);
}

/*
 * Is it for a host, and by a path, that it can come from here?  A record of neighbours goes one
 * hop.
 */
static bool is_sane(struct ag_link *l, const struct w_cm *cm, const struct w_path *path)
{
	bool neighbours = cm->hdr.type == W_CM_HEARTBEAT;

	if (path == NULL)
		return cm->src_host == l->peer_host && cm->dst_host == l->agent->cfg.host_id;
	return ag_path_ok(l, cm->src_host, cm->dst_host, path) && (!neighbours || path->hops == 1);
}

/* All records begin alike; NULL: it is one of neighbours, and has none. */
static const struct w_path *path_of(const void *msg)
{
	const struct w_cm *cm = msg;

	if (cm->hdr.type == W_CM_LINKS)
		return NULL;
	return cm->hdr.type == W_CM_TELL ? &((const struct w_cm_tell *)msg)->path : &cm->path;
}

int ag_peer_record(struct ag_link *l, const void *msg, bool last_chance)
{
	const struct w_cm *cm = msg;
	const struct w_path *path = path_of(msg);

	if (!is_sane(l, cm, path)) {
		u_log_ratelimited(
			&l->ratelimit[AG_RATELIMIT_RECORD],
			"port %s: record %u from host %u to host %u ignored: it lost its path",
			l->port->limits.name, cm->hdr.type, cm->src_host, cm->dst_host);
		l->agent->relay_dropped++;
		return 0;
	}
	if (path != NULL && path->at < path->hops)
		return ag_relay_record(l, msg, last_chance);
	switch (cm->hdr.type) {
	case W_CM_REQ:
		on_req(l, cm);
		break;
	case W_CM_REFUSE:
		on_refuse(l, cm);
		break;
	case W_CM_ACCEPT:
		return on_accept(l, cm, last_chance);
	case W_CM_CONFIRM:
		return on_confirm(l, cm, last_chance);
	case W_CM_CANCEL:
		on_cancel(l, cm);
		break;
	case W_CM_CLOSE:
		on_close(l, cm);
		break;
	case W_CM_PEER:
		on_peer(l, cm);
		break;
	case W_CM_PEER_CANCEL:
		on_peer_cancel(l, cm);
		break;
	case W_CM_TELL:
		ag_mem_told(l, msg);
		break;
	case W_CM_HEARTBEAT:
		on_heartbeat(l, cm);
		break;
	case W_CM_RESUME:
		ag_resume_request(l, cm);
		break;
	case W_CM_QUERY:
		ag_resume_query(l, cm);
		break;
	case W_CM_UNKNOWN:
		ag_resume_unknown(l, cm);
		break;
	case W_CM_LINKS:
		if (ag_route_links(l, msg))
			ag_resume_retry(l->agent);
		break;
	default:
		u_log_ratelimited(&l->ratelimit[AG_RATELIMIT_RECORD],
				  "port %s: a record of type %u is not between agents",
				  l->port->limits.name, cm->hdr.type);
	}
	return 0;
}
