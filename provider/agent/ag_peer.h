/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Peer-to-peer requests.  When two peers ask for each other, the one with the lower address
 * decides: it waits, the other's request comes to it as an offer, and it accepts that.
 */
#ifndef AG_PEER_H
#define AG_PEER_H

#include "ag_client.h"
#include "ag_conn.h"
#include "ag_link.h"
#include "w_cm.h"
#include "w_ctl.h"

/* Handles W_PEER of a process. */
void ag_peer_request(struct ag_client *c, const struct w_connect *m);

/* Handle PEER and PEER_CANCEL of another agent. */
void ag_peer_offered(struct ag_link *l, const struct w_cm *cm);
void ag_peer_withdrawn(struct ag_link *l, const struct w_cm *cm);

/*
 * Makes a deciding peer, whose partner withdrew, wait again, or join another offer that is held for it; if
 * joining fails, `conn` is freed.  Frees its slice.
 */
void ag_peer_rewait(struct ag_conn *conn);

#endif
