/* SPDX-License-Identifier: BSD-2-Clause */
/* Window memory that is shared with neighbours. */
#include "ag_share.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "ag_alloc.h"
#include "ag_client.h"
#include "ag_conn.h"
#include "ag_link.h"
#include "ag_list.h"
#include "ag_ratelimit.h"
#include "ag_state.h"
#include "port.h"
#include "u_fd.h"
#include "u_log.h"

#define SHARES_MAX 4096u	 /* of an allocation */
#define CLIENT_SHARES_MAX 65536u /* of all allocations of a client */

/* A neighbour was told of a piece of window memory over a connection. */
struct ag_share {
	struct ag_list node; /* of alloc->shares */
	struct ag_list in_conn;
	struct ag_alloc *alloc;
	struct ag_client *client;
	struct ag_link *link;
	uint32_t id; /* by which the neighbour opens it, once */
};

/*
 * Does a share over this link take room of its adapter's window?  It does where the memory lies in no
 * adapter's window: the adapter maps it into its own.
 */
static bool takes_room(const struct ag_alloc *m, const struct ag_link *l)
{
	return m->link->index == 0 && !l->cabled;
}

/* Has the piece a share over the link? */
static bool is_shared_over(struct ag_alloc *m, const struct ag_link *l)
{
	struct ag_list *pos, *tmp;

	ag_list_each(pos, tmp, &m->shares)
	{
		if (ag_list_entry(pos, struct ag_share, node)->link == l)
			return true;
	}
	return false;
}

/* Adds memory that is mapped into the window of the link's adapter; negative: it is no longer. */
static void count_memory(struct ag_link *l, int64_t bytes)
{
	l->memory_used += (uint64_t)bytes;
	l->window_used += (uint64_t)bytes;
}

/*
 * Ends a share: the neighbour cannot open the memory by its id any more.  Room that shares take in the window
 * of an adapter is free after the last one over its link.
 */
static void share_free(struct ag_share *share)
{
	struct ag_alloc *m = share->alloc;

	port_slice_free(share->link->port, share->id);
	ag_list_remove(&share->node);
	ag_list_remove(&share->in_conn);
	if (takes_room(m, share->link) && !is_shared_over(m, share->link))
		count_memory(share->link, -(int64_t)m->slice.len);
	m->share_count--;
	share->client->share_count--;
	free(share);
}

void ag_share_conn_end(struct ag_conn *conn)
{
	struct ag_list *pos, *tmp;

	ag_list_each(pos, tmp, &conn->shares)
		share_free(ag_list_entry(pos, struct ag_share, in_conn));
}

void ag_share_alloc_end(struct ag_alloc *m)
{
	struct ag_list *pos, *tmp;

	ag_list_each(pos, tmp, &m->shares) share_free(ag_list_entry(pos, struct ag_share, node));
}

/* Ends the shares of the piece over the link. */
static void alloc_link_down(struct ag_alloc *m, struct ag_link *l)
{
	struct ag_list *pos, *tmp;
	struct ag_share *share;

	ag_list_each(pos, tmp, &m->shares)
	{
		share = ag_list_entry(pos, struct ag_share, node);
		if (share->link == l)
			share_free(share);
	}
}

void ag_share_link_down(struct ag_link *l)
{
	struct ag_list *pos, *tmp, *at, *after;
	struct ag_client *c;

	ag_list_each(pos, tmp, &l->agent->clients)
	{
		c = ag_list_entry(pos, struct ag_client, node);
		ag_list_each(at, after, &c->allocs)
			alloc_link_down(ag_list_entry(at, struct ag_alloc, node), l);
	}
}

/*
 * Ends earlier shares of this memory over the connection: its peer has closed the slices that they
 * named.
 */
static void share_again(struct ag_alloc *m, struct ag_conn *conn)
{
	struct ag_list *pos, *tmp;
	struct ag_share *share;

	ag_list_each(pos, tmp, &conn->shares)
	{
		share = ag_list_entry(pos, struct ag_share, in_conn);
		if (share->alloc == m)
			share_free(share);
	}
}

/*
 * Shares the memory with the neighbour under a new id, which can be opened once, and counts the room that it
 * takes.  0; or -errno, and *id_out is as before: -ENOSPC without room or with too many shares.
 */
static int share_new(struct ag_alloc *m, struct ag_conn *conn, uint32_t *id_out)
{
	struct ag_client *c = conn->client;
	struct ag_link *l = conn->link;
	bool room = takes_room(m, l) && !is_shared_over(m, l);
	struct ag_share *share;
	int rc;

	if (m->share_count >= SHARES_MAX || c->share_count >= CLIENT_SHARES_MAX)
		return -ENOSPC;
	if (room && m->slice.len > ag_alloc_room(l))
		return -ENOSPC;
	share = calloc(1, sizeof(*share));
	if (share == NULL)
		return -ENOMEM;
	rc = port_slice_share(l->port, m->slice.fd, m->slice.len, &share->id);
	if (rc != 0) {
		free(share);
		return rc;
	}
	if (room)
		count_memory(l, (int64_t)m->slice.len);
	share->alloc = m;
	share->client = c;
	share->link = l;
	ag_list_append(&m->shares, &share->node);
	ag_list_append(&conn->shares, &share->in_conn);
	m->share_count++;
	c->share_count++;
	*id_out = share->id;
	return 0;
}

/* Returns the end of a log line that says what helps against the error; "" where nothing is known. */
static const char *share_remedy(int rc)
{
	switch (rc) {
	case -EOPNOTSUPP:
		return "; no IOMMU translates for the adapter, or viaduct.ko was told not to "
		       "(adopt), so no memory of programs lies behind its window; VipxAllocMem "
		       "has memory that is there";
	case -ENOSPC:
		return "; where an IOMMU translates half of the window may be memory; raise "
		       "window_bytes of viaduct.ko";
	case -ENOMEM:
		return "; the agent pins it; raise its limit of locked memory (LimitMEMLOCK)";
	case -EDQUOT:
		return "; raise max_user_bytes of viaduct.ko";
	default:
		return "";
	}
}

/* Logs why the memory cannot be shared, unless it lies in the window of another adapter, which is normal. */
static void share_complain(const struct ag_alloc *m, struct ag_link *l, int rc)
{
	char text[U_FD_ERROR];

	if (rc == -EOPNOTSUPP && !takes_room(m, l))
		return;
	u_log_ratelimited(&l->ratelimit[AG_RATELIMIT_MEMORY],
			  "port %s: window memory of %zu bytes cannot be shared, so RDMA of other "
			  "machines goes through slots: %s%s",
			  l->port->limits.name, m->slice.len, u_fd_error(-rc, text),
			  share_remedy(rc));
}

uint32_t ag_share_name(struct ag_alloc *m, struct ag_conn *conn)
{
	uint32_t id = 0;
	int rc;

	if (conn->link->index == 0)
		return m->id;
	if (conn->path.hops > 1)
		return 0;
	share_again(m, conn);
	rc = share_new(m, conn, &id);
	if (rc != 0)
		share_complain(m, conn->link, rc);
	return id;
}
