/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Relaying, as the agent sees it: records of other hosts, and the circuits that they make.
 *
 * A circuit begins with the request that passes, and ends with the refusal, the cancellation or the
 * second CLOSE.  Between, ACCEPT and CONFIRM each name a slice of their sender; the agent opens it,
 * and names a bypass buffer of its own to the next host instead.  When both have passed, transfer
 * threads carry the packets (rl_relay.h).
 *
 *	REQ, PEER, RESUME ->  asked    <- ACCEPT   accepted   CONFIRM ->  carried
 *	carried  CLOSE of one end  ->  half closed  CLOSE of the other  ->  -
 *
 * A CLOSE says that its sender stores no more, so what came before it is forwarded first.  A link that
 * goes down ends its circuits; the end that is still there is told by a CLOSE in the name of the other.
 * Records that belong to no circuit are dropped, so nobody makes a relay carry what was not asked for;
 * but a QUERY and its answer pass where hardly anything waits, and are forgotten.
 */
#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ag_priv.h"
#include "u_futex.h"
#include "u_log.h"
#include "u_time.h"

#define NONE 2u

static_assert(AG_RELAY_THREADS_MAX == RL_THREADS_MAX, "RL_THREADS_MAX");

enum circuit_state {
	CIRCUIT_ASKED = 1, /* end[1].conn is not known yet, unless it is a RESUME */
	CIRCUIT_ACCEPTED,
	CIRCUIT_CARRIED,
	CIRCUIT_HALF_CLOSED, /* nothing is carried; at least one end may still store */
};

struct circuit_end {
	struct ag_list in_link; /* of link->circuits[] */
	struct ag_link *link;
	uint16_t host;
	uint64_t conn;
	struct rt_path path; /* to it, from the other end */
	bool has_slice;
	struct port_slice slice; /* bypass buffer that it writes */
	uint64_t reservation;	 /* of the link's window for it */
	struct port_map in, out;
	uint32_t db_mask;
	struct w_consumed consumed; /* by it, of the other's, over earlier paths */
};

/* end[0] asked. */
struct ag_circuit {
	struct ag_list node; /* of agent->circuits[] */
	struct ag_agent *agent;
	enum circuit_state state;
	uint32_t epoch;
	bool peer;  /* asked by PEER */
	uint8_t at; /* hops from end[0] to here */
	unsigned int thread;
	unsigned int closed;	    /* the end that closed, of a half closed one; NONE */
	uint32_t payload_most;	    /* of its slices */
	struct w_geometry geometry; /* of all its slices */
	struct circuit_end end[2];
	struct rl_circuit *rl;
};

/* ---- the table ------------------------------------------------------------------------------------ */

static struct ag_list *bucket(struct ag_agent *a, uint16_t host, uint64_t conn)
{
	return ag_bucket(a, a->circuits, host, conn);
}

/*
 * Is the record of end `i`, to the other one?  A name that the circuit does not know, the other end
 * need not know either: it would ignore a record that ends the circuit here.
 */
static bool is_from(const struct ag_circuit *c, unsigned int i, const struct ag_link *l,
		    const struct w_cm *cm, uint32_t epoch)
{
	const struct circuit_end *from = &c->end[i], *to = &c->end[1 - i];

	return from->link == l && from->host == cm->src_host && to->host == cm->dst_host &&
	       c->epoch == epoch &&
	       (cm->src_conn == 0 || from->conn == 0 || from->conn == cm->src_conn) &&
	       (cm->dst_conn == 0 || to->conn == cm->dst_conn);
}

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

/* The circuit that a record belongs to, and the end that sent it. */
static struct ag_circuit *find(struct ag_link *l, const struct w_cm *cm, uint32_t epoch,
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

static void end_init(struct circuit_end *e, struct ag_circuit *c, unsigned int i, struct ag_link *l,
		     uint16_t host, uint64_t conn)
{
	e->link = l;
	e->host = host;
	e->conn = conn;
	e->slice.fd = -1;
	ag_list_append(&l->circuits[i], &e->in_link);
	if (l->conn_count + l->circuit_count++ == 0) { /* heartbeats begin */
		l->heard_at = u_now_ns();
		l->beat_at = l->heard_at + AG_BEAT_NS;
	}
}

/* Each neighbour may ask for its part of the table, so none can take the place of others. */
static bool may_ask(const struct ag_link *from)
{
	const struct ag_agent *a = from->agent;
	uint32_t most = a->cfg.circuits != 0 ? a->cfg.circuits : AG_CIRCUITS_MAX;

	return from->asked_count < most / (a->link_count - 1);
}

static struct ag_circuit *circuit_new(struct ag_link *from, struct ag_link *to,
				      const struct w_cm *cm)
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
	c->state = CIRCUIT_ASKED;
	c->epoch = cm->epoch;
	c->end[0].consumed = cm->consumed;
	c->peer = cm->hdr.type == W_CM_PEER;
	c->at = cm->path.at;
	c->closed = NONE;
	c->payload_most = w_payload_of_path(a->cfg.payload_bytes, W_HOPS_MAX);
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

static void slice_free(struct circuit_end *e)
{
	if (!e->has_slice)
		return;
	e->has_slice = false;
	e->link->window_used -= e->slice.len;
	port_slice_free(e->link->port, e->slice.id);
}

/* Nothing is forwarded any more, and nothing mapped. */
static void stop_carrying(struct ag_circuit *c)
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

static void circuit_free(struct ag_circuit *c)
{
	unsigned int i;

	stop_carrying(c);
	for (i = 0; i < 2; i++) {
		slice_free(&c->end[i]);
		ag_window_unreserve(c->end[i].link, &c->end[i].reservation);
		ag_list_remove(&c->end[i].in_link);
		c->end[i].link->circuit_count--;
	}
	ag_list_remove(&c->node);
	c->end[0].link->asked_count--;
	c->agent->circuit_count--;
	free(c);
}

/* ---- slices --------------------------------------------------------------------------------------- */

/* Opens the slice that end `i` named.  -EAGAIN: it has not arrived, though it will. */
static int node_slice(struct ag_circuit *c, unsigned int i, const struct w_geometry *g,
		      bool last_chance)
{
	struct circuit_end *e = &c->end[i];
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

/* Makes the bypass buffer that end `i` will write, and names it in `g`. */
static int bypass_slice(struct ag_circuit *c, unsigned int i, struct w_geometry *g)
{
	struct circuit_end *e = &c->end[i];
	struct ag_link *l = e->link;
	size_t len =
		u_align_up(w_slice_bytes(g->slots, g->payload_bytes), l->port->limits.slice_align);
	int rc = port_slice_alloc(l->port, len, &e->slice);

	ag_window_unreserve(l, &e->reservation);
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
	g->must_fence = !u_membarrier_available();
	return 0;
}

/* End `from` named its slice to the other one: stands between.  0, -EAGAIN, or why it cannot. */
static int stand_between(struct ag_circuit *c, unsigned int from, struct w_geometry *g,
			 bool last_chance)
{
	int rc;

	if (c->state == CIRCUIT_ACCEPTED &&
	    (g->slots != c->geometry.slots || g->payload_bytes != c->geometry.payload_bytes))
		return -EPROTO;
	if (g->payload_bytes > c->payload_most)
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

static int carry(struct ag_circuit *c)
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

/* ---- records -------------------------------------------------------------------------------------- */

/* Speaks to end `to` in the name of the other. */
static void tell_end(struct ag_circuit *c, unsigned int to, enum w_ctl_type type, uint32_t status)
{
	struct circuit_end *e = &c->end[to], *other = &c->end[1 - to];
	struct w_cm cm = {
		.src_host = other->host,
		.dst_host = e->host,
		.status = status,
		.src_conn = other->conn,
		.dst_conn = e->conn,
		.epoch = c->epoch,
	};

	ag_path_set(&cm.path, &e->path);
	cm.path.at = (uint8_t)(to == 1 ? c->at + 1 : e->path.hops - c->at + 1);
	w_ctl_init(&cm, type, sizeof(cm));
	ag_ctl_send(e->link, &cm);
}

static void pass_on(struct ag_circuit *c, unsigned int from, const struct w_cm *cm)
{
	struct w_cm m = *cm;

	m.path.at++;
	ag_ctl_send(c->end[1 - from].link, &m);
}

static void limit_payload(struct ag_circuit *c, uint32_t most)
{
	if (most < c->payload_most)
		c->payload_most = most;
}

/* The request names the largest payload buffer that everybody before has room for. */
static void pass_request(struct ag_circuit *c, const struct w_cm *cm)
{
	struct w_cm m = *cm;
	unsigned int i;

	if (w_payload_ok(cm->geometry.payload_bytes))
		limit_payload(c, cm->geometry.payload_bytes);
	for (i = 0; i < 2; i++)
		limit_payload(c, ag_payload_of_path(c->end[i].link, cm->path.hops));
	for (i = 0; i < 2; i++)
		ag_window_reserve(c->end[i].link, c->payload_most, &c->end[i].reservation);
	m.geometry.payload_bytes = c->payload_most;
	pass_on(c, 0, &m);
}

static void drop(struct ag_link *l, const struct w_cm *cm)
{
	l->agent->relay_dropped++;
	u_debug("ag", "port %s: record %u from host %u to host %u dropped: no circuit expects it",
		l->port->limits.name, cm->hdr.type, cm->src_host, cm->dst_host);
}

static void on_request(struct ag_link *l, const struct w_cm *cm)
{
	struct ag_link *out = &l->agent->links[cm->path.port[cm->path.at]];
	struct ag_circuit *c;
	unsigned int from;

	bool resumes = cm->hdr.type == W_CM_RESUME;

	/* By several names of one connection an end could be called off behind its circuit's back. */
	if (cm->src_conn == 0 || (cm->epoch != 0) != resumes || (cm->dst_conn != 0) != resumes) {
		drop(l, cm);
		return;
	}
	if (find(l, cm, cm->epoch, &from) != NULL)
		return;
	if (!ag_link_usable(out)) {
		ag_cm_refuse(l, cm, W_NOT_REACHABLE);
		return;
	}
	c = ag_ctl_full(out) ? NULL : circuit_new(l, out, cm);
	if (c == NULL) {
		l->agent->relay_refused++;
		ag_cm_refuse(l, cm, W_NO_RESOURCE);
		return;
	}
	if (resumes)
		pass_on(c, 0, cm);
	else
		pass_request(c, cm);
}

static int on_accept(struct ag_circuit *c, const struct w_cm *cm, bool last_chance)
{
	struct w_cm m = *cm;
	int rc;

	c->end[1].conn = cm->src_conn;
	c->end[1].consumed = cm->consumed;
	rc = stand_between(c, 1, &m.geometry, last_chance);
	if (rc == -EAGAIN)
		return rc;
	if (rc != 0) {
		tell_end(c, 0, W_CM_REFUSE, ag_cm_status(rc));
		tell_end(c, 1, W_CM_CANCEL, ag_cm_status(rc));
		circuit_free(c);
		return 0;
	}
	c->state = CIRCUIT_ACCEPTED;
	pass_on(c, 1, &m);
	return 0;
}

/* End `i` stores no more; what it stored is on its way before anybody hears of that. */
static void half_close(struct ag_circuit *c, unsigned int i)
{
	if (c->rl != NULL)
		rl_drain(c->rl, i);
	stop_carrying(c);
	slice_free(&c->end[i]);
	c->state = CIRCUIT_HALF_CLOSED;
	c->closed = i;
}

static int on_confirm(struct ag_circuit *c, const struct w_cm *cm, bool last_chance)
{
	struct w_cm m = *cm;
	int rc = stand_between(c, 0, &m.geometry, last_chance);

	if (rc == -EAGAIN)
		return rc;
	if (rc == 0)
		rc = carry(c);
	if (rc != 0) {
		/* End 0 may store already, and until it closes. */
		half_close(c, 1);
		tell_end(c, 0, W_CM_CLOSE, W_LOST_LINK);
		tell_end(c, 1, W_CM_CANCEL, ag_cm_status(rc));
		return 0;
	}
	c->state = CIRCUIT_CARRIED;
	pass_on(c, 0, &m);
	return 0;
}

static void on_close(struct ag_circuit *c, unsigned int from, const struct w_cm *cm)
{
	bool last = c->state == CIRCUIT_HALF_CLOSED && c->closed == 1 - from;

	if (c->state == CIRCUIT_HALF_CLOSED && c->closed == from)
		return;
	if (!last)
		half_close(c, from);
	pass_on(c, from, cm);
	if (last)
		circuit_free(c);
}

/* A process speaks to its peer; memory of this or that host cannot be named further than a link. */
static void on_tell(struct ag_circuit *c, unsigned int from, const struct w_cm_tell *t)
{
	struct ag_link *out = c->end[1 - from].link;
	struct w_cm_tell m = *t;

	if (c->state != CIRCUIT_CARRIED || ag_ctl_full(out))
		return;
	m.slice_id = 0;
	m.path.at++;
	ag_ctl_send(out, &m);
}

/*
 * A circuit ends only with a record that also ends the connection at the end that gets it, whatever
 * that has sent meanwhile: a REFUSE of who was asked, a cancellation of who asked.
 */
static bool may_be_called_off(const struct ag_circuit *c, unsigned int from, uint16_t type)
{
	bool asked = c->state == CIRCUIT_ASKED;

	if (type == W_CM_REFUSE)
		return from == 1 && (asked || c->state == CIRCUIT_ACCEPTED);
	if (from != 0 || (type == W_CM_PEER_CANCEL ? !c->peer : c->peer && asked))
		return false;
	return asked || c->state == CIRCUIT_ACCEPTED ||
	       (c->state == CIRCUIT_HALF_CLOSED && c->closed == 1);
}

static int circuit_record(struct ag_circuit *c, unsigned int from, struct ag_link *l,
			  const struct w_cm *cm, bool last_chance)
{
	switch (cm->hdr.type) {
	case W_CM_ACCEPT:
		if (from == 1 && c->state == CIRCUIT_ASKED && cm->src_conn != 0)
			return on_accept(c, cm, last_chance);
		break;
	case W_CM_CONFIRM:
		if (from == 0 && c->state == CIRCUIT_ACCEPTED)
			return on_confirm(c, cm, last_chance);
		break;
	case W_CM_REFUSE:
	case W_CM_CANCEL:
	case W_CM_PEER_CANCEL:
		if (!may_be_called_off(c, from, cm->hdr.type))
			break;
		pass_on(c, from, cm);
		circuit_free(c);
		return 0;
	case W_CM_CLOSE:
		/* Before the acceptance there is nothing that could be closed. */
		if (c->state == CIRCUIT_ASKED)
			break;
		on_close(c, from, cm);
		return 0;
	}
	drop(l, cm);
	return 0;
}

/* It is asked again, so what there is no room for is left out. */
static void pass_query(struct ag_link *l, const struct w_cm *cm)
{
	struct ag_link *out = &l->agent->links[cm->path.port[cm->path.at]];
	struct w_cm m = *cm;

	if (!ag_link_usable(out) || ag_ctl_busy(out))
		return;
	m.path.at++;
	ag_ctl_send(out, &m);
}

/* find() reads a W_CM_TELL as any record. */
static_assert(offsetof(struct w_cm, src_conn) == offsetof(struct w_cm_tell, src_conn), "w_cm_tell");
static_assert(offsetof(struct w_cm, dst_conn) == offsetof(struct w_cm_tell, dst_conn), "w_cm_tell");

int ag_relay_record(struct ag_link *l, const void *msg, bool last_chance)
{
	const struct w_cm *cm = msg;
	const struct w_cm_tell *tell = cm->hdr.type == W_CM_TELL ? msg : NULL;
	struct ag_circuit *c;
	unsigned int from;

	if (cm->hdr.type == W_CM_REQ || cm->hdr.type == W_CM_PEER || cm->hdr.type == W_CM_RESUME) {
		on_request(l, cm);
		return 0;
	}
	if (cm->hdr.type == W_CM_QUERY || cm->hdr.type == W_CM_UNKNOWN) {
		pass_query(l, cm);
		return 0;
	}
	c = find(l, cm, tell != NULL ? tell->epoch : cm->epoch, &from);
	if (c == NULL) {
		drop(l, cm);
		return 0;
	}
	if (tell == NULL)
		return circuit_record(c, from, l, cm, last_chance);
	on_tell(c, from, tell);
	return 0;
}

/* ---- losing a node ---------------------------------------------------------------------------------- */

/* The link to end `i` is down. */
static void lose_end(struct ag_circuit *c, unsigned int i)
{
	switch (c->state) {
	case CIRCUIT_ASKED:
		if (i == 1)
			tell_end(c, 0, W_CM_REFUSE, W_NOT_REACHABLE);
		else
			tell_end(c, 1, c->peer ? W_CM_PEER_CANCEL : W_CM_CANCEL, W_NOT_REACHABLE);
		circuit_free(c);
		break;
	case CIRCUIT_ACCEPTED:
		if (i == 0) {
			tell_end(c, 1, W_CM_CANCEL, W_NOT_REACHABLE);
			circuit_free(c);
			break;
		}
		/* fall through */
	case CIRCUIT_CARRIED:
		half_close(c, i);
		tell_end(c, 1 - i, W_CM_CLOSE, W_LOST_LINK);
		break;
	case CIRCUIT_HALF_CLOSED:
		if (c->closed != 1 - i) {
			c->closed = i;
			break;
		}
		/* It waits for an answer that does not come any more. */
		tell_end(c, 1 - i, W_CM_CLOSE, W_LOST_LINK);
		circuit_free(c);
		break;
	}
}

void ag_relay_link_down(struct ag_link *l)
{
	struct ag_list *pos, *tmp;
	struct circuit_end *e;
	unsigned int i;

	for (i = 0; i < 2; i++) {
		ag_list_each(pos, tmp, &l->circuits[i])
		{
			e = ag_list_entry(pos, struct circuit_end, in_link);
			lose_end(u_container_of(e, struct ag_circuit, end[i]), i);
		}
	}
}

/* A node broke the rules: neither end can be served. */
static void circuit_break(struct ag_circuit *c)
{
	u_log_ratelimited(&c->agent->ratelimit[AG_RATELIMIT_CIRCUIT],
			  "a connection between hosts %u and %u is cut: a node broke the protocol",
			  c->end[0].host, c->end[1].host);
	stop_carrying(c);
	c->state = CIRCUIT_HALF_CLOSED;
	/* Not the link: over another path it would do the same. */
	tell_end(c, 0, W_CM_CLOSE, W_LOST_PROCESS);
	tell_end(c, 1, W_CM_CLOSE, W_LOST_PROCESS);
}

void ag_relay_settle(struct ag_agent *a)
{
	struct ag_circuit *c;

	if (a->relay == NULL || !atomic_exchange(&a->relay_broken, false))
		return;
	while ((c = rl_broken(a->relay)) != NULL)
		circuit_break(c);
}

/* ---- making and ending ------------------------------------------------------------------------------ */

static void notify(void *arg)
{
	struct ag_agent *a = arg;

	atomic_store(&a->relay_broken, true);
	ag_wake(a);
}

/* A quarter of the processors carries for others. */
static unsigned int threads_by_default(void)
{
	cpu_set_t set;
	int n = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) / 4 : 1;

	return n < 1 ? 1 : n > (int)RL_THREADS_MAX ? RL_THREADS_MAX : (unsigned int)n;
}

/* Only a host with two links has something to relay. */
static bool can_relay(const struct ag_agent *a)
{
	return rt_topo_ports(a->topo, a->cfg.host_id) > 2;
}

/* What was asked for fits, see ag_relay_check(); the default gives way to the doorbell bits. */
static unsigned int threads_of(const struct ag_agent *a)
{
	unsigned int n = threads_by_default(), most = a->cfg.db_bits - AG_DB_BITS_RESERVED;

	if (a->cfg.relay_threads != 0)
		return a->cfg.relay_threads;
	return n < most ? n : most;
}

int ag_relay_check(const struct ag_cfg *cfg)
{
	unsigned int bits = cfg->db_bits != 0 ? cfg->db_bits : AG_DB_BITS;

	if (cfg->relay_threads > AG_RELAY_THREADS_MAX ||
	    cfg->relay_threads > bits - AG_DB_BITS_RESERVED) {
		u_error("ag",
			"%u transfer threads: at most %u, and one for each of %u doorbell bits "
			"but %u",
			cfg->relay_threads, AG_RELAY_THREADS_MAX, bits, AG_DB_BITS_RESERVED);
		return -EINVAL;
	}
	if (cfg->relay_cpu_count > AG_RELAY_CPUS_MAX || cfg->relay_wait > RL_BLOCK) {
		u_error("ag",
			"%u processors for transfer threads, or a way to wait of %u: at most "
			"%u and %u",
			cfg->relay_cpu_count, cfg->relay_wait, AG_RELAY_CPUS_MAX, RL_BLOCK);
		return -EINVAL;
	}
	return 0;
}

int ag_relay_init(struct ag_agent *a)
{
	struct port *ports[PORT_PER_HOST];
	struct rl_cfg cfg = {
		.wait = (enum rl_wait)a->cfg.relay_wait,
		.cpus = a->cfg.relay_cpus,
		.cpu_count = a->cfg.relay_cpu_count,
		.first_db_bit = AG_DB_BIT + 1,
		.irq = a->irq,
		.ports = ports,
		.port_count = a->link_count - 1,
		.notify = notify,
		.notify_arg = a,
	};
	uint32_t i;

	if (a->relay_threads == 0)
		return 0;
	cfg.threads = a->relay_threads;
	for (i = 1; i < a->link_count; i++)
		ports[i - 1] = a->links[i].port;
	return rl_open(&cfg, &a->relay);
}

void ag_relay_free(struct ag_agent *a)
{
	rl_close(a->relay);
	a->relay = NULL;
}

void ag_relay_choose(struct ag_agent *a)
{
	a->relay_threads = can_relay(a) && a->cfg.db_bits > AG_DB_BITS_RESERVED ? threads_of(a) : 0;
}

uint32_t ag_relay_db_bits_end(const struct ag_agent *a)
{
	return AG_DB_BIT + 1 + a->relay_threads;
}
