/* SPDX-License-Identifier: BSD-2-Clause */
/* Window memory of processes, and the messages by which they tell each other about it. */
#include "ag_mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ag_alloc.h"
#include "ag_client.h"
#include "ag_conn.h"
#include "ag_ctl.h"
#include "ag_holder.h"
#include "ag_link.h"
#include "ag_list.h"
#include "ag_ratelimit.h"
#include "ag_route.h"
#include "ag_share.h"
#include "ag_state.h"
#include "port.h"
#include "u_fd.h"
#include "u_log.h"
#include "w_ctl.h"

/*
 * Answers W_ALLOC: with the piece and its descriptor, which passes to the message, or with the status of a
 * failure.
 */
static void alloc_answer(struct ag_client *c, uint64_t token, const struct ag_alloc *alloc,
			 enum w_status status, int fd)
{
	struct w_alloc m = { .token = token, .status = status };

	if (alloc != NULL) {
		m.slice_id = alloc->id;
		m.length = alloc->slice.len;
	}
	w_ctl_init(&m, W_ALLOCATED, sizeof(m));
	ag_client_send(c, &m, &fd, fd >= 0 ? 1 : 0);
}

/*
 * May the client, and its user, have another piece?  Each keeps a descriptor open in this process.  If not, logs
 * that.
 */
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
		"client %u pid %d gets no more window memory: it has %u piece%s, uid %u has %u; "
		"a process may have %u, a user %u",
		c->id, (int)c->pid, c->alloc_count, c->alloc_count == 1 ? "" : "s",
		(unsigned int)c->uid, (unsigned int)sum, a->client_allocs, a->user_allocs);
	return false;
}

/* Returns the piece of the client with that id, or NULL. */
static struct ag_alloc *alloc_find(struct ag_client *c, uint32_t id)
{
	struct ag_list *pos, *tmp;
	struct ag_alloc *m;

	ag_list_each(pos, tmp, &c->allocs)
	{
		m = ag_list_entry(pos, struct ag_alloc, node);
		if (m->id == id)
			return m;
	}
	return NULL;
}

/* ---- the window in which it lies ---- */

/* Counts the connections of a client whose first link is `l`. */
static uint32_t conns_over(const struct ag_client *c, const struct ag_link *l)
{
	const struct ag_list *pos;
	uint32_t n = 0;

	for (pos = c->conns.next; pos != &c->conns; pos = pos->next)
		n += ag_list_entry(pos, struct ag_conn, in_client)->link == l;
	return n;
}

/*
 * Is the window of `l` a better place than that of `best`?  More connections of the process decide, then a
 * link that is up, then more room.
 */
static bool is_better(const struct ag_client *c, const struct ag_link *l,
		      const struct ag_link *best)
{
	uint32_t conns = conns_over(c, l), most = best != NULL ? conns_over(c, best) : 0;

	if (best == NULL || conns != most)
		return best == NULL || conns > most;
	if (ag_link_usable(l) != ag_link_usable(best))
		return ag_link_usable(l);
	return ag_alloc_room(l) > ag_alloc_room(best);
}

/* The link to the best adapter whose index has no bit in `tried`, or NULL; links of emulated ports are none. */
static struct ag_link *best_link(struct ag_client *c, uint32_t tried)
{
	struct ag_agent *a = c->agent;
	struct ag_link *best = NULL;

	for (uint32_t i = 1; i < a->link_count; i++) {
		if (!a->links[i].cabled && (tried & UINT32_C(1) << i) == 0 &&
		    is_better(c, &a->links[i], best))
			best = &a->links[i];
	}
	return best;
}

/*
 * Takes memory in the window of an adapter, as m->slice and m->link.  0; -ENODEV: the host has none; or -errno of the
 * last one that was tried, -ENOSPC also if the process may not have so much of it.
 */
static int memory_take(struct ag_client *c, uint64_t length, struct ag_alloc *m)
{
	uint32_t tried = 0;
	struct ag_link *l;
	int rc = -ENODEV;

	while ((l = best_link(c, tried)) != NULL) {
		tried |= UINT32_C(1) << l->index;
		rc = length <= ag_alloc_room(l) && ag_client_may_use(c, l, length)
			     ? port_memory_alloc(l->port, length, &m->slice)
			     : -ENOSPC;
		if (rc != 0)
			continue;
		m->link = l;
		return 0;
	}
	return rc;
}

/*
 * Takes memory of `self`: no process of a neighbour may be able to store into it, but it is better than none.  0 or
 * -errno as ag_client_slice(), logged.
 */
static int self_take(struct ag_client *c, uint64_t length, struct ag_alloc *m)
{
	struct ag_link *self = &c->agent->links[0];

	m->link = self;
	return ag_client_slice(c, self, length, &m->slice);
}

/*
 * Takes memory in an adapter's window, if any place will do and there is an adapter with room; else memory of
 * `self`.  0 or -errno.
 */
static int alloc_place(struct ag_client *c, const struct w_alloc *msg, struct ag_alloc *m)
{
	bool any = msg->slice_id == W_ALLOC_ANY;
	char text[U_FD_ERROR];
	int rc = any ? memory_take(c, msg->length, m) : -ENODEV;

	if (rc == 0)
		return 0;
	if (rc != -ENODEV)
		u_log_ratelimited(&c->agent->links[0].ratelimit[AG_RATELIMIT_ROOM],
				  "%llu bytes of window memory lie in no adapter's window, so RDMA "
				  "of other machines goes through slots: %s; raise window_bytes of "
				  "viaduct.ko",
				  (unsigned long long)msg->length, u_fd_error(-rc, text));
	return self_take(c, msg->length, m);
}

/* Returns an id that no piece of the client has; never 0. */
static uint32_t fresh_id(struct ag_client *c)
{
	do {
		c->alloc_id++;
	} while (c->alloc_id == 0 || alloc_find(c, c->alloc_id) != NULL);
	return c->alloc_id;
}

/*
 * Returns a new piece, counted for the process and its window, and in *fd_out, which is -1 before, another descriptor
 * of it for the process; or NULL, for whatever reason, with nothing left.
 */
static struct ag_alloc *alloc_make(struct ag_client *c, const struct w_alloc *msg, int *fd_out)
{
	struct ag_link *self = &c->agent->links[0];
	struct ag_alloc *m;

	if (msg->length == 0 || msg->length > SIZE_MAX / 2 || !alloc_allowed(c) ||
	    ag_client_port(c, self) != 0)
		return NULL;
	m = calloc(1, sizeof(*m));
	if (m == NULL)
		return NULL;
	if (alloc_place(c, msg, m) != 0) {
		free(m);
		return NULL;
	}
	m->id = fresh_id(c);
	ag_list_init(&m->shares);
	ag_list_append(&c->allocs, &m->node);
	c->alloc_count++;
	m->link->window_used += m->slice.len;
	m->link->memory_used += m->slice.len;
	ag_holders_use(&c->holders, m->link->index, (int64_t)m->slice.len);
	if (m->link == self) /* uses the offer up */
		port_peer_slice_open(self->port, m->slice.id, m->slice.len, fd_out);
	else
		*fd_out = fcntl(m->slice.fd, F_DUPFD_CLOEXEC, 0);
	if (*fd_out >= 0)
		return m;
	ag_mem_release(c, m);
	return NULL;
}

void ag_mem_alloc(struct ag_client *c, const struct w_alloc *msg)
{
	int fd = -1;
	struct ag_alloc *m = alloc_make(c, msg, &fd);

	alloc_answer(c, msg->token, m, m != NULL ? W_SUCCESS : W_NO_RESOURCE, fd);
}

void ag_mem_release(struct ag_client *c, struct ag_alloc *m)
{
	ag_share_alloc_end(m);
	ag_list_remove(&m->node);
	c->alloc_count--;
	ag_holders_use(&c->holders, m->link->index, -(int64_t)m->slice.len);
	m->link->memory_used -= m->slice.len;
	/* When the agent ends, the process goes on and may still use it. */
	ag_link_slice_free(m->link, &m->slice, c->agent->ending);
	close(m->slice.fd);
	free(m);
}

/* Frees a piece of the process with its shares.  There is no answer; an unknown id is ignored. */
void ag_mem_free(struct ag_client *c, const struct w_alloc *msg)
{
	struct ag_alloc *m = alloc_find(c, msg->slice_id);

	if (m != NULL)
		ag_mem_release(c, m);
}

/* ---- messages about it ---- */

/*
 * Sends the message to the other end of the connection, with the memory it names.  If that is not possible now, or the
 * process has no such memory, it is dropped without an answer; memory that cannot be shared is left out; if much is
 * queued for the neighbour then, the process is not read for a while.
 */
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
		t.slice_id = ag_share_name(mem, conn);
		t.slice_len = mem->slice.len;
	}
	w_ctl_init(&t, W_CM_TELL, sizeof(t));
	ag_ctl_send(l, &t);
	if (ag_ctl_full(l))
		c->paused = true;
}

/*
 * Opens the memory that a message names, whose `slice_id` is not 0: over a link the share, which can be opened
 * once; within the host a piece of the process at the other end, and -ENOENT if that has none with the id or a
 * shorter one.  0 or -errno; the descriptor is the caller's.
 */
static int told_slice(struct ag_link *l, const struct w_cm_tell *m, int *fd_out)
{
	const struct ag_conn *owner;
	const struct ag_alloc *mem;

	if (l->index != 0)
		return port_peer_slice_open(l->port, m->slice_id, m->slice_len, fd_out);
	owner = ag_conn_get(l->agent, m->src_conn);
	mem = owner != NULL && owner->client != NULL ? alloc_find(owner->client, m->slice_id)
						     : NULL;
	if (mem == NULL || m->slice_len > mem->slice.len)
		return -ENOENT;
	*fd_out = fcntl(mem->slice.fd, F_DUPFD_CLOEXEC, 0);
	return *fd_out < 0 ? -errno : 0;
}

/*
 * Can the process be sent messages about the connection?  Also before it has confirmed, when the other end is
 * connected already: it reads LINKED first.
 */
static bool has_linked(const struct ag_conn *conn)
{
	return conn->state == AG_CONNECTED || conn->state == AG_LINKED;
}

/*
 * Passes the message to the process, unless its connection is not linked or it reads slowly.  If the memory
 * was freed, or the connection of its owner ended, since the message was sent, the process gets the message
 * without a slice.
 */
void ag_mem_told(struct ag_link *l, const struct w_cm_tell *m)
{
	struct ag_conn *conn = ag_conn_get(l->agent, m->dst_conn);
	struct w_tell t = { .slice_id = m->slice_id, .body_len = m->body_len };
	int fd = -1;

	if (conn == NULL || conn->link != l || conn->peer_host != m->src_host ||
	    conn->peer_conn != m->src_conn || conn->epoch != m->epoch || !has_linked(conn) ||
	    !ag_client_hears(conn->client))
		return;
	if (m->slice_id != 0 && told_slice(l, m, &fd) != 0)
		t.slice_id = 0;
	t.conn = conn->id;
	memcpy(t.body, m->body, m->body_len);
	w_ctl_init(&t, W_TOLD, sizeof(t));
	ag_client_send(conn->client, &t, &fd, fd >= 0 ? 1 : 0);
}
