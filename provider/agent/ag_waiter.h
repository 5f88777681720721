/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiters for a connection: processes of this host that listen, and peer-to-peer requests of other
 * hosts (offers) that no process here answers yet.
 */
#ifndef AG_WAITER_H
#define AG_WAITER_H

#include <stdint.h>

#include "ag_client.h"
#include "ag_conn.h"
#include "ag_link.h"
#include "ag_list.h"
#include "ag_state.h"
#include "rt_topo.h"
#include "w_addr.h"
#include "w_cm.h"
#include "w_ctl.h"

struct ag_listen {
	struct ag_list node; /* of agent->listens */
	struct ag_list in_client;
	struct ag_client *client;
	uint64_t token;
	struct w_addr local;
};

struct ag_offer {
	struct ag_list node;  /* of agent->offers */
	struct ag_link *link; /* over which it came */
	struct rt_path path;  /* back to its host */
	uint16_t src_host;
	uint64_t src_conn;
	struct w_vi_attrs attrs;
	struct w_geometry geometry; /* the largest geometry for the connection */
	struct w_addr local;	    /* the sender's */
	struct w_addr remote;
};

/*
 * Makes a waiter of a process, after others that may have the address or token, too.  NULL: the process or its
 * user has too many, or there is no memory.
 */
struct ag_listen *ag_listen_new(struct ag_client *c, uint64_t token, const struct w_addr *local);

/*
 * Return the first waiter at that address, of any process that has not gone, or that of the client with the
 * token; or NULL.
 */
struct ag_listen *ag_listen_match(struct ag_agent *a, const struct w_addr *remote);
struct ag_listen *ag_listen_by_token(struct ag_client *c, uint64_t token);

/* Takes a waiter off its lists and frees it; its process is told nothing. */
void ag_listen_free(struct ag_listen *l);

/* Holds the request of a peer.  NULL: too many came over the link, no memory, or no path back. */
struct ag_offer *ag_offer_new(struct ag_link *l, const struct w_cm *cm);

/* Returns the offer whose addresses are those of `conn`, seen from the other side, or NULL. */
struct ag_offer *ag_offer_match(const struct ag_conn *conn);
struct ag_offer *ag_offer_by_conn(struct ag_agent *a, uint16_t src_host, uint64_t src_conn);

/* Takes an offer off its list and frees it; its sender is told nothing. */
void ag_offer_free(struct ag_offer *offer);

#endif
