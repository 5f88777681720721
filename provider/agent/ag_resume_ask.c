/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Asking for a path until there is one, or until it is too late: the first end by RESUME, the other by QUERY.
 * ag_resume.c describes the exchange, and handles the answers.
 */
#include "ag_resume_ask.h"

#include "ag_cm.h"
#include "ag_conn.h"
#include "ag_ctl.h"
#include "ag_end.h"
#include "ag_link.h"
#include "ag_list.h"
#include "ag_ratelimit.h"
#include "ag_retire.h"
#include "ag_route.h"
#include "ag_state.h"
#include "ag_suspend.h"
#include "rt_topo.h"
#include "u_log.h"
#include "u_time.h"
#include "w_cm.h"
#include "w_ctl.h"

/* If there is a path, a connection waits so long for slow processes and agents on it. */
#define SLOW_NS (4000 * INT64_C(1000000))
/* A shorter path is taken when it has lasted so long. */
#define RETURN_NS (200 * INT64_C(1000000))

/* Is it a suspended first end, which may ask for a path at once? */
static bool may_ask(const struct ag_conn *conn)
{
	return conn->first && conn->resume == AG_SUSPENDED;
}

/*
 * Finds the shortest path; if there is one that does not begin with the link that had no room just now, that.
 * False: there is none.
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

void ag_resume_ask(struct ag_conn *conn)
{
	struct ag_agent *a = conn->link->agent;
	struct rt_path path;

	conn->ask_at = u_now_ns() + AG_ASK_NS;
	if (!find_path(conn, &path))
		return;
	ag_conn_move(conn, ag_route_link(a, &path), &path);
	conn->epoch++;
	conn->paths_changed = false;
	ag_suspend_set(conn, AG_RESUMING);
	ag_cm_send(conn, W_CM_RESUME, conn->left);
}

bool ag_resume_waits_for_first(const struct ag_conn *conn)
{
	return !conn->first && (conn->resume == AG_SUSPENDED || conn->resume == AG_RESUMING);
}

/*
 * Asks the agent of the first end whether that end still exists, and notes when to repeat it; so it may be left
 * out when much is queued or there is no path.
 */
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
	ag_route_set_path(&cm.path, &path);
	w_ctl_init(&cm, W_CM_QUERY, sizeof(cm));
	ag_ctl_send(ag_route_link(a, &path), &cm);
}

bool ag_resume_final_message(struct ag_conn *conn)
{
	if (!conn->resumable || !conn->first)
		return false;
	if (conn->resume == AG_ON_PATH)
		ag_suspend_begin_timers(conn);
	/*
	 * The other end waits up to SLOW_NS too, if it finds a path just before its time is over.
	 */
	conn->resume_until = conn->resume_from + SLOW_NS;
	ag_suspend_give_up(conn);
	ag_resume_ask(conn);
	return true;
}

void ag_resume_retry(struct ag_agent *a)
{
	struct ag_list *pos, *tmp;
	struct ag_conn *conn;

	if (a->return_at == 0)
		a->return_at = u_now_ns() + RETURN_NS;
	ag_list_each(pos, tmp, &a->resuming)
	{
		conn = ag_list_entry(pos, struct ag_conn, in_resuming);
		if (may_ask(conn))
			ag_resume_ask(conn);
		else
			conn->paths_changed = true;
	}
}

/* ---- time ---- */

/*
 * No path was found in time: the connection is lost for its process.  `conn` is freed, except for a first end
 * that still has to send its final message.
 */
static void too_late(struct ag_conn *conn)
{
	bool has_message = conn->state == AG_CONNECTED && conn->resume_until != 0;

	if (conn->state == AG_CONNECTED)
		u_log_ratelimited(&conn->link->agent->ratelimit[AG_RATELIMIT_LOST],
				  "connection to host %u is lost: %s", conn->peer_host,
				  conn->resume_until == 0 ? "its other end is gone"
							  : "no other path was found in time");
	if (ag_conn_on_path(conn) && !ag_suspend_withdraw(conn, W_LOST_LINK))
		ag_suspend_leave_path(conn, W_LOST_LINK);
	ag_end_tell_lost(conn, W_LOST_LINK);
	ag_end_detach(conn);
	ag_conn_set_state(conn, AG_CLOSED);
	conn->left = W_LOST_LINK;
	conn->link->agent->dirty = true; /* so that the loop computes its deadline again */
	/* The other end may have found the path again just in time, and would wait for a RESUME. */
	if (!has_message || !ag_resume_final_message(conn))
		ag_end_free(conn);
}

/*
 * There is a path, but a process or agent on it is slow: grants more time, up to SLOW_NS.  False: there is no
 * path, that is over, or the other end is known to be gone.
 */
static bool may_wait(struct ag_conn *conn, int64_t now)
{
	struct rt_path path;
	char why[160];

	if (conn->resume_until == 0 || now - conn->resume_from >= SLOW_NS ||
	    ag_route_find(conn->link->agent, conn->peer_host, 0, &path, why, sizeof(why)) != 0)
		return false;
	conn->resume_until = now + AG_RESUME_NS / 4;
	return true;
}

/*
 * Sends the RESUME or QUERY that is due.  Returns the time at which the next one is due; U_NEVER if the end
 * does not ask now.
 */
static int64_t ask_when_due(struct ag_conn *conn, int64_t now)
{
	bool due = conn->ask_at <= now;

	if (may_ask(conn) && due)
		ag_resume_ask(conn);
	else if (ag_resume_waits_for_first(conn) && due)
		query(conn);
	return may_ask(conn) || ag_resume_waits_for_first(conn) ? conn->ask_at : U_NEVER;
}

/* Asks, gives more time or gives up, for each connection without a path as is due.  Returns the next deadline. */
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

/* Suspends connections of first ends over the link for which there is a shorter path now. */
static void return_over(struct ag_link *l)
{
	struct ag_agent *a = l->agent;
	struct ag_list *pos, *tmp;
	struct ag_conn *conn;

	ag_list_each(pos, tmp, &l->conns)
	{
		conn = ag_list_entry(pos, struct ag_conn, in_link);
		if (conn->first && conn->resume == AG_ON_PATH && ag_suspend_is_resumable(conn) &&
		    rt_distance(a->topo, a->up, a->cfg.host_id, conn->peer_host) < conn->path.hops)
			ag_suspend_begin(conn);
	}
}

/*
 * If paths changed RETURN_NS ago, makes connections leave paths that are longer than necessary.  Returns the
 * next deadline.
 */
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
	int64_t retired = ag_retire_timers(a, now);

	next = back < next ? back : next;
	return retired < next ? retired : next;
}
