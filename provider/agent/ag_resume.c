/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections that outlive their way; the exchange is drawn in w_ctl.h.
 *
 * A reliable connection is kept if each link of its way is one that others can stand in for.  When the
 * way is lost, each end has its process suspend it, tells the old way that it is left (CLOSE), and
 * waits beside the links (it is *parked* on self).  The first end looks for a way and asks; when that
 * fails it tries again every AG_ASK_NS and when links change, until AG_RESUME_NS have passed without a
 * way: what links are up may have been heard before the refusal.  A connection whose way has become
 * longer than it need be is taken through the same.
 *
 * A first end that is closed when its way is lost says so with a RESUME that has a reason, its *last
 * word*: the other end waits for it to ask.
 *
 * The epoch counts ways, so what an old one still delivers is told from what belongs to the new.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ag_priv.h"
#include "u_log.h"
#include "u_time.h"

/*
 * The inbound slice of a way that was left: the other end may store there until it has left too.
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

static bool is_parked(const struct ag_conn *conn)
{
	return conn->link->index == 0 && conn->peer_host != conn->link->peer_host;
}

bool ag_conn_on_way(const struct ag_conn *conn)
{
	return !is_parked(conn);
}

bool ag_resume_can(const struct ag_conn *conn)
{
	struct ag_agent *a = conn->link->agent;
	struct rt_end at;
	uint8_t hop;

	if (conn->way.hops == 0 || conn->attrs.reliability == W_LEVEL_UNRELIABLE)
		return false;
	for (hop = 0; hop < conn->way.hops; hop++) {
		if (rt_path_walk(a->topo, a->cfg.host_id, &conn->way, hop, &at) != 0 ||
		    (a->bridges[at.host] & 1u << conn->way.port[hop]) != 0)
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
	bool in_use = conn->has_slice && !conn->way_closed && ag_link_usable(conn->link);
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

/* Who asks for way after way, and leaves none, is not given all of a window. */
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

static void forget_wish(struct ag_conn *conn)
{
	free(conn->wish);
	conn->wish = NULL;
}

static void set_resume(struct ag_conn *conn, enum ag_resume resume)
{
	struct ag_agent *a = conn->link->agent;

	ag_list_remove(&conn->in_resuming);
	if (resume != AG_ON_WAY)
		ag_list_append(&a->resuming, &conn->in_resuming);
	conn->resume = resume;
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
	if (conn->wish != NULL)
		ag_cm_refuse(conn->wish->link, &conn->wish->cm, W_NO_MATCH);
	forget_wish(conn);
	set_resume(conn, AG_ON_WAY);
}

static void park(struct ag_conn *conn)
{
	conn->way_closed = false;
	ag_conn_move(conn, &conn->link->agent->links[0], &conn->way);
}

/*
 * Tells the way that nothing of ours is stored there any more; the other end may store until it
 * has said so too.
 */
static void leave_way(struct ag_conn *conn, enum w_lost reason)
{
	ag_cm_send(conn, W_CM_CLOSE, reason);
	retire_slice(conn);
	park(conn);
}

/* The attempt came to nothing; what the other end named for it is not used. */
static void give_up_attempt(struct ag_conn *conn)
{
	ag_conn_slice_free(conn);
	if (!is_parked(conn))
		park(conn);
	set_resume(conn, AG_SUSPENDED);
}

/* Of a way that this end has accepted: the slice that it named may be stored into already. */
static void leave_attempt(struct ag_conn *conn)
{
	leave_way(conn, W_LOST_LINK);
	set_resume(conn, AG_SUSPENDED);
}

static bool may_ask(const struct ag_conn *conn)
{
	return conn->first && conn->resume == AG_SUSPENDED;
}

/* The shortest way, but not by the link where there was no room just now, if another one leads there. */
static bool find_way(const struct ag_conn *conn, struct rt_path *out)
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
	struct rt_path way;

	conn->ask_at = u_now_ns() + AG_ASK_NS;
	if (!find_way(conn, &way))
		return;
	ag_conn_move(conn, ag_route_link(a, &way), &way);
	conn->epoch++;
	conn->ways_changed = false;
	set_resume(conn, AG_RESUMING);
	ag_cm_send(conn, W_CM_RESUME, conn->left);
}

bool ag_resume_last_word(struct ag_conn *conn)
{
	if (!conn->kept || !conn->first)
		return false;
	if (conn->resume == AG_ON_WAY)
		begin_timers(conn);
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
			conn->ways_changed = true;
	}
}

/* ---- suspending ----------------------------------------------------------------------------------- */

void ag_resume_begin(struct ag_conn *conn)
{
	struct w_conn m = { .conn = conn->id };

	if (conn->resume == AG_ON_WAY)
		begin_timers(conn);
	set_resume(conn, AG_SUSPENDING);
	ag_mem_conn_end(conn);
	w_ctl_init(&m, W_SUSPEND, sizeof(m));
	ag_client_send(conn->client, &m, NULL, 0);
}

static bool is_kept(const struct ag_conn *conn)
{
	return conn->kept && conn->state == AG_CONNECTED && conn->client != NULL &&
	       !conn->client->gone;
}

bool ag_resume_link_down(struct ag_conn *conn)
{
	if (!is_kept(conn))
		return false;
	switch (conn->resume) {
	case AG_ON_WAY:
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

static void grant_wish(struct ag_conn *conn);

void ag_resume_suspended(struct ag_client *c, const struct w_suspended *m)
{
	struct ag_conn *conn = ag_conn_of_client(c, m->conn);

	if (conn == NULL || conn->resume != AG_SUSPENDING)
		return;
	if (!is_parked(conn))
		leave_way(conn, W_LOST_LINK);
	conn->taken = m->taken;
	set_resume(conn, AG_SUSPENDED);
	if (conn->first)
		ask(conn);
	else if (conn->wish != NULL)
		grant_wish(conn);
}

bool ag_resume_closed(struct ag_conn *conn, const struct w_cm *cm)
{
	if (!is_kept(conn) || cm->status != W_LOST_LINK)
		return false;
	conn->way_closed = true;
	switch (conn->resume) {
	case AG_ON_WAY:
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
 * No such way, or no room on it.  Others are tried when links change, which may have been said before
 * the refusal, or soon: who refused may know better, or have room, by then.
 */
bool ag_resume_refused(struct ag_conn *conn, const struct w_cm *cm)
{
	bool may_pass = cm->status == W_NOT_REACHABLE || cm->status == W_NO_RESOURCE;

	if (conn->resume != AG_RESUMING)
		return false;
	give_up_attempt(conn);
	if (cm->status == W_NO_RESOURCE)
		conn->full_port = conn->way.port[0];
	if (cm->hdr.type == W_CM_REFUSE && !may_pass)
		conn->resume_until = 0; /* the other end has given it up, or was told */
	else if (conn->first && conn->ways_changed)
		ask(conn);
	return true;
}

/* ---- the other end -------------------------------------------------------------------------------- */

static void grant_wish(struct ag_conn *conn)
{
	struct ag_wish wish = *conn->wish;
	int rc;

	forget_wish(conn);
	if (wish.cm.status != 0) {
		/* The relays wait for an answer. */
		ag_cm_refuse(wish.link, &wish.cm, W_NO_MATCH);
		ag_cm_tell_lost(conn, (enum w_lost)wish.cm.status);
		ag_conn_free(conn);
		return;
	}
	if (!ag_link_usable(wish.link))
		return;
	ag_conn_slice_free(conn);
	ag_conn_move(conn, wish.link, &wish.way);
	rc = has_room_to_retire(conn) ? ag_conn_slice_alloc(conn) : -ENOSPC;
	if (rc != 0) {
		ag_cm_refuse(wish.link, &wish.cm, ag_cm_status(rc));
		park(conn);
		return;
	}
	conn->epoch = wish.cm.epoch;
	set_resume(conn, AG_RESUMING);
	ag_cm_send(conn, W_CM_ACCEPT, 0);
}

/* The last epoch that was asked for. */
static uint32_t last_epoch(const struct ag_conn *conn)
{
	return conn->wish != NULL ? conn->wish->cm.epoch : conn->epoch;
}

/* The end that a RESUME is about, if it may be resumed; an earlier RESUME may come by a slower way. */
static struct ag_conn *resumed_end(struct ag_link *l, const struct w_cm *cm)
{
	struct ag_conn *conn = ag_conn_get(l->agent, cm->dst_conn);

	if (conn == NULL || conn->peer_host != cm->src_host || conn->peer_conn != cm->src_conn ||
	    conn->first || !is_kept(conn) || (int32_t)(cm->epoch - last_epoch(conn)) <= 0)
		return NULL;
	return conn;
}

void ag_resume_request(struct ag_link *l, const struct w_cm *cm)
{
	struct ag_conn *conn = resumed_end(l, cm);
	struct rt_path back;

	if (conn == NULL || ag_way_back(l->agent, cm->src_host, &cm->way, &back) != 0) {
		ag_cm_refuse(l, cm, W_NO_MATCH);
		return;
	}
	if (conn->wish == NULL)
		conn->wish = malloc(sizeof(*conn->wish));
	if (conn->wish == NULL) {
		ag_cm_refuse(l, cm, W_NO_RESOURCE);
		return;
	}
	*conn->wish = (struct ag_wish){ .link = l, .way = back, .cm = *cm };
	if (conn->resume == AG_ON_WAY || conn->resume == AG_RESUMED)
		ag_resume_begin(conn);
	else if (conn->resume == AG_RESUMING)
		leave_attempt(conn);
	if (conn->resume == AG_SUSPENDED)
		grant_wish(conn);
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
	if (conn->resume == AG_ON_WAY)
		return false;
	if (conn->resume == AG_RESUMED) {
		set_resume(conn, AG_ON_WAY);
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
		leave_way(conn, reason);
	return true;
}

/* ---- time ----------------------------------------------------------------------------------------- */

static void too_late(struct ag_conn *conn)
{
	if (conn->state == AG_CONNECTED)
		u_log_gated(&conn->link->agent->gate[AG_GATE_LOST],
			    "connection to host %u is lost: no other way was found in time",
			    conn->peer_host);
	if (!is_parked(conn) && !ag_resume_withdraw(conn, W_LOST_LINK))
		leave_way(conn, W_LOST_LINK);
	ag_cm_tell_lost(conn, W_LOST_LINK);
	ag_conn_free(conn);
}

/* There is a way, but some process or agent on it is slow. */
static bool may_wait(struct ag_conn *conn, int64_t now)
{
	struct rt_path way;
	char why[160];

	if (conn->resume_until == 0 || now - conn->resume_from >= AG_RESUME_SLOW_NS ||
	    ag_route_find(conn->link->agent, conn->peer_host, 0, &way, why, sizeof(why)) != 0)
		return false;
	conn->resume_until = now + AG_RESUME_NS / 4;
	return true;
}

static int64_t resuming_timers(struct ag_agent *a, int64_t now)
{
	struct ag_list *pos, *tmp;
	struct ag_conn *conn;
	int64_t next = U_NEVER;

	ag_list_each(pos, tmp, &a->resuming)
	{
		conn = ag_list_entry(pos, struct ag_conn, in_resuming);
		if (conn->resume_until <= now && !may_wait(conn, now)) {
			too_late(conn);
			continue;
		}
		if (may_ask(conn) && conn->ask_at <= now)
			ask(conn);
		if (may_ask(conn) && conn->ask_at < next)
			next = conn->ask_at;
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
		if (conn->first && conn->resume == AG_ON_WAY && is_kept(conn) &&
		    rt_distance(a->topo, a->up, a->cfg.host_id, conn->peer_host) < conn->way.hops)
			ag_resume_begin(conn);
	}
}

/* Ways changed a while ago: those that have become needlessly long are left. */
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
