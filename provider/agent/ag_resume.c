/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections that outlive their path; the exchange is drawn in w_ctl.h.
 *
 * A reliable connection is resumable if each link of its path is one that others can stand in for.
 * When the path is lost, each end has its process suspend it, tells the old path that it is left
 * (CLOSE), and waits beside the links (it is *parked* on self).  The first end looks for a path and
 * asks; when that fails it tries again every AG_ASK_NS and when links change, until AG_RESUME_NS
 * have passed without a path: what links are up may have been heard before the refusal.  A
 * connection whose path has become longer than it need be is taken through the same.
 *
 * A first end that is closed when its path is lost, or that finds none in time, says so with a
 * RESUME that has a reason, its *final message*: the other end waits for it to ask.
 *
 * The other end asks meanwhile whether the first is known there (QUERY).  It is not if its agent was
 * started anew, and then it is not waited for.
 *
 * The epoch counts paths, so what an old one still delivers is told from what belongs to the new.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ag_priv.h"
#include "u_log.h"
#include "u_time.h"

/*
 * The inbound slice of a path that was left: the other end may store there until it has left too.
 * Its CLOSE says so; where that gets lost with a relay, time does.
 */
struct ag_retired {
	struct ag_list node; /* of agent->retired */
	struct ag_link *link;
	struct port_slice slice;
	uint64_t conn, peer_conn;
	uint16_t peer_host;
	uint32_t epoch;
	int64_t until;
};

bool ag_resume_can(const struct ag_conn *conn)
{
	struct ag_agent *a = conn->link->agent;
	struct rt_end at;
	uint8_t hop;

	if (conn->path.hops == 0 || conn->attrs.reliability == W_LEVEL_UNRELIABLE)
		return false;
	for (hop = 0; hop < conn->path.hops; hop++) {
		if (rt_path_walk(a->topo, a->cfg.host_id, &conn->path, hop, &at) != 0 ||
		    (a->bridges[at.host] & 1u << conn->path.port[hop]) != 0)
			return false;
	}
	return true;
}

/* ---- slices that were left ------------------------------------------------------------------------ */

static void retired_free(struct ag_retired *r)
{
	r->link->window_used -= r->slice.len;
	port_slice_free(r->link->port, r->slice.id);
	ag_list_remove(&r->node);
	free(r);
}

static void retire_slice(struct ag_conn *conn)
{
	struct ag_agent *a = conn->link->agent;
	bool in_use = conn->has_slice && !conn->path_closed && ag_link_usable(conn->link);
	struct ag_retired *r = in_use ? malloc(sizeof(*r)) : NULL;

	if (r == NULL) {
		ag_conn_slice_free(conn);
		return;
	}
	*r = (struct ag_retired){ .link = conn->link,
				  .slice = conn->slice,
				  .conn = conn->id,
				  .peer_conn = conn->peer_conn,
				  .peer_host = conn->peer_host,
				  .epoch = conn->epoch,
				  .until = u_now_ns() + AG_SILENCE_NS };
	ag_list_append(&a->retired, &r->node);
	if (conn->slice.fd >= 0)
		close(conn->slice.fd);
	conn->slice.fd = -1;
	conn->has_slice = false;
}

/* Who asks for one path after another, and leaves none, is not given all of a window. */
#define RETIRED_MAX 16u

static bool has_room_to_retire(const struct ag_conn *conn)
{
	struct ag_list *pos, *tmp;
	unsigned int n = 0;

	ag_list_each(pos, tmp, &conn->link->agent->retired)
	{
		n += ag_list_entry(pos, struct ag_retired, node)->conn == conn->id;
	}
	return n < RETIRED_MAX;
}

static void retired_due(struct ag_agent *a, int64_t now)
{
	struct ag_list *pos, *tmp;
	struct ag_retired *r;

	ag_list_each(pos, tmp, &a->retired)
	{
		r = ag_list_entry(pos, struct ag_retired, node);
		if (r->until <= now)
			retired_free(r);
	}
}

void ag_resume_left(struct ag_link *l, const struct w_cm *cm)
{
	struct ag_list *pos, *tmp;
	struct ag_retired *r;

	ag_list_each(pos, tmp, &l->agent->retired)
	{
		r = ag_list_entry(pos, struct ag_retired, node);
		if (r->link == l &&
		    (cm == NULL || (r->conn == cm->dst_conn && r->peer_host == cm->src_host &&
				    r->peer_conn == cm->src_conn && r->epoch == cm->epoch)))
			retired_free(r);
	}
}

/* ---- the first end asks --------------------------------------------------------------------------- */

static void drop_pending_resume(struct ag_conn *conn)
{
	free(conn->pending_resume);
	conn->pending_resume = NULL;
}

static void set_resume(struct ag_conn *conn, enum ag_resume resume)
{
	struct ag_agent *a = conn->link->agent;

	ag_list_remove(&conn->in_resuming);
	if (resume != AG_ON_PATH)
		ag_list_append(&a->resuming, &conn->in_resuming);
	conn->resume = resume;
	if (resume == AG_SUSPENDED && !conn->first)
		conn->ask_at = u_now_ns() + AG_ASK_NS;
}

static void begin_timers(struct ag_conn *conn)
{
	conn->full_port = 0;
	conn->resume_from = u_now_ns();
	conn->resume_until = conn->resume_from + AG_RESUME_NS;
}

void ag_resume_forget(struct ag_conn *conn)
{
	/* Whoever asked waits for an answer, and so do the relays. */
	if (conn->pending_resume != NULL)
		ag_cm_refuse(conn->pending_resume->link, &conn->pending_resume->cm, W_NO_MATCH);
	drop_pending_resume(conn);
	set_resume(conn, AG_ON_PATH);
}

static void park(struct ag_conn *conn)
{
	conn->path_closed = false;
	ag_conn_move(conn, &conn->link->agent->links[0], &conn->path);
}

/*
 * Tells the path that nothing of ours is stored there any more; the other end may store until it
 * has said so too.
 */
static void leave_path(struct ag_conn *conn, enum w_lost reason)
{
	ag_cm_send(conn, W_CM_CLOSE, reason);
	retire_slice(conn);
	park(conn);
}

/* The attempt came to nothing; what the other end named for it is not used. */
static void give_up_attempt(struct ag_conn *conn)
{
	ag_conn_slice_free(conn);
	if (ag_conn_on_path(conn))
		park(conn);
	set_resume(conn, AG_SUSPENDED);
}

/* Of a path that this end has accepted: the slice that it named may be stored into already. */
static void leave_attempt(struct ag_conn *conn)
{
	leave_path(conn, W_LOST_LINK);
	set_resume(conn, AG_SUSPENDED);
}

static bool may_ask(const struct ag_conn *conn)
{
	return conn->first && conn->resume == AG_SUSPENDED;
}

/*
 * The shortest path, but not by the link where there was no room just now, if another one leads
 * there.
 */
static bool find_path(const struct ag_conn *conn, struct rt_path *out)
{
	struct ag_agent *a = conn->link->agent;
	uint32_t flow = (uint32_t)(conn->id ^ conn->id >> 32);
	char why[160];

	if (conn->full_port != 0 &&
	    ag_route_find_other(a, conn->peer_host, flow, conn->full_port, out) == 0)
		return true;
	return ag_route_find(a, conn->peer_host, flow, out, why, sizeof(why)) == 0;
}

static void ask(struct ag_conn *conn)
{
	struct ag_agent *a = conn->link->agent;
	struct rt_path path;

	conn->ask_at = u_now_ns() + AG_ASK_NS;
	if (!find_path(conn, &path))
		return;
	ag_conn_move(conn, ag_route_link(a, &path), &path);
	conn->epoch++;
	conn->paths_changed = false;
	set_resume(conn, AG_RESUMING);
	ag_cm_send(conn, W_CM_RESUME, conn->left);
}

/* To ask, or to answer an acceptance, which it need not have lived to hear. */
static bool waits_for_first(const struct ag_conn *conn)
{
	return !conn->first && (conn->resume == AG_SUSPENDED || conn->resume == AG_RESUMING);
}

/* Does the agent of the first end know it?  Left out where much waits: this is repeated. */
static void query(struct ag_conn *conn)
{
	struct ag_agent *a = conn->link->agent;
	struct rt_path path;
	struct w_cm cm = {
		.src_host = (uint16_t)a->cfg.host_id,
		.dst_host = conn->peer_host,
		.src_conn = conn->id,
		.dst_conn = conn->peer_conn,
		.epoch = conn->epoch,
	};

	conn->ask_at = u_now_ns() + AG_ASK_NS;
	if (!find_path(conn, &path) || ag_ctl_busy(ag_route_link(a, &path)))
		return;
	ag_path_set(&cm.path, &path);
	w_ctl_init(&cm, W_CM_QUERY, sizeof(cm));
	ag_ctl_send(ag_route_link(a, &path), &cm);
}

bool ag_resume_final_message(struct ag_conn *conn)
{
	if (!conn->resumable || !conn->first)
		return false;
	if (conn->resume == AG_ON_PATH)
		begin_timers(conn);
	/* The other end waits so long, should it find a path just before it would give up. */
	conn->resume_until = conn->resume_from + AG_RESUME_SLOW_NS;
	give_up_attempt(conn);
	ask(conn);
	return true;
}

void ag_resume_retry(struct ag_agent *a)
{
	struct ag_list *pos, *tmp;
	struct ag_conn *conn;

	if (a->return_at == 0)
		a->return_at = u_now_ns() + AG_RETURN_NS;
	ag_list_each(pos, tmp, &a->resuming)
	{
		conn = ag_list_entry(pos, struct ag_conn, in_resuming);
		if (may_ask(conn))
			ask(conn);
		else
			conn->paths_changed = true;
	}
}

/* ---- suspending ----------------------------------------------------------------------------------- */

void ag_resume_begin(struct ag_conn *conn)
{
	struct w_conn m = { .conn = conn->id };

	if (conn->resume == AG_ON_PATH)
		begin_timers(conn);
	set_resume(conn, AG_SUSPENDING);
	ag_mem_conn_end(conn);
	w_ctl_init(&m, W_SUSPEND, sizeof(m));
	ag_client_send(conn->client, &m, NULL, 0);
}

static bool is_resumable(const struct ag_conn *conn)
{
	return conn->resumable && conn->state == AG_CONNECTED && conn->client != NULL &&
	       !conn->client->gone;
}

bool ag_resume_link_down(struct ag_conn *conn)
{
	if (!is_resumable(conn))
		return false;
	switch (conn->resume) {
	case AG_ON_PATH:
	case AG_RESUMED:
		ag_conn_slice_free(conn);
		park(conn);
		ag_resume_begin(conn);
		break;
	case AG_SUSPENDING:
		ag_conn_slice_free(conn);
		park(conn);
		break;
	case AG_SUSPENDED:
		break;
	case AG_RESUMING:
		give_up_attempt(conn);
		if (conn->first)
			ask(conn);
		break;
	}
	return true;
}

static void serve_pending_resume(struct ag_conn *conn);

void ag_resume_suspended(struct ag_client *c, const struct w_suspended *m)
{
	struct ag_conn *conn = ag_conn_of_client(c, m->conn);

	if (conn == NULL || conn->resume != AG_SUSPENDING)
		return;
	if (ag_conn_on_path(conn))
		leave_path(conn, W_LOST_LINK);
	conn->consumed = m->consumed;
	set_resume(conn, AG_SUSPENDED);
	if (conn->first)
		ask(conn);
	else if (conn->pending_resume != NULL)
		serve_pending_resume(conn);
}

bool ag_resume_closed(struct ag_conn *conn, const struct w_cm *cm)
{
	if (!is_resumable(conn) || cm->status != W_LOST_LINK)
		return false;
	conn->path_closed = true;
	switch (conn->resume) {
	case AG_ON_PATH:
	case AG_RESUMED:
		ag_resume_begin(conn);
		break;
	case AG_RESUMING:
		leave_attempt(conn);
		if (conn->first)
			ask(conn);
		break;
	case AG_SUSPENDING:
	case AG_SUSPENDED:
		break;
	}
	return true;
}

/*
 * No such path, or no room on it.  Others are tried when links change, which may have been said
 * before the refusal, or soon: who refused may know better, or have room, by then.
 */
bool ag_resume_refused(struct ag_conn *conn, const struct w_cm *cm)
{
	bool may_pass = cm->status == W_NOT_REACHABLE || cm->status == W_NO_RESOURCE;

	if (conn->resume != AG_RESUMING)
		return false;
	give_up_attempt(conn);
	if (cm->status == W_NO_RESOURCE)
		conn->full_port = conn->path.port[0];
	if (cm->hdr.type == W_CM_REFUSE && !may_pass)
		conn->resume_until = 0; /* the other end has given it up, or was told */
	else if (conn->first && conn->paths_changed)
		ask(conn);
	return true;
}

/* ---- the other end -------------------------------------------------------------------------------- */

static void serve_pending_resume(struct ag_conn *conn)
{
	struct ag_pending_resume pending = *conn->pending_resume;
	int rc;

	drop_pending_resume(conn);
	if (pending.cm.status != 0) {
		/* The relays wait for an answer. */
		ag_cm_refuse(pending.link, &pending.cm, W_NO_MATCH);
		ag_cm_tell_lost(conn, (enum w_lost)pending.cm.status);
		ag_conn_free(conn);
		return;
	}
	if (!ag_link_usable(pending.link))
		return;
	ag_conn_slice_free(conn);
	ag_conn_move(conn, pending.link, &pending.path);
	rc = has_room_to_retire(conn) ? ag_conn_slice_alloc(conn) : -ENOSPC;
	if (rc != 0) {
		ag_cm_refuse(pending.link, &pending.cm, ag_cm_status(rc));
		park(conn);
		return;
	}
	conn->epoch = pending.cm.epoch;
	set_resume(conn, AG_RESUMING);
	ag_cm_send(conn, W_CM_ACCEPT, 0);
}

static bool is_of(const struct ag_conn *conn, const struct w_cm *cm)
{
	return conn != NULL && conn->peer_host == cm->src_host && conn->peer_conn == cm->src_conn;
}

void ag_resume_query(struct ag_link *l, const struct w_cm *cm)
{
	if (!is_of(ag_conn_get(l->agent, cm->dst_conn), cm) && !ag_ctl_busy(l))
		ag_cm_answer(l, cm, W_CM_UNKNOWN, 0);
}

/* What is unknown once is so for ever: no name of an end is given twice. */
void ag_resume_unknown(struct ag_link *l, const struct w_cm *cm)
{
	struct ag_conn *conn = ag_conn_get(l->agent, cm->dst_conn);

	if (!is_of(conn, cm) || !waits_for_first(conn))
		return;
	conn->resume_until = 0;
	l->agent->dirty = true;
}

/* The last epoch that was asked for. */
static uint32_t last_epoch(const struct ag_conn *conn)
{
	return conn->pending_resume != NULL ? conn->pending_resume->cm.epoch : conn->epoch;
}

/*
 * The end that a RESUME is about, if it may be resumed; an earlier RESUME may come by a slower
 * path.
 */
static struct ag_conn *resumed_end(struct ag_link *l, const struct w_cm *cm)
{
	struct ag_conn *conn = ag_conn_get(l->agent, cm->dst_conn);

	if (!is_of(conn, cm) || conn->first || !is_resumable(conn) ||
	    (int32_t)(cm->epoch - last_epoch(conn)) <= 0)
		return NULL;
	return conn;
}

void ag_resume_request(struct ag_link *l, const struct w_cm *cm)
{
	struct ag_conn *conn = resumed_end(l, cm);
	struct rt_path back;

	if (conn == NULL || ag_path_back(l->agent, cm->src_host, &cm->path, &back) != 0) {
		ag_cm_refuse(l, cm, W_NO_MATCH);
		return;
	}
	if (conn->pending_resume == NULL)
		conn->pending_resume = malloc(sizeof(*conn->pending_resume));
	if (conn->pending_resume == NULL) {
		ag_cm_refuse(l, cm, W_NO_RESOURCE);
		return;
	}
	*conn->pending_resume = (struct ag_pending_resume){ .link = l, .path = back, .cm = *cm };
	if (conn->resume == AG_ON_PATH || conn->resume == AG_RESUMED)
		ag_resume_begin(conn);
	else if (conn->resume == AG_RESUMING)
		leave_attempt(conn);
	if (conn->resume == AG_SUSPENDED)
		serve_pending_resume(conn);
}

int ag_resume_confirmed(struct ag_conn *conn, const struct w_cm *cm, bool last_chance)
{
	int out_fd, rc;

	if (conn->first || conn->resume != AG_RESUMING)
		return 0;
	rc = ag_cm_outbound(conn->link, &cm->geometry, last_chance, &out_fd);
	if (rc == -EAGAIN)
		return rc;
	/* What it said in RESUME: a CONFIRM says nothing about that. */
	if (rc == 0)
		rc = ag_cm_linked(conn, W_RESUMED, cm, out_fd);
	if (rc == 0)
		set_resume(conn, AG_RESUMED);
	else
		leave_attempt(conn);
	return 0;
}

/* ---- the first end, answered ---------------------------------------------------------------------- */

int ag_resume_accept(struct ag_conn *conn, const struct w_cm *cm, bool last_chance)
{
	int out_fd, rc;

	if (!conn->first || conn->resume != AG_RESUMING || cm->src_conn != conn->peer_conn ||
	    conn->state != AG_CONNECTED)
		return 0;
	rc = ag_cm_outbound(conn->link, &cm->geometry, last_chance, &out_fd);
	if (rc == -EAGAIN)
		return rc;
	if (rc == 0) {
		rc = ag_conn_slice_alloc(conn);
		if (rc != 0)
			close(out_fd);
		else
			rc = ag_cm_linked(conn, W_RESUMED, cm, out_fd);
	}
	if (rc == 0) {
		set_resume(conn, AG_RESUMED);
		return 0;
	}
	ag_cm_send(conn, W_CM_CANCEL, ag_cm_status(rc));
	give_up_attempt(conn);
	return 0;
}

bool ag_resume_confirm(struct ag_conn *conn)
{
	if (conn->resume == AG_ON_PATH)
		return false;
	if (conn->resume == AG_RESUMED) {
		set_resume(conn, AG_ON_PATH);
		if (conn->first)
			ag_cm_send(conn, W_CM_CONFIRM, 0);
	}
	return true;
}

bool ag_resume_withdraw(struct ag_conn *conn, enum w_lost reason)
{
	if (conn->resume != AG_RESUMING)
		return false;
	/* What was accepted may be confirmed by now, and is closed like any connection. */
	if (conn->first)
		ag_cm_send(conn, W_CM_CANCEL, W_TIMED_OUT);
	else
		leave_path(conn, reason);
	return true;
}

/* ---- time ----------------------------------------------------------------------------------------- */

static void too_late(struct ag_conn *conn)
{
	bool has_message = conn->state == AG_CONNECTED && conn->resume_until != 0;

	if (conn->state == AG_CONNECTED)
		u_log_ratelimited(&conn->link->agent->ratelimit[AG_RATELIMIT_LOST],
				  "connection to host %u is lost: %s", conn->peer_host,
				  conn->resume_until == 0 ? "its other end is gone"
							  : "no other path was found in time");
	if (ag_conn_on_path(conn) && !ag_resume_withdraw(conn, W_LOST_LINK))
		leave_path(conn, W_LOST_LINK);
	ag_cm_tell_lost(conn, W_LOST_LINK);
	ag_conn_detach(conn);
	ag_conn_set_state(conn, AG_CLOSED);
	conn->left = W_LOST_LINK;
	conn->link->agent->dirty = true; /* it may have another deadline now */
	/* The other end, which found the path again in time, would wait for this one to ask. */
	if (!has_message || !ag_resume_final_message(conn))
		ag_conn_free(conn);
}

/* There is a path, but some process or agent on it is slow. */
static bool may_wait(struct ag_conn *conn, int64_t now)
{
	struct rt_path path;
	char why[160];

	if (conn->resume_until == 0 || now - conn->resume_from >= AG_RESUME_SLOW_NS ||
	    ag_route_find(conn->link->agent, conn->peer_host, 0, &path, why, sizeof(why)) != 0)
		return false;
	conn->resume_until = now + AG_RESUME_NS / 4;
	return true;
}

/* Asks, or asks whether it will be asked, when that is due.  Returns when it is due again. */
static int64_t ask_when_due(struct ag_conn *conn, int64_t now)
{
	bool due = conn->ask_at <= now;

	if (may_ask(conn) && due)
		ask(conn);
	else if (waits_for_first(conn) && due)
		query(conn);
	return may_ask(conn) || waits_for_first(conn) ? conn->ask_at : U_NEVER;
}

static int64_t resuming_timers(struct ag_agent *a, int64_t now)
{
	struct ag_list *pos, *tmp;
	struct ag_conn *conn;
	int64_t due, next = U_NEVER;

	ag_list_each(pos, tmp, &a->resuming)
	{
		conn = ag_list_entry(pos, struct ag_conn, in_resuming);
		if (conn->resume_until <= now && !may_wait(conn, now)) {
			too_late(conn);
			continue;
		}
		due = ask_when_due(conn, now);
		if (due < next)
			next = due;
		if (conn->resume_until < next)
			next = conn->resume_until;
	}
	return next;
}

static void return_over(struct ag_link *l)
{
	struct ag_agent *a = l->agent;
	struct ag_list *pos, *tmp;
	struct ag_conn *conn;

	ag_list_each(pos, tmp, &l->conns)
	{
		conn = ag_list_entry(pos, struct ag_conn, in_link);
		if (conn->first && conn->resume == AG_ON_PATH && is_resumable(conn) &&
		    rt_distance(a->topo, a->up, a->cfg.host_id, conn->peer_host) < conn->path.hops)
			ag_resume_begin(conn);
	}
}

/* Paths changed a while ago: those that have become needlessly long are left. */
static int64_t return_timers(struct ag_agent *a, int64_t now)
{
	uint32_t i;

	if (a->return_at == 0)
		return U_NEVER;
	if (now < a->return_at)
		return a->return_at;
	a->return_at = 0;
	for (i = 1; i < a->link_count; i++)
		return_over(&a->links[i]);
	return U_NEVER;
}

int64_t ag_resume_timers(struct ag_agent *a, int64_t now)
{
	int64_t next = resuming_timers(a, now), back = return_timers(a, now);
	struct ag_list *pos, *tmp;

	retired_due(a, now);
	ag_list_each(pos, tmp, &a->retired)
	{
		struct ag_retired *r = ag_list_entry(pos, struct ag_retired, node);

		next = r->until < next ? r->until : next;
	}
	return back < next ? back : next;
}
