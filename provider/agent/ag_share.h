/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sharing window memory with neighbours.
 *
 * To a process of a neighbour a piece of window memory is *shared*: it is named over a connection under an
 * id of its own, by which the neighbour opens it once.  A share ends when the piece is named over that
 * connection again, when the connection or its link ends, and when the piece is freed.
 */
#ifndef AG_SHARE_H
#define AG_SHARE_H

#include <stdint.h>

struct ag_alloc;
struct ag_conn;
struct ag_link;

/*
 * Returns the id by which the agent at the other end of the connection finds the memory: within the host that
 * of the piece, over a link that of a new share, which ends earlier ones over the connection.  0: it cannot be
 * shared, as over relays, or for a reason that the log gives.
 */
uint32_t ag_share_name(struct ag_alloc *m, struct ag_conn *conn);

/* Ends the shares of a piece, those over a connection, and those over a link that is down. */
void ag_share_alloc_end(struct ag_alloc *m);
void ag_share_conn_end(struct ag_conn *conn);
void ag_share_link_down(struct ag_link *l);

#endif
