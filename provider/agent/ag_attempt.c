/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process's attempt to connect: its path, its end of the connection, and asking the other agent.
 */
#include "ag_attempt.h"

#include <stdio.h>
#include <string.h>

#include "ag_addr.h"
#include "ag_client.h"
#include "ag_cm.h"
#include "ag_conn.h"
#include "ag_ctl.h"
#include "ag_link.h"
#include "ag_list.h"
#include "ag_route.h"
#include "ag_state.h"
#include "rt_topo.h"
#include "w_ctl.h"

/* Checks that a process connects from an address of this host; false: it did not, and was sent W_REFUSED. */
bool ag_attempt_is_own(struct ag_client *c, const struct w_connect *m)
{
	if (ag_addr_host(c->agent, m->local.host, m->local.host_len) == (int)c->agent->cfg.host_id)
		return true;
	ag_client_refuse(c, W_REFUSED, m->token, W_BAD_REQUEST,
			 "the local address names another host");
	return false;
}

/* Returns a number that differs between connections, so that they spread over paths of equal length. */
static uint32_t flow_of(const struct ag_client *c, uint64_t token)
{
	uint64_t h = (uint64_t)c->agent->cfg.host_id << 48 ^ (uint64_t)c->id << 24 ^ token;

	return (uint32_t)(h * UINT64_C(0x9e3779b97f4a7c15) >> 32);
}

struct ag_link *ag_attempt_link(struct ag_client *c, const struct w_connect *m,
				struct rt_path *path, uint16_t *host_out)
{
	struct ag_agent *a = c->agent;
	int host = ag_addr_host(a, m->remote.host, m->remote.host_len);
	char text[160];

	if (!ag_attempt_is_own(c, m))
		return NULL;
	if (!ag_conn_trusts(c)) {
		ag_client_refuse(c, W_REFUSED, m->token, W_NO_RESOURCE,
				 "this process did not confirm the connections before");
		return NULL;
	}
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

struct ag_conn *ag_attempt_new(struct ag_client *c, struct ag_link *l, const struct w_connect *m,
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

/*
 * Sends the request, REQ or PEER, to the other agent, with the largest geometry, for which it reserves room; the end,
 * the first one of its connection, is AG_REQUESTED then.
 */
static void request_send(struct ag_conn *conn)
{
	ag_conn_set_state(conn, AG_REQUESTED);
	conn->first = true;
	ag_conn_set_geometry(conn, NULL);
	ag_cm_send(conn, conn->peer ? W_CM_PEER : W_CM_REQ, 0);
}

void ag_attempt_request(struct ag_conn *conn)
{
	struct ag_link *l = conn->link;

	if (ag_list_empty(&l->held) && !ag_ctl_busy(l))
		request_send(conn);
	else
		ag_list_append(&l->held, &conn->in_held);
}

bool ag_attempt_unhold(struct ag_link *l)
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

/* Only an end that is AG_HELD or AG_WAITING can move; for any other it returns false. */
bool ag_attempt_move(struct ag_conn *conn)
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
		ag_attempt_request(conn);
	return true;
}
