/* SPDX-License-Identifier: BSD-2-Clause */
/* Waiters for a connection: processes that listen, and peer-to-peer requests of other hosts. */
#include "ag_waiter.h"

#include <stdlib.h>

#include "ag_addr.h"
#include "ag_client.h"
#include "ag_conn.h"
#include "ag_link.h"
#include "ag_list.h"
#include "ag_route.h"
#include "ag_state.h"
#include "w_ctl.h"

#define LISTENS_MAX 1024u /* of one client */
#define OFFERS_MAX 4096u  /* over one link */

/* ---- processes that listen ---- */

struct ag_listen *ag_listen_new(struct ag_client *c, uint64_t token, const struct w_addr *local)
{
	struct ag_listen *l;

	if (c->listen_count >= LISTENS_MAX || !ag_holders_may(c->agent, &c->holders, AG_LISTENS))
		return NULL;
	l = calloc(1, sizeof(*l));
	if (l == NULL)
		return NULL;
	l->client = c;
	l->token = token;
	l->local = *local;
	ag_list_append(&c->agent->listens, &l->node);
	ag_list_append(&c->listens, &l->in_client);
	c->listen_count++;
	ag_holders_count(&c->holders, AG_LISTENS, 1);
	return l;
}

struct ag_listen *ag_listen_match(struct ag_agent *a, const struct w_addr *remote)
{
	struct ag_list *pos, *tmp;
	struct ag_listen *l;

	ag_list_each(pos, tmp, &a->listens)
	{
		l = ag_list_entry(pos, struct ag_listen, node);
		if (!l->client->gone && ag_addr_equal(&l->local, remote))
			return l;
	}
	return NULL;
}

struct ag_listen *ag_listen_by_token(struct ag_client *c, uint64_t token)
{
	struct ag_list *pos, *tmp;
	struct ag_listen *l;

	ag_list_each(pos, tmp, &c->listens)
	{
		l = ag_list_entry(pos, struct ag_listen, in_client);
		if (l->token == token)
			return l;
	}
	return NULL;
}

void ag_listen_free(struct ag_listen *l)
{
	l->client->listen_count--;
	ag_holders_count(&l->client->holders, AG_LISTENS, -1);
	ag_list_remove(&l->node);
	ag_list_remove(&l->in_client);
	free(l);
}

/* ---- offers of peers ---- */

struct ag_offer *ag_offer_new(struct ag_link *l, const struct w_cm *cm)
{
	struct ag_offer *offer;

	if (l->offer_count >= OFFERS_MAX)
		return NULL;
	offer = calloc(1, sizeof(*offer));
	if (offer == NULL)
		return NULL;
	if (ag_route_back(l->agent, cm->src_host, &cm->path, &offer->path) != 0) {
		free(offer);
		return NULL;
	}
	offer->link = l;
	offer->src_host = cm->src_host;
	offer->src_conn = cm->src_conn;
	offer->attrs = cm->attrs;
	offer->geometry = cm->geometry;
	offer->local = cm->local;
	offer->remote = cm->remote;
	ag_list_append(&l->agent->offers, &offer->node);
	l->offer_count++;
	return offer;
}

struct ag_offer *ag_offer_match(const struct ag_conn *conn)
{
	struct ag_list *pos, *tmp;
	struct ag_offer *offer;

	ag_list_each(pos, tmp, &conn->link->agent->offers)
	{
		offer = ag_list_entry(pos, struct ag_offer, node);
		if (ag_addr_equal(&offer->local, &conn->remote) &&
		    ag_addr_equal(&offer->remote, &conn->local))
			return offer;
	}
	return NULL;
}

/* Returns the offer of the end with that id at that host, or NULL. */
struct ag_offer *ag_offer_by_conn(struct ag_agent *a, uint16_t src_host, uint64_t src_conn)
{
	struct ag_list *pos, *tmp;
	struct ag_offer *offer;

	ag_list_each(pos, tmp, &a->offers)
	{
		offer = ag_list_entry(pos, struct ag_offer, node);
		if (offer->src_host == src_host && offer->src_conn == src_conn)
			return offer;
	}
	return NULL;
}

void ag_offer_free(struct ag_offer *offer)
{
	ag_list_remove(&offer->node);
	offer->link->offer_count--;
	free(offer);
}
