/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Peer-to-peer requests.  When two peers ask for each other, the one with the lower address
 * decides: it waits, the other's request comes to it as an offer, and it accepts that.  An offer
 * for which no process waits yet is held.
 */
#include "ag_peer.h"

#include "ag_addr.h"
#include "ag_attempt.h"
#include "ag_client.h"
#include "ag_cm.h"
#include "ag_conn.h"
#include "ag_end.h"
#include "ag_link.h"
#include "ag_list.h"
#include "ag_state.h"
#include "ag_waiter.h"
#include "rt_topo.h"
#include "w_ctl.h"

/*
 * Accepts the offer for a deciding peer: takes its path, allots the slice and sends ACCEPT.  Frees the offer.
 * If that fails, both ends are refused, and `conn` is freed.
 */
static void join(struct ag_conn *conn, struct ag_offer *offer)
{
	enum w_status status = ag_addr_compare_attrs(&conn->attrs, &offer->attrs);

	conn->peer_attrs = offer->attrs;
	ag_conn_move(conn, offer->link, &offer->path);
	ag_conn_set_geometry(conn, &offer->geometry);
	ag_conn_set_peer(conn, offer->src_conn);
	ag_offer_free(offer);
	if (status == W_SUCCESS)
		status = ag_cm_status(ag_conn_slice_alloc(conn));
	if (status != W_SUCCESS) {
		ag_cm_send(conn, W_CM_REFUSE, status);
		ag_client_refuse(conn->client, W_REFUSED, conn->token, status, NULL);
		ag_end_free(conn);
		return;
	}
	ag_conn_set_state(conn, AG_ACCEPTING);
	ag_cm_send(conn, W_CM_ACCEPT, 0);
}

void ag_peer_rewait(struct ag_conn *conn)
{
	struct ag_offer *offer;

	ag_conn_slice_free(conn);
	ag_conn_set_peer(conn, 0);
	ag_conn_set_state(conn, AG_WAITING);
	offer = ag_offer_match(conn);
	if (offer != NULL)
		join(conn, offer);
}

/* Is there a waiting peer whose two addresses are both `addr`? */
static bool twin_waits(struct ag_link *l, const struct w_addr *addr)
{
	struct ag_list *pos, *tmp;
	struct ag_conn *conn;

	ag_list_each(pos, tmp, &l->conns)
	{
		conn = ag_list_entry(pos, struct ag_conn, in_link);
		if (conn->state == AG_WAITING && ag_addr_equal(&conn->local, addr) &&
		    ag_addr_equal(&conn->remote, addr))
			return true;
	}
	return false;
}

/*
 * Is the process the peer that waits for the other's request?  It is if its address is the lower one; with two
 * equal addresses, the one that comes first over `l`.
 */
static bool decides(struct ag_link *l, const struct w_connect *m)
{
	int order = ag_addr_compare(&m->local, &m->remote);

	return order < 0 || (order == 0 && !twin_waits(l, &m->local));
}

/*
 * Makes the end of the attempt.  If its process decides, it takes an offer that is held, or waits for one; else
 * it asks the other agent.  If that cannot be, the process is told (REFUSED), and no end is left.
 */
void ag_peer_request(struct ag_client *c, const struct w_connect *m)
{
	struct rt_path path;
	uint16_t host;
	struct ag_link *l = ag_attempt_link(c, m, &path, &host);
	struct ag_conn *conn;
	struct ag_offer *offer;

	if (l == NULL)
		return;
	conn = ag_attempt_new(c, l, m, &path, host, decides(l, m) ? AG_WAITING : AG_HELD);
	if (conn == NULL)
		return;
	conn->peer = true;
	if (conn->state == AG_HELD) {
		ag_attempt_request(conn);
		return;
	}
	offer = ag_offer_match(conn);
	if (offer != NULL)
		join(conn, offer);
}

/* Returns the deciding peer on link `l` for which the offer is, or NULL. */
static struct ag_conn *waiting_on(struct ag_link *l, const struct ag_offer *offer)
{
	struct ag_list *pos, *tmp;
	struct ag_conn *conn;

	ag_list_each(pos, tmp, &l->conns)
	{
		conn = ag_list_entry(pos, struct ag_conn, in_link);
		if (conn->state == AG_WAITING && ag_addr_equal(&conn->local, &offer->remote) &&
		    ag_addr_equal(&conn->remote, &offer->local))
			return conn;
	}
	return NULL;
}

/*
 * Returns the deciding peer for which the offer is, or NULL.  It may wait on a link other than the one over
 * which the offer came.
 */
static struct ag_conn *waiting_for(struct ag_agent *a, const struct ag_offer *offer)
{
	struct ag_conn *conn = NULL;
	uint32_t i;

	for (i = 0; i < a->link_count && conn == NULL; i++)
		conn = waiting_on(&a->links[i], offer);
	return conn;
}

/*
 * Joins the offer with the peer that waits for it, or holds it until one comes.  One that is known is ignored;
 * one with wrong addresses, or for which there is no room, is answered with REFUSE.
 */
void ag_peer_offered(struct ag_link *l, const struct w_cm *cm)
{
	struct ag_agent *a = l->agent;
	struct ag_offer *offer;
	struct ag_conn *conn;

	if (cm->src_conn == 0 || ag_conn_by_peer(a, cm->src_host, cm->src_conn) != NULL ||
	    ag_offer_by_conn(a, cm->src_host, cm->src_conn) != NULL)
		return;
	if (!ag_cm_addresses_ok(a, cm)) {
		ag_cm_refuse(l, cm, W_BAD_REQUEST);
		return;
	}
	offer = ag_offer_new(l, cm);
	if (offer == NULL) {
		ag_cm_refuse(l, cm, W_NO_RESOURCE);
		return;
	}
	conn = waiting_for(a, offer);
	if (conn != NULL)
		join(conn, offer);
}

/*
 * Frees an offer that is held; if it was accepted already, its peer waits again, or is freed if it has closed.
 * A record that comes by another link than the offer is ignored.
 */
void ag_peer_withdrawn(struct ag_link *l, const struct w_cm *cm)
{
	struct ag_offer *offer = ag_offer_by_conn(l->agent, cm->src_host, cm->src_conn);
	struct ag_conn *conn;

	if (offer != NULL) {
		/* Only the path by which an offer came may withdraw it. */
		if (offer->link == l)
			ag_offer_free(offer);
		return;
	}
	conn = ag_conn_by_peer(l->agent, cm->src_host, cm->src_conn);
	if (conn == NULL || conn->link != l || conn->epoch != cm->epoch)
		return;
	if (conn->state == AG_ACCEPTING && conn->peer)
		ag_peer_rewait(conn);
	else if (conn->state == AG_CLOSED)
		ag_end_free(conn);
}
