/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records about connections: sending and answering them, and handing the slices that they name to a
 * process.
 */
#include "ag_cm.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "ag_addr.h"
#include "ag_client.h"
#include "ag_conn.h"
#include "ag_ctl.h"
#include "ag_link.h"
#include "ag_ratelimit.h"
#include "ag_route.h"
#include "ag_state.h"
#include "port.h"
#include "rt_topo.h"
#include "u_fd.h"
#include "u_log.h"
#include "w_ctl.h"

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

	ag_route_set_path(&cm.path, &conn->path);
	w_ctl_init(&cm, type, sizeof(cm));
	ag_ctl_send(l, &cm);
}

enum w_status ag_cm_status(int err)
{
	switch (-err) {
	case 0:
		return W_SUCCESS;
	case ENOTCONN: /* the cable is unplugged */
	case ENOENT:   /* the slice that the neighbour named is gone, with the link */
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

	if (ag_route_back(l->agent, req->src_host, &req->path, &back) != 0)
		return;
	ag_route_set_path(&cm.path, &back);
	if (back.hops > 0)
		cm.path.at = (uint8_t)(req->path.hops - req->path.at + 1);
	w_ctl_init(&cm, type, sizeof(cm));
	ag_ctl_send(l, &cm);
}

void ag_cm_refuse(struct ag_link *l, const struct w_cm *req, enum w_status status)
{
	ag_cm_answer(l, req, W_CM_REFUSE, status);
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
	conn->held = true;
	w_ctl_init(&m, type, sizeof(m));
	ag_client_send(conn->client, &m, fds, 2);
	return 0;
}

struct ag_conn *ag_cm_end_of(struct ag_link *l, const struct w_cm *cm)
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

/* Does a request come from the host that it names, and is it for this one? */
bool ag_cm_addresses_ok(struct ag_agent *a, const struct w_cm *cm)
{
	return ag_addr_host(a, cm->local.host, cm->local.host_len) == (int)cm->src_host &&
	       ag_addr_host(a, cm->remote.host, cm->remote.host_len) == (int)a->cfg.host_id;
}
