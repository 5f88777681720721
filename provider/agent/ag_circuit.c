/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of circuits, their bypass buffers, and handing them to the transfer threads. */
#include "ag_circuit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ag_cfg.h"
#include "ag_conn.h"
#include "ag_link.h"
#include "ag_list.h"
#include "ag_ratelimit.h"
#include "ag_state.h"
#include "port.h"
#include "rl_relay.h"
#include "rt_topo.h"
#include "u_log.h"
#include "u_membarrier.h"
#include "w_ctl.h"
#include "w_slot.h"

/* Returns the bucket for the circuit whose asking end has that id at that host. */
static struct ag_list *bucket(struct ag_agent *a, uint16_t host, uint64_t conn)
{
	return ag_conn_bucket(a, a->circuits, host, conn);
}

/*
 * Does the record come from end `i`, and go to the other end?  A record that names its destination by an id which the
 * circuit does not know is not accepted: that end may not know the id either, and would ignore a record that ends the
 * circuit here.  An id of end `i` itself that is not known yet may be any.
 */
static bool is_from(const struct ag_circuit *c, unsigned int i, const struct ag_link *l,
		    const struct w_cm *cm, uint32_t epoch)
{
	const struct ag_circuit_end *from = &c->end[i], *to = &c->end[1 - i];

	return from->link == l && from->host == cm->src_host && to->host == cm->dst_host &&
	       c->epoch == epoch &&
	       (cm->src_conn == 0 || from->conn == 0 || from->conn == cm->src_conn) &&
	       (cm->dst_conn == 0 || to->conn == cm->dst_conn);
}

/* Returns the circuit of the asking end (`host`, `conn`) to which the record belongs as one from end `i`, or NULL. */
static struct ag_circuit *find_in(struct ag_agent *a, uint16_t host, uint64_t conn, unsigned int i,
				  const struct ag_link *l, const struct w_cm *cm, uint32_t epoch)
{
	struct ag_list *pos, *tmp, *head = bucket(a, host, conn);
	struct ag_circuit *c;

	ag_list_each(pos, tmp, head)
	{
		c = ag_list_entry(pos, struct ag_circuit, node);
		if (c->end[0].host == host && c->end[0].conn == conn && is_from(c, i, l, cm, epoch))
			return c;
	}
	return NULL;
}

struct ag_circuit *ag_circuit_find(struct ag_link *l, const struct w_cm *cm, uint32_t epoch,
				   unsigned int *end_out)
{
	struct ag_circuit *c = NULL;

	*end_out = 0;
	if (cm->src_conn != 0)
		c = find_in(l->agent, cm->src_host, cm->src_conn, 0, l, cm, epoch);
	if (c == NULL && cm->dst_conn != 0) {
		*end_out = 1;
		c = find_in(l->agent, cm->dst_host, cm->dst_conn, 1, l, cm, epoch);
	}
	return c;
}

/* Fills in end `i` of a circuit and puts it on the list of its link, whose heartbeats begin with its first one. */
static void end_init(struct ag_circuit_end *e, struct ag_circuit *c, unsigned int i,
		     struct ag_link *l, uint16_t host, uint64_t conn)
{
	e->link = l;
	e->host = host;
	e->conn = conn;
	e->slice.fd = -1;
	ag_list_append(&l->circuits[i], &e->in_link);
	if (l->conn_count + l->circuit_count++ == 0)
		ag_link_beats_begin(l);
}

/*
 * May the neighbour ask for another circuit?  Each has its share of the table, so that none can
 * take the share of others.
 */
static bool may_ask(const struct ag_link *from)
{
	const struct ag_agent *a = from->agent;
	uint32_t most = a->cfg.circuits != 0 ? a->cfg.circuits : AG_CIRCUITS_MAX;

	return from->asked_count < most / (a->link_count - 1);
}

struct ag_circuit *ag_circuit_new(struct ag_link *from, struct ag_link *to, const struct w_cm *cm)
{
	struct ag_agent *a = from->agent;
	struct ag_circuit *c;
	uint64_t flow = (uint64_t)cm->src_host << 48 ^ cm->src_conn;

	if (a->relay == NULL || !may_ask(from))
		return NULL;
	c = calloc(1, sizeof(*c));
	if (c == NULL)
		return NULL;
	c->agent = a;
	c->state = AG_CIRCUIT_ASKED;
	c->epoch = cm->epoch;
	c->end[0].consumed = cm->consumed;
	c->peer = cm->hdr.type == W_CM_PEER;
	c->at = cm->path.at;
	c->closed = AG_CIRCUIT_NONE;
	c->most.slots = W_SLOTS_MAX;
	c->most.payload_bytes = w_payload_of_path(a->cfg.payload_bytes, W_HOPS_MAX);
	/* A connection over one link may continue through this relay with the buffer that it has. */
	if (cm->hdr.type == W_CM_RESUME && c->most.payload_bytes < AG_STREAM_PAYLOAD)
		c->most.payload_bytes = AG_STREAM_PAYLOAD;
	c->thread = rl_thread_of(a->relay, flow);
	end_init(&c->end[0], c, 0, from, cm->src_host, cm->src_conn);
	end_init(&c->end[1], c, 1, to, cm->dst_host,
		 cm->hdr.type == W_CM_RESUME ? cm->dst_conn : 0);
	c->end[1].path.hops = cm->path.hops;
	memcpy(c->end[1].path.port, cm->path.port, cm->path.hops);
	rt_path_reverse(a->topo, cm->src_host, &c->end[1].path, &c->end[0].path);
	ag_list_append(bucket(a, cm->src_host, cm->src_conn), &c->node);
	a->circuit_count++;
	from->asked_count++;
	return c;
}

void ag_circuit_free_slice(struct ag_circuit_end *e)
{
	if (!e->has_slice)
		return;
	e->has_slice = false;
	e->link->window_used -= e->slice.len;
	port_slice_free(e->link->port, e->slice.id);
}

/* Takes the circuit from its transfer thread: after this nothing is forwarded, and nothing is mapped. */
void ag_circuit_stop(struct ag_circuit *c)
{
	unsigned int i;

	if (c->rl != NULL)
		rl_remove(c->rl);
	for (i = 0; i < 2 && c->rl == NULL; i++) {
		port_unmap(c->end[i].link->port, &c->end[i].in);
		port_unmap(c->end[i].link->port, &c->end[i].out);
	}
	for (i = 0; i < 2; i++) {
		memset(&c->end[i].in, 0, sizeof(c->end[i].in));
		memset(&c->end[i].out, 0, sizeof(c->end[i].out));
	}
	c->rl = NULL;
}

void ag_circuit_free(struct ag_circuit *c)
{
	unsigned int i;

	ag_circuit_stop(c);
	for (i = 0; i < 2; i++) {
		ag_circuit_free_slice(&c->end[i]);
		ag_link_unreserve(c->end[i].link, &c->end[i].reservation);
		ag_list_remove(&c->end[i].in_link);
		c->end[i].link->circuit_count--;
	}
	ag_list_remove(&c->node);
	c->end[0].link->asked_count--;
	c->agent->circuit_count--;
	free(c);
}

/*
 * Maps the slice that end `i` named, as its `out`, and notes its doorbell bit.  0; -EAGAIN: it has not arrived, and
 * this is not the last chance; or another -errno.
 */
static int node_slice(struct ag_circuit *c, unsigned int i, const struct w_geometry *g,
		      bool last_chance)
{
	struct ag_circuit_end *e = &c->end[i];
	int fd, rc = port_peer_slice_open(e->link->port, g->slice_id, g->slice_len, &fd);

	if (rc == -ENOENT && !last_chance)
		return -EAGAIN;
	if (rc != 0)
		return rc;
	rc = port_map(e->link->port, fd, g->slice_len, PORT_OUTBOUND, &e->out);
	close(fd);
	e->db_mask = UINT32_C(1) << g->db_bit;
	return rc;
}

/*
 * Allots the bypass buffer that end `i` will write, of the geometry in `g`, maps it, and names it in `g`.  0 or
 * -errno.  The room reserved for it is given back in any case; a buffer that could not be mapped stays for
 * ag_circuit_free_slice().
 */
static int bypass_slice(struct ag_circuit *c, unsigned int i, struct w_geometry *g)
{
	struct ag_circuit_end *e = &c->end[i];
	struct ag_link *l = e->link;
	size_t len =
		u_align_up(w_slice_bytes(g->slots, g->payload_bytes), l->port->limits.slice_align);
	int rc = port_slice_alloc(l->port, len, &e->slice);

	ag_link_unreserve(l, &e->reservation);
	if (rc != 0)
		return rc;
	e->has_slice = true;
	l->window_used += e->slice.len;
	rc = port_map(l->port, e->slice.fd, e->slice.len, PORT_INBOUND, &e->in);
	close(e->slice.fd);
	e->slice.fd = -1;
	if (rc != 0)
		return rc;
	atomic_store(&((struct w_control *)e->in.base)->credit, e->consumed.slots);
	g->slice_id = e->slice.id;
	g->slice_len = e->slice.len;
	g->db_bit = rl_db_bit(c->agent->relay, c->thread);
	g->must_fence = l->port->limits.far || !u_membarrier_available();
	return 0;
}

int ag_circuit_stand_between(struct ag_circuit *c, unsigned int from, struct w_geometry *g,
			     bool last_chance)
{
	int rc;

	if (c->state == AG_CIRCUIT_ACCEPTED &&
	    (g->slots != c->geometry.slots || g->payload_bytes != c->geometry.payload_bytes))
		return -EPROTO;
	if (g->slots > c->most.slots || g->payload_bytes > c->most.payload_bytes)
		return -E2BIG;
	rc = node_slice(c, from, g, last_chance);
	if (rc == 0)
		rc = bypass_slice(c, 1 - from, g);
	if (rc == 0)
		c->geometry = *g;
	if (rc != 0 && rc != -EAGAIN)
		u_log_ratelimited(&c->end[from].link->ratelimit[AG_RATELIMIT_ROOM],
				  "port %s: a connection of host %u cannot be relayed: %s",
				  c->end[from].link->port->limits.name, c->end[from].host,
				  strerror(-rc));
	return rc;
}

int ag_circuit_carry(struct ag_circuit *c)
{
	struct rl_side side[2];
	unsigned int i;

	for (i = 0; i < 2; i++)
		side[i] = (struct rl_side){
			.port = c->end[i].link->port,
			.in = c->end[i].in,
			.out = c->end[i].out,
			.db_mask = c->end[i].db_mask,
			.first = c->end[1 - i].consumed.slots,
			.cursor = c->end[1 - i].consumed.cursor & (c->geometry.payload_bytes - 1),
		};
	return rl_add(c->agent->relay, c->thread, side, c->geometry.slots,
		      c->geometry.payload_bytes, c, &c->rl);
}
