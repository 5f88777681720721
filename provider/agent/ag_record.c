/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records of other agents (and of this one, for connections within the host): they are taken from
 * the control slice, their paths are checked, and they are passed to the unit that they concern.
 *
 * Each was checked by w_ctl_check().  A record that names an end which does not exist, or does not
 * fit its state, is ignored: an end of a connection can vanish at any time.
 */
#include "ag_record.h"

#include <errno.h>

#include "ag_attempt.h"
#include "ag_ctl.h"
#include "ag_link.h"
#include "ag_list.h"
#include "ag_mem.h"
#include "ag_msg.h"
#include "ag_peer.h"
#include "ag_ratelimit.h"
#include "ag_relay.h"
#include "ag_remote.h"
#include "ag_resume.h"
#include "ag_resume_ask.h"
#include "ag_route.h"
#include "ag_state.h"
#include "u_log.h"
#include "u_time.h"
#include "w_cm.h"
#include "w_ctl.h"

/* A slice arrives within HOLD_NS after the record that names it; checked every HOLD_POLL_NS. */
#define HOLD_NS (2000 * INT64_C(1000000))
#define HOLD_POLL_NS (5 * INT64_C(1000000))

/*
 * Answers a heartbeat with status 1 by one with status 0, which has no answer. ag_ctl_consumed() notes, for
 * every record, that the neighbour is not silent.
 */
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
 * Can a record with that path come over this link, for its destination?  Without a path (NULL) it has to be
 * from the neighbour to this host; a heartbeat must have one hop.
 */
static bool is_sane(struct ag_link *l, const struct w_cm *cm, const struct w_path *path)
{
	bool neighbours = cm->hdr.type == W_CM_HEARTBEAT;

	if (path == NULL)
		return cm->src_host == l->peer_host && cm->dst_host == l->agent->cfg.host_id;
	return ag_route_ok(l, cm->src_host, cm->dst_host, path) && (!neighbours || path->hops == 1);
}

/* Returns the path of a record.  NULL: it is a record between neighbours, which has none. */
static const struct w_path *path_of(const void *msg)
{
	const struct w_cm *cm = msg;

	if (cm->hdr.type == W_CM_LINKS)
		return NULL;
	return cm->hdr.type == W_CM_TELL ? &((const struct w_cm_tell *)msg)->path : &cm->path;
}

/*
 * Handles one checked record, or passes it on to the next host; one that cannot have come by its path is
 * counted and dropped.  0; or -EAGAIN: it cannot be handled before a slice that it names has arrived; not with
 * `last_chance`.
 */
static int dispatch(struct ag_link *l, const void *msg, bool last_chance)
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
		ag_remote_request(l, cm);
		break;
	case W_CM_REFUSE:
		ag_remote_refuse(l, cm);
		break;
	case W_CM_ACCEPT:
		return ag_remote_accept(l, cm, last_chance);
	case W_CM_CONFIRM:
		return ag_remote_confirm(l, cm, last_chance);
	case W_CM_CANCEL:
		ag_remote_cancel(l, cm);
		break;
	case W_CM_CLOSE:
		ag_remote_close(l, cm);
		break;
	case W_CM_PEER:
		ag_peer_offered(l, cm);
		break;
	case W_CM_PEER_CANCEL:
		ag_peer_withdrawn(l, cm);
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

/* ---- the control slice ---- */

/*
 * Handles the next record.  False: there is none, or it names a slice that has not arrived; then it stays the
 * next one, for HOLD_NS at most.
 */
static bool handle_next(struct ag_link *l, int64_t now)
{
	_Alignas(8) uint8_t copy[AG_CTL_MSG_MAX];
	int rc;

	if (!ag_ctl_next(l, copy))
		return false;
	rc = dispatch(l, copy, l->hold_until != 0 && now >= l->hold_until);
	if (rc == -EAGAIN && l->hold_until == 0)
		l->hold_until = now + HOLD_NS;
	else if (rc != -EAGAIN)
		l->hold_until = 0;
	if (rc == -EAGAIN)
		return false;
	ag_ctl_consumed(l, now);
	return true;
}

void ag_record_receive(struct ag_link *l)
{
	int64_t now = u_now_ns();
	uint32_t n;

	if (l->state != AG_LINK_UP)
		return;
	for (n = 0; n < AG_CTL_BATCH && l->broken == NULL; n++) {
		if (!handle_next(l, now))
			break;
	}
	ag_ctl_return_credit(l);
}

void ag_record_drain_self(struct ag_agent *a)
{
	struct ag_link *self = &a->links[0];
	struct ag_msg *m;

	while (!ag_list_empty(&self->queue)) {
		m = ag_ctl_pop(self);
		dispatch(self, m->bytes, true);
		ag_msg_free(m);
	}
}

void ag_record_pump(struct ag_link *l)
{
	if (!ag_ctl_take_credit(l))
		return;
	do {
		ag_ctl_write(l);
	} while (ag_attempt_unhold(l));
	ag_ctl_ring(l);
}

int64_t ag_record_timers(struct ag_link *l, int64_t now)
{
	int64_t next, due;

	if (ag_ctl_silent(l, now))
		ag_record_receive(l);
	next = ag_ctl_beat_timer(l, now);
	if (l->hold_until != 0) {
		ag_record_receive(l);
		next = now + HOLD_POLL_NS;
	}
	ag_record_pump(l);
	due = ag_ctl_queue_timer(l, now);
	return due < next ? due : next;
}
