/* SPDX-License-Identifier: BSD-2-Clause */
/* Window memory of processes, and the messages by which they tell each other about it. */
#include "ag_mem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ag_client.h"
#include "ag_conn.h"
#include "ag_ctl.h"
#include "ag_link.h"
#include "ag_list.h"
#include "ag_ratelimit.h"
#include "ag_route.h"
#include "ag_state.h"
#include "port.h"
#include "u_fd.h"
#include "u_log.h"
#include "w_ctl.h"

#define SHARES_MAX 4096u	 /* of an allocation */
#define CLIENT_SHARES_MAX 65536u /* of all allocations of a client */

/* Window memory that was named to a neighbour over a connection. */
struct ag_share {
	struct ag_list node; /* of alloc->shares */
	struct ag_list in_conn;
	struct ag_alloc *alloc;
	struct ag_client *client;
	struct ag_link *link;
	uint32_t id; /* by which the neighbour opens it, once */
};

static void alloc_answer(struct ag_client *c, uint64_t token, const struct port_slice *slice,
			 enum w_status status, int fd)
{
	struct w_alloc m = { .token = token, .status = status };

	if (slice != NULL) {
		m.slice_id = slice->id;
		m.length = slice->len;
	}
	w_ctl_init(&m, W_ALLOCATED, sizeof(m));
	ag_client_send(c, &m, &fd, fd >= 0 ? 1 : 0);
}

/* May the client have another piece?  Each keeps a descriptor in this process. */
static bool alloc_allowed(struct ag_client *c)
{
	struct ag_agent *a = c->agent;
	struct ag_client *other;
	struct ag_list *pos, *tmp;
	uint64_t sum = 0;

	ag_list_each(pos, tmp, &a->clients)
	{
		other = ag_list_entry(pos, struct ag_client, node);
		sum += other->uid == c->uid ? other->alloc_count : 0;
	}
	if (c->alloc_count < a->client_allocs && sum < a->user_allocs)
		return true;
	u_log_ratelimited(
		&a->ratelimit[AG_RATELIMIT_CLIENT],
		"client %u pid %d gets no more window memory: it has %u pieces, uid %u has %u; "
		"a process may have %u, a user %u",
		c->id, (int)c->pid, c->alloc_count, (unsigned int)c->uid, (unsigned int)sum,
		a->client_allocs, a->user_allocs);
	return false;
}

/* The caller takes slice.fd over, for the process: the port has a descriptor of its own. */
static struct ag_alloc *alloc_make(struct ag_client *c, uint64_t length)
{
	struct ag_link *self = &c->agent->links[0];
	struct ag_alloc *m;

	if (length == 0 || length > SIZE_MAX / 2 || !alloc_allowed(c) ||
	    ag_client_port(c, self) != 0)
		return NULL;
	m = calloc(1, sizeof(*m));
	if (m == NULL)
		return NULL;
	if (port_slice_alloc(self->port, u_align_up(length, self->port->limits.slice_align),
			     &m->slice) != 0) {
		free(m);
		return NULL;
	}
	ag_list_init(&m->shares);
	ag_list_append(&c->allocs, &m->node);
	c->alloc_count++;
	self->window_used += m->slice.len;
	return m;
}

void ag_mem_alloc(struct ag_client *c, const struct w_alloc *msg)
{
	struct ag_alloc *m = alloc_make(c, msg->length);
	int fd;

	if (m == NULL) {
		alloc_answer(c, msg->token, NULL, W_NO_RESOURCE, -1);
		return;
	}
	fd = m->slice.fd;
	m->slice.fd = -1;
	alloc_answer(c, msg->token, &m->slice, W_SUCCESS, fd);
}

static struct ag_alloc *alloc_find(struct ag_client *c, uint32_t id)
{
	struct ag_list *pos, *tmp;
	struct ag_alloc *m;

	ag_list_each(pos, tmp, &c->allocs)
	{
		m = ag_list_entry(pos, struct ag_alloc, node);
		if (m->slice.id == id)
			return m;
	}
	return NULL;
}

static void share_free(struct ag_share *share)
{
	port_slice_free(share->link->port, share->id);
	ag_list_remove(&share->node);
	ag_list_remove(&share->in_conn);
	share->alloc->share_count--;
	share->client->share_count--;
	free(share);
}

void ag_mem_conn_end(struct ag_conn *conn)
{
	struct ag_list *pos, *tmp;

	ag_list_each(pos, tmp, &conn->shares)
		share_free(ag_list_entry(pos, struct ag_share, in_conn));
}

void ag_mem_release(struct ag_client *c, struct ag_alloc *m)
{
	struct ag_link *self = &c->agent->links[0];
	struct ag_list *pos, *tmp;

	ag_list_each(pos, tmp, &m->shares) share_free(ag_list_entry(pos, struct ag_share, node));
	ag_list_remove(&m->node);
	c->alloc_count--;
	self->window_used -= m->slice.len;
	port_slice_free(self->port, m->slice.id);
	free(m);
}

void ag_mem_free(struct ag_client *c, const struct w_alloc *msg)
{
	struct ag_alloc *m = alloc_find(c, msg->slice_id);

	if (m != NULL)
		ag_mem_release(c, m);
}

static void alloc_link_down(struct ag_alloc *m, struct ag_link *l)
{
	struct ag_list *pos, *tmp;
	struct ag_share *share;

	ag_list_each(pos, tmp, &m->shares)
	{
		share = ag_list_entry(pos, struct ag_share, node);
		if (share->link == l)
			share_free(share);
	}
}

void ag_mem_link_down(struct ag_link *l)
{
	struct ag_list *pos, *tmp, *at, *after;
	struct ag_client *c;

	ag_list_each(pos, tmp, &l->agent->clients)
	{
		c = ag_list_entry(pos, struct ag_client, node);
		ag_list_each(at, after, &c->allocs)
			alloc_link_down(ag_list_entry(at, struct ag_alloc, node), l);
	}
}

/*
 * Ends earlier shares of this memory over the connection: its peer has closed the slices that they
 * named.
 */
static void share_again(struct ag_alloc *m, struct ag_conn *conn)
{
	struct ag_list *pos, *tmp;
	struct ag_share *share;

	ag_list_each(pos, tmp, &conn->shares)
	{
		share = ag_list_entry(pos, struct ag_share, in_conn);
		if (share->alloc == m)
			share_free(share);
	}
}

/* Offers the memory to the neighbour under an id.  0 or -errno. */
static int share_offer(struct ag_alloc *m, struct ag_conn *conn, uint32_t *id_out)
{
	struct port *self = conn->link->agent->links[0].port;
	int fd, rc = port_peer_slice_open(self, m->slice.id, m->slice.len, &fd);

	if (rc != 0)
		return rc;
	rc = port_slice_share(conn->link->port, fd, m->slice.len, id_out);
	close(fd);
	return rc;
}

/* Shares the memory with the neighbour under a new id, which can be opened once. */
static int share_new(struct ag_alloc *m, struct ag_conn *conn, uint32_t *id_out)
{
	struct ag_client *c = conn->client;
	struct ag_share *share;
	int rc;

	if (m->share_count >= SHARES_MAX || c->share_count >= CLIENT_SHARES_MAX)
		return -ENOSPC;
	share = calloc(1, sizeof(*share));
	if (share == NULL)
		return -ENOMEM;
	rc = share_offer(m, conn, &share->id);
	if (rc != 0) {
		free(share);
		return rc;
	}
	share->alloc = m;
	share->client = c;
	share->link = conn->link;
	ag_list_append(&m->shares, &share->node);
	ag_list_append(&conn->shares, &share->in_conn);
	m->share_count++;
	c->share_count++;
	*id_out = share->id;
	return 0;
}

/* The id by which the process at the other end of `conn` can open it; 0: it cannot. */
static uint32_t slice_name(struct ag_alloc *m, struct ag_conn *conn)
{
	uint32_t id = 0;
	char text[U_FD_ERROR];
	int rc;

	if (conn->link->index == 0)
		return m->slice.id;
	if (conn->path.hops > 1)
		return 0;
	share_again(m, conn);
	rc = share_new(m, conn, &id);
	if (rc != 0)
		u_log_ratelimited(&conn->link->ratelimit[AG_RATELIMIT_ROOM],
				  "port %s: window memory of %zu bytes cannot be shared: %s",
				  conn->link->port->limits.name, m->slice.len,
				  u_fd_error(-rc, text));
	return id;
}

void ag_mem_tell(struct ag_client *c, const struct w_tell *m)
{
	struct ag_conn *conn = ag_conn_of_client(c, m->conn);
	struct ag_alloc *mem = m->slice_id != 0 ? alloc_find(c, m->slice_id) : NULL;
	struct w_cm_tell t = { .body_len = m->body_len };
	struct ag_link *l;

	if (conn == NULL || conn->state != AG_CONNECTED || conn->resume != AG_ON_PATH ||
	    (m->slice_id != 0 && mem == NULL))
		return;
	l = conn->link;
	t.src_host = (uint16_t)c->agent->cfg.host_id;
	t.dst_host = conn->peer_host;
	ag_route_set_path(&t.path, &conn->path);
	t.src_conn = conn->id;
	t.epoch = conn->epoch;
	t.dst_conn = conn->peer_conn;
	memcpy(t.body, m->body, m->body_len);
	if (mem != NULL) {
		t.slice_id = slice_name(mem, conn);
		t.slice_len = mem->slice.len;
	}
	w_ctl_init(&t, W_CM_TELL, sizeof(t));
	ag_ctl_send(l, &t);
	if (ag_ctl_full(l))
		c->paused = true;
}

/*
 * If the memory was freed meanwhile, or the connection of its owner ended, the message has no
 * slice.
 */
void ag_mem_told(struct ag_link *l, const struct w_cm_tell *m)
{
	struct ag_conn *conn = ag_conn_get(l->agent, m->dst_conn);
	struct w_tell t = { .slice_id = m->slice_id, .body_len = m->body_len };
	int fd = -1;

	if (conn == NULL || conn->link != l || conn->peer_host != m->src_host ||
	    conn->peer_conn != m->src_conn || conn->epoch != m->epoch ||
	    conn->state != AG_CONNECTED || !ag_client_hears(conn->client))
		return;
	if (m->slice_id != 0 && port_peer_slice_open(l->port, m->slice_id, m->slice_len, &fd) != 0)
		t.slice_id = 0;
	t.conn = conn->id;
	memcpy(t.body, m->body, m->body_len);
	w_ctl_init(&t, W_TOLD, sizeof(t));
	ag_client_send(conn->client, &t, &fd, fd >= 0 ? 1 : 0);
}
