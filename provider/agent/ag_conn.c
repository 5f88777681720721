/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of connection ends, by id, by token and by the other end, and their slices. */
#include "ag_conn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ag_client.h"
#include "ag_holder.h"
#include "ag_link.h"
#include "ag_list.h"
#include "ag_ratelimit.h"
#include "ag_state.h"
#include "port.h"
#include "rt_topo.h"
#include "u_fd.h"
#include "u_log.h"
#include "u_membarrier.h"
#include "u_random.h"
#include "u_time.h"
#include "w_ctl.h"
#include "w_slot.h"

#define CONNS_MAX (1u << 20)
#define WINDOW_REMEDY                                                                              \
	"; lower VIADUCT_RING_BYTES, or raise VIADUCT_WINDOW_BYTES, with an adapter window_bytes " \
	"of viaduct.ko"
#define PENDING_MAX 4096u /* of one client: attempts and requests that are not connected yet */

struct ag_conn_slot {
	struct ag_conn *conn;
	uint32_t generation;
	uint32_t next_free; /* index + 1 */
};

/* Is an end in that state not connected yet? */
static bool pending(enum ag_state state)
{
	return state < AG_CONNECTED;
}

/*
 * Mixes, so that each bit of the key and of the id changes each bit of the result with equal
 * chance.
 */
static uint64_t mix(uint64_t h)
{
	h = (h ^ h >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	h = (h ^ h >> 27) * UINT64_C(0x94d049bb133111eb);
	return h ^ h >> 31;
}

struct ag_list *ag_conn_bucket(const struct ag_agent *a, struct ag_list table[AG_HASH],
			       uint16_t host, uint64_t conn)
{
	return &table[mix(mix(conn ^ a->hash_key) + host + a->hash_key) % AG_HASH];
}

/* Returns the bucket for the end of this host whose other end has that id at that host. */
static struct ag_list *bucket(struct ag_agent *a, uint16_t peer_host, uint64_t peer_conn)
{
	return ag_conn_bucket(a, a->hash, peer_host, peer_conn);
}

/* Doubles the table of ends; the new slots are free.  0, -ENOSPC (it would have more than CONNS_MAX) or -ENOMEM. */
static int table_grow(struct ag_agent *a)
{
	uint32_t i, n = a->conn_slots == 0 ? 64 : a->conn_slots * 2;
	struct ag_conn_slot *bigger;
	uint32_t seed;

	if (n > CONNS_MAX)
		return -ENOSPC;
	bigger = realloc(a->conn_slot, n * sizeof(*bigger));
	if (bigger == NULL)
		return -ENOMEM;
	u_random(&seed, sizeof(seed));
	a->conn_slot = bigger;
	for (i = n; i-- > a->conn_slots;) {
		bigger[i].conn = NULL;
		bigger[i].generation = seed;
		bigger[i].next_free = a->conn_free;
		a->conn_free = i + 1;
	}
	a->conn_slots = n;
	return 0;
}

/* May the client have one more end that is not connected yet? */
static bool limits_ok(const struct ag_client *c)
{
	return c->conn_count < AG_CLIENT_CONNS_MAX && c->pending_count < PENDING_MAX;
}

/* Puts an end on the list of a link, which becomes conn->link; the link's heartbeats begin with its first end. */
static void enter_link(struct ag_conn *conn, struct ag_link *l)
{
	conn->link = l;
	ag_list_append(&l->conns, &conn->in_link);
	if (l->conn_count++ == 0)
		ag_link_beats_begin(l);
}

/* Takes an end off the lists of its link, and releases its reservation there.  `conn->link` is not changed. */
static void leave_link(struct ag_conn *conn)
{
	ag_link_unreserve(conn->link, &conn->reservation);
	ag_list_remove(&conn->in_link);
	ag_list_remove(&conn->in_held);
	conn->link->conn_count--;
}

/* The end no longer counts as opening for its process, if it did. */
static void opened(struct ag_conn *conn)
{
	if (conn->opening)
		ag_holders_count(&conn->client->holders, AG_OPENING, -1);
	conn->opening = false;
}

void ag_conn_uncharge(struct ag_conn *conn)
{
	opened(conn);
	if (conn->charged != 0)
		ag_holders_use(&conn->client->holders, conn->charged_port, -(int64_t)conn->charged);
	conn->charged = 0;
}

/*
 * Counts the slice for the process, and an end that is not connected yet as opening.  False, with nothing counted: the
 * process may not have so much, or not one more that opens.
 */
static bool charge(struct ag_conn *conn, size_t len)
{
	struct ag_agent *a = conn->link->agent;
	struct ag_holders *h = &conn->client->holders;
	bool opening = pending(conn->state);

	if ((opening && !ag_holders_may(a, h, AG_OPENING)) ||
	    !ag_client_may_use(conn->client, conn->link, len))
		return false;
	conn->opening = opening;
	conn->charged = len;
	conn->charged_port = conn->link->index;
	if (opening)
		ag_holders_count(h, AG_OPENING, 1);
	ag_holders_use(h, conn->link->index, (int64_t)len);
	return true;
}

struct ag_conn *ag_conn_new(struct ag_client *c, struct ag_link *l, enum ag_state state)
{
	struct ag_agent *a = c->agent;
	struct ag_conn_slot *slot;
	struct ag_conn *conn;

	if (!limits_ok(c) || !ag_holders_may(a, &c->holders, AG_CONNS) ||
	    (a->conn_free == 0 && table_grow(a) != 0))
		return NULL;
	conn = calloc(1, sizeof(*conn));
	if (conn == NULL)
		return NULL;
	slot = &a->conn_slot[a->conn_free - 1];
	conn->id = (uint64_t)++slot->generation << 32 | a->conn_free;
	a->conn_free = slot->next_free;
	slot->conn = conn;
	a->conn_count++;
	conn->client = c;
	conn->peer_host = l->peer_host;
	conn->state = state;
	conn->slice.fd = -1;
	ag_list_init(&conn->in_hash);
	ag_list_init(&conn->in_held);
	ag_list_init(&conn->in_linked);
	ag_list_init(&conn->in_resuming);
	ag_list_init(&conn->shares);
	ag_list_append(&c->conns, &conn->in_client);
	c->conn_count++;
	c->pending_count++;
	ag_holders_count(&c->holders, AG_CONNS, 1);
	enter_link(conn, l);
	return conn;
}

void ag_conn_move(struct ag_conn *conn, struct ag_link *l, const struct rt_path *path)
{
	leave_link(conn);
	enter_link(conn, l);
	conn->path = *path;
}

/*
 * Sets its state, and counts it for its client as pending or not; from AG_CONNECTED on it does not count as opening.
 * In AG_LINKED it has AG_CONFIRM_NS to be confirmed (ag_connect_timers()).  Tells nobody.
 */
void ag_conn_set_state(struct ag_conn *conn, enum ag_state state)
{
	if (conn->client != NULL && pending(conn->state) != pending(state))
		conn->client->pending_count += pending(state) ? 1 : (uint32_t)-1;
	conn->state = state;
	if (!pending(state))
		opened(conn);
	ag_list_remove(&conn->in_linked);
	if (state == AG_LINKED) {
		conn->confirm_until = u_now_ns() + AG_CONFIRM_NS;
		conn->postponed = false;
		ag_list_append(&conn->link->agent->linked, &conn->in_linked);
	}
}

bool ag_conn_trusts(const struct ag_client *c)
{
	const struct ag_holder *process = c->holders.process;

	return process->unconfirmed < AG_UNCONFIRMED_MAX || u_now_ns() >= process->trusted_at;
}

void ag_conn_leave_client(struct ag_conn *conn)
{
	struct ag_client *c = conn->client;

	if (pending(conn->state))
		c->pending_count--;
	c->conn_count--;
	ag_conn_uncharge(conn);
	ag_holders_count(&c->holders, AG_CONNS, -1);
	ag_list_remove(&conn->in_client);
	conn->client = NULL;
}

void ag_conn_remove(struct ag_conn *conn)
{
	struct ag_agent *a = conn->link->agent;
	uint32_t index = (uint32_t)conn->id - 1;

	ag_list_remove(&conn->in_hash);
	ag_list_remove(&conn->in_linked);
	leave_link(conn);
	a->conn_slot[index].conn = NULL;
	a->conn_slot[index].next_free = a->conn_free;
	a->conn_free = index + 1;
	a->conn_count--;
	free(conn);
}

struct ag_conn *ag_conn_get(struct ag_agent *a, uint64_t id)
{
	uint32_t index = (uint32_t)id - 1;
	struct ag_conn *conn;

	if (index >= a->conn_slots)
		return NULL;
	conn = a->conn_slot[index].conn;
	return conn != NULL && conn->id == id ? conn : NULL;
}

struct ag_conn *ag_conn_of_client(struct ag_client *c, uint64_t id)
{
	struct ag_conn *conn = ag_conn_get(c->agent, id);

	return conn != NULL && conn->client == c ? conn : NULL;
}

/* Searches the newest ends first: a process mostly waits for these. */
struct ag_conn *ag_conn_by_token(struct ag_client *c, uint64_t token)
{
	struct ag_list *pos;
	struct ag_conn *conn;

	for (pos = c->conns.prev; pos != &c->conns; pos = pos->prev) {
		conn = ag_list_entry(pos, struct ag_conn, in_client);
		if (conn->token == token &&
		    (conn->state == AG_HELD || conn->state == AG_REQUESTED ||
		     conn->state == AG_WAITING || conn->state == AG_ACCEPTING ||
		     conn->state == AG_LINKED))
			return conn;
	}
	return NULL;
}

struct ag_conn *ag_conn_by_peer(struct ag_agent *a, uint16_t peer_host, uint64_t peer_conn)
{
	struct ag_list *pos, *tmp, *head = bucket(a, peer_host, peer_conn);
	struct ag_conn *conn;

	ag_list_each(pos, tmp, head)
	{
		conn = ag_list_entry(pos, struct ag_conn, in_hash);
		if (conn->peer_host == peer_host && conn->peer_conn == peer_conn)
			return conn;
	}
	return NULL;
}

void ag_conn_set_peer(struct ag_conn *conn, uint64_t peer_conn)
{
	ag_list_remove(&conn->in_hash);
	conn->peer_conn = peer_conn;
	if (peer_conn != 0)
		ag_list_append(bucket(conn->link->agent, conn->peer_host, peer_conn),
			       &conn->in_hash);
}

void ag_conn_limit_geometry(struct w_geometry *g, const struct w_geometry *most)
{
	if (w_slots_ok(most->slots) && most->slots < g->slots)
		g->slots = most->slots;
	if (w_payload_ok(most->payload_bytes) && most->payload_bytes < g->payload_bytes)
		g->payload_bytes = most->payload_bytes;
}

void ag_conn_set_geometry(struct ag_conn *conn, const struct w_geometry *most)
{
	struct w_geometry *g = &conn->geometry;

	ag_link_geometry(conn->link, conn->path.hops, g);
	if (most != NULL)
		ag_conn_limit_geometry(g, most);
	ag_link_reserve(conn->link, g, &conn->reservation);
}

int ag_conn_slice_alloc(struct ag_conn *conn)
{
	struct ag_link *l = conn->link;
	uint32_t slots = conn->geometry.slots, payload = conn->geometry.payload_bytes;
	size_t len = ag_link_slice_bytes(l, slots, payload);
	char text[U_FD_ERROR];
	int rc;

	if (!charge(conn, len))
		return -EDQUOT;
	rc = port_slice_alloc(l->port, len, &conn->slice);
	if (rc != 0) {
		ag_conn_uncharge(conn);
		conn->slice.fd = -1;
		u_log_ratelimited(
			&l->ratelimit[AG_RATELIMIT_ROOM],
			"port %s: no slice of %zu bytes, %llu of the window's %llu are in "
			"use: %s%s",
			l->port->limits.name, len, (unsigned long long)l->window_used,
			(unsigned long long)l->port->limits.window_bytes, u_fd_error(-rc, text),
			rc == -ENOSPC ? WINDOW_REMEDY : "");
		return rc;
	}
	conn->has_slice = true;
	ag_link_unreserve(l, &conn->reservation);
	l->window_used += conn->slice.len;
	conn->geometry = (struct w_geometry){
		.slots = slots,
		.payload_bytes = payload,
		.db_bit = conn->client->db_bit,
		.must_fence = l->port->limits.far || !u_membarrier_available(),
		.slice_id = conn->slice.id,
		.slice_len = conn->slice.len,
	};
	return 0;
}

void ag_conn_slice_free(struct ag_conn *conn)
{
	if (conn->slice.fd >= 0)
		close(conn->slice.fd);
	conn->slice.fd = -1;
	if (!conn->has_slice)
		return;
	conn->has_slice = false;
	ag_conn_uncharge(conn);
	ag_link_slice_free(conn->link, &conn->slice, conn->held);
	conn->held = false;
}

bool ag_conn_on_path(const struct ag_conn *conn)
{
	return conn->link->index != 0 || conn->peer_host == conn->link->peer_host;
}
