/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Relaying, as the agent sees it: records of other hosts, and the circuits that they make.
 *
 * A circuit begins with the request that passes through this host, and ends with the refusal, the
 * cancellation or the second CLOSE.  In between, ACCEPT and CONFIRM each name a slice of their
 * sender; the agent maps it, and names a bypass buffer of its own to the next host instead.  When
 * both have passed, transfer threads carry the packets (rl_relay.h).
 *
 *	REQ, PEER, RESUME ->  asked    <- ACCEPT   accepted   CONFIRM ->  carried
 *	carried  CLOSE of one end  ->  half closed  CLOSE of the other  ->  -
 *
 * A CLOSE says that its sender stores no more, so slots from before it are forwarded first.  When a
 * link goes down, the end of the circuit that can still be reached gets a CLOSE in the name of the
 * other. Records that belong to no circuit are dropped, so that a relay carries only circuits that
 * were asked for.  The exceptions are a QUERY and its answer, which pass where little is queued and
 * leave no state.
 */
#include "ag_relay.h"

#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ag_circuit.h"
#include "ag_cm.h"
#include "ag_conn.h"
#include "ag_ctl.h"
#include "ag_link.h"
#include "ag_list.h"
#include "ag_ratelimit.h"
#include "ag_route.h"
#include "ag_state.h"
#include "rl_relay.h"
#include "u_base.h"
#include "u_log.h"
#include "w_cm.h"
#include "w_ctl.h"
#include "w_slot.h"

/* Sends a record to end `to` in the name of the other end. */
static void tell_end(struct ag_circuit *c, unsigned int to, enum w_ctl_type type, uint32_t status)
{
	struct ag_circuit_end *e = &c->end[to], *other = &c->end[1 - to];
	struct w_cm cm = {
		.src_host = other->host,
		.dst_host = e->host,
		.status = status,
		.src_conn = other->conn,
		.dst_conn = e->conn,
		.epoch = c->epoch,
	};

	ag_route_set_path(&cm.path, &e->path);
	cm.path.at = (uint8_t)(to == 1 ? c->at + 1 : e->path.hops - c->at + 1);
	w_ctl_init(&cm, type, sizeof(cm));
	ag_ctl_send(e->link, &cm);
}

/* Sends a record that came from one end of the circuit to the other end, as at its next hop. */
static void pass_on(struct ag_circuit *c, unsigned int from, const struct w_cm *cm)
{
	struct w_cm m = *cm;

	m.path.at++;
	ag_ctl_send(c->end[1 - from].link, &m);
}

/*
 * Limits the geometry of a circuit over `hops` links to that for which the link has room.  The slots are the ends'
 * choice unless the window is small.
 */
static void limit_to_room(struct ag_circuit *c, const struct ag_link *l, unsigned int hops)
{
	struct w_geometry room;

	ag_link_geometry(l, hops, &room);
	if (!ag_link_is_small(l))
		room.slots = 0;
	ag_conn_limit_geometry(&c->most, &room);
}

/*
 * Passes a request on to end 1, reserving room for the slices.  It names the largest geometry for which the hosts so
 * far have room.
 */
static void pass_request(struct ag_circuit *c, const struct w_cm *cm)
{
	struct w_cm m = *cm;
	unsigned int i;

	ag_conn_limit_geometry(&c->most, &cm->geometry);
	for (i = 0; i < 2; i++)
		limit_to_room(c, c->end[i].link, cm->path.hops);
	for (i = 0; i < 2; i++)
		ag_link_reserve(c->end[i].link, &c->most, &c->end[i].reservation);
	m.geometry.slots = c->most.slots;
	m.geometry.payload_bytes = c->most.payload_bytes;
	pass_on(c, 0, &m);
}

/* Counts a record that is not passed on.  Its sender is told nothing. */
static void drop(struct ag_link *l, const struct w_cm *cm)
{
	l->agent->relay_dropped++;
	u_debug("ag", "port %s: record %u from host %u to host %u dropped: no circuit expects it",
		l->port->limits.name, cm->hdr.type, cm->src_host, cm->dst_host);
}

/*
 * Makes a circuit of a request and passes it on; or answers REFUSE, or drops one that is malformed.  One that
 * has come before is ignored.
 */
static void on_request(struct ag_link *l, const struct w_cm *cm)
{
	struct ag_link *out = &l->agent->links[cm->path.port[cm->path.at]];
	struct ag_circuit *c;
	unsigned int from;

	bool resumes = cm->hdr.type == W_CM_RESUME;

	/* If a connection had several ids, one end could end it without ending its circuit. */
	if (cm->src_conn == 0 || (cm->epoch != 0) != resumes || (cm->dst_conn != 0) != resumes) {
		drop(l, cm);
		return;
	}
	if (ag_circuit_find(l, cm, cm->epoch, &from) != NULL)
		return;
	if (!ag_link_usable(out)) {
		ag_cm_refuse(l, cm, W_NOT_REACHABLE);
		return;
	}
	c = ag_ctl_full(out) ? NULL : ag_circuit_new(l, out, cm);
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

/*
 * Names a bypass buffer in the ACCEPT and passes it on; if that fails, both ends are told and the circuit is
 * freed.  0, or -EAGAIN: the slice has not arrived.
 */
static int on_accept(struct ag_circuit *c, const struct w_cm *cm, bool last_chance)
{
	struct w_cm m = *cm;
	int rc;

	c->end[1].conn = cm->src_conn;
	c->end[1].consumed = cm->consumed;
	rc = ag_circuit_stand_between(c, 1, &m.geometry, last_chance);
	if (rc == -EAGAIN)
		return rc;
	if (rc != 0) {
		tell_end(c, 0, W_CM_REFUSE, ag_cm_status(rc));
		tell_end(c, 1, W_CM_CANCEL, ag_cm_status(rc));
		ag_circuit_free(c);
		return 0;
	}
	c->state = AG_CIRCUIT_ACCEPTED;
	pass_on(c, 1, &m);
	return 0;
}

/* End `i` stores no more: forwards all that it stored, before any other host is told, then carries nothing more. */
static void half_close(struct ag_circuit *c, unsigned int i)
{
	if (c->rl != NULL)
		rl_drain(c->rl, i);
	ag_circuit_stop(c);
	ag_circuit_free_slice(&c->end[i]);
	c->state = AG_CIRCUIT_HALF_CLOSED;
	c->closed = i;
}

/*
 * Names a bypass buffer in the CONFIRM, hands the circuit to its transfer thread and passes the CONFIRM on; if
 * that fails, both ends are told, and end 1 counts as closed.  0, or -EAGAIN: the slice has not arrived.
 */
static int on_confirm(struct ag_circuit *c, const struct w_cm *cm, bool last_chance)
{
	struct w_cm m = *cm;
	int rc = ag_circuit_stand_between(c, 0, &m.geometry, last_chance);

	if (rc == -EAGAIN)
		return rc;
	if (rc == 0)
		rc = ag_circuit_carry(c);
	if (rc != 0) {
		/* End 0 may store already, until it has closed. */
		half_close(c, 1);
		tell_end(c, 0, W_CM_CLOSE, W_LOST_LINK);
		tell_end(c, 1, W_CM_CANCEL, ag_cm_status(rc));
		return 0;
	}
	c->state = AG_CIRCUIT_CARRIED;
	pass_on(c, 0, &m);
	return 0;
}

/*
 * Passes a CLOSE on, the first of the two after what its end stored; the second frees the circuit.  A repeated
 * one is ignored.
 */
static void on_close(struct ag_circuit *c, unsigned int from, const struct w_cm *cm)
{
	bool last = c->state == AG_CIRCUIT_HALF_CLOSED && c->closed == 1 - from;

	if (c->state == AG_CIRCUIT_HALF_CLOSED && c->closed == from)
		return;
	if (!last)
		half_close(c, from);
	pass_on(c, from, cm);
	if (last)
		ag_circuit_free(c);
}

/*
 * Passes on a message of one process to its peer, or drops it if the circuit is not carried yet or much is
 * queued.  Memory is shared between neighbours only, so the slice is left out.
 */
static void on_tell(struct ag_circuit *c, unsigned int from, const struct w_cm_tell *t)
{
	struct ag_link *out = c->end[1 - from].link;
	struct w_cm_tell m = *t;

	if (c->state != AG_CIRCUIT_CARRIED || ag_ctl_full(out))
		return;
	m.slice_id = 0;
	m.path.at++;
	ag_ctl_send(out, &m);
}

/*
 * May a REFUSE, CANCEL or PEER_CANCEL of end `from` end the circuit now?  It ends only with a record that also
 * ends the connection at the end that receives it, whatever that end may have sent before it arrives: a REFUSE
 * from the end that was asked, a cancellation from the other.
 */
static bool may_be_called_off(const struct ag_circuit *c, unsigned int from, uint16_t type)
{
	bool asked = c->state == AG_CIRCUIT_ASKED;

	if (type == W_CM_REFUSE)
		return from == 1 && (asked || c->state == AG_CIRCUIT_ACCEPTED);
	if (from != 0 || (type == W_CM_PEER_CANCEL ? !c->peer : c->peer && asked))
		return false;
	return asked || c->state == AG_CIRCUIT_ACCEPTED ||
	       (c->state == AG_CIRCUIT_HALF_CLOSED && c->closed == 1);
}

/*
 * Handles a record of a circuit: passes it on if the state allows it, which may free the circuit, else drops
 * it.  0, or -EAGAIN: a slice that it names has not arrived, and this is not the last chance.
 */
static int circuit_record(struct ag_circuit *c, unsigned int from, struct ag_link *l,
			  const struct w_cm *cm, bool last_chance)
{
	switch (cm->hdr.type) {
	case W_CM_ACCEPT:
		if (from == 1 && c->state == AG_CIRCUIT_ASKED && cm->src_conn != 0)
			return on_accept(c, cm, last_chance);
		break;
	case W_CM_CONFIRM:
		if (from == 0 && c->state == AG_CIRCUIT_ACCEPTED)
			return on_confirm(c, cm, last_chance);
		break;
	case W_CM_REFUSE:
	case W_CM_CANCEL:
	case W_CM_PEER_CANCEL:
		if (!may_be_called_off(c, from, cm->hdr.type))
			break;
		pass_on(c, from, cm);
		ag_circuit_free(c);
		return 0;
	case W_CM_CLOSE:
		/* Before the ACCEPT there is nothing that could be closed. */
		if (c->state == AG_CIRCUIT_ASKED)
			break;
		on_close(c, from, cm);
		return 0;
	}
	drop(l, cm);
	return 0;
}

/*
 * Passes on a QUERY, or the UNKNOWN that answers it.  A QUERY is repeated, so either may be dropped where there
 * is no room or the link is down.
 */
static void pass_query(struct ag_link *l, const struct w_cm *cm)
{
	struct ag_link *out = &l->agent->links[cm->path.port[cm->path.at]];
	struct w_cm m = *cm;

	if (!ag_link_usable(out) || ag_ctl_busy(out))
		return;
	m.path.at++;
	ag_ctl_send(out, &m);
}

/* ag_circuit_find() reads a W_CM_TELL as it reads other records. */
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
	c = ag_circuit_find(l, cm, tell != NULL ? tell->epoch : cm->epoch, &from);
	if (c == NULL) {
		drop(l, cm);
		return 0;
	}
	if (tell == NULL)
		return circuit_record(c, from, l, cm, last_chance);
	on_tell(c, from, tell);
	return 0;
}

/* ---- losing a node ---- */

/*
 * The link to end `i` is down: tells the other end, and frees the circuit unless a record of that end has to
 * end it.
 */
static void lose_end(struct ag_circuit *c, unsigned int i)
{
	switch (c->state) {
	case AG_CIRCUIT_ASKED:
		if (i == 1)
			tell_end(c, 0, W_CM_REFUSE, W_NOT_REACHABLE);
		else
			tell_end(c, 1, c->peer ? W_CM_PEER_CANCEL : W_CM_CANCEL, W_NOT_REACHABLE);
		ag_circuit_free(c);
		break;
	case AG_CIRCUIT_ACCEPTED:
		if (i == 0) {
			tell_end(c, 1, W_CM_CANCEL, W_NOT_REACHABLE);
			ag_circuit_free(c);
			break;
		}
		/* fall through */
	case AG_CIRCUIT_CARRIED:
		half_close(c, i);
		tell_end(c, 1 - i, W_CM_CLOSE, W_LOST_LINK);
		break;
	case AG_CIRCUIT_HALF_CLOSED:
		if (c->closed != 1 - i) {
			c->closed = i;
			break;
		}
		/* The answer for which it waits cannot come any more. */
		tell_end(c, 1 - i, W_CM_CLOSE, W_LOST_LINK);
		ag_circuit_free(c);
		break;
	}
}

void ag_relay_link_down(struct ag_link *l)
{
	struct ag_list *pos, *tmp;
	struct ag_circuit_end *e;
	unsigned int i;

	for (i = 0; i < 2; i++) {
		ag_list_each(pos, tmp, &l->circuits[i])
		{
			e = ag_list_entry(pos, struct ag_circuit_end, in_link);
			lose_end(u_container_of(e, struct ag_circuit, end[i]), i);
		}
	}
}

/* A node broke the protocol: stops the circuit and sends CLOSE to both ends.  It stays until an end has answered. */
static void circuit_break(struct ag_circuit *c)
{
	u_log_ratelimited(&c->agent->ratelimit[AG_RATELIMIT_CIRCUIT],
			  "a connection between hosts %u and %u is cut: a node broke the protocol",
			  c->end[0].host, c->end[1].host);
	ag_circuit_stop(c);
	c->state = AG_CIRCUIT_HALF_CLOSED;
	/* Not W_LOST_LINK: over another path the node would break it again. */
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
