/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Slices of paths that connections have left.  The other end may store there until it has left the
 * path too, as its CLOSE says; if that gets lost with a relay, slices are freed after a time limit.
 */
#include "ag_retire.h"

#include <stdlib.h>
#include <unistd.h>

#include "ag_conn.h"
#include "ag_link.h"
#include "ag_list.h"
#include "ag_state.h"
#include "port.h"
#include "u_time.h"
#include "w_ctl.h"

struct ag_retired {
	struct ag_list node; /* of agent->retired */
	struct ag_link *link;
	struct port_slice slice;
	bool held; /* as in ag_conn */
	uint64_t conn, peer_conn;
	uint16_t peer_host;
	uint32_t epoch;
	int64_t until;
};

/* Frees a retired slice and its entry, which it takes off the list. */
static void retired_free(struct ag_retired *r)
{
	ag_link_slice_free(r->link, &r->slice, r->held);
	ag_list_remove(&r->node);
	free(r);
}

void ag_retire_slice(struct ag_conn *conn)
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
				  .held = conn->held,
				  .conn = conn->id,
				  .peer_conn = conn->peer_conn,
				  .peer_host = conn->peer_host,
				  .epoch = conn->epoch,
				  .until = u_now_ns() + AG_SILENCE_NS };
	ag_list_append(&a->retired, &r->node);
	ag_conn_uncharge(conn);
	if (conn->slice.fd >= 0)
		close(conn->slice.fd);
	conn->slice.fd = -1;
	conn->has_slice = false;
	conn->held = false;
}

/*
 * The most for one connection, so that a first end that asks for one path after another, without a
 * CLOSE, does not take all of a window.
 */
#define RETIRED_MAX 16u

bool ag_retire_has_room(const struct ag_conn *conn)
{
	struct ag_list *pos, *tmp;
	unsigned int n = 0;

	ag_list_each(pos, tmp, &conn->link->agent->retired)
	{
		n += ag_list_entry(pos, struct ag_retired, node)->conn == conn->id;
	}
	return n < RETIRED_MAX;
}

int64_t ag_retire_timers(struct ag_agent *a, int64_t now)
{
	struct ag_list *pos, *tmp;
	struct ag_retired *r;
	int64_t next = U_NEVER;

	ag_list_each(pos, tmp, &a->retired)
	{
		r = ag_list_entry(pos, struct ag_retired, node);
		if (r->until <= now)
			retired_free(r);
		else if (r->until < next)
			next = r->until;
	}
	return next;
}

void ag_retire_left(struct ag_link *l, const struct w_cm *cm)
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
