/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An attempt of a process to connect: the path to the other host, this end, and the request to the
 * other agent, which is held back while much waits for the neighbour.
 */
#ifndef AG_ATTEMPT_H
#define AG_ATTEMPT_H

#include <stdbool.h>
#include <stdint.h>

#include "ag_client.h"
#include "ag_conn.h"
#include "ag_link.h"
#include "rt_topo.h"
#include "w_ctl.h"

/* Is the local address of a request this host's?  Otherwise the request is refused. */
bool ag_attempt_is_own(struct ag_client *c, const struct w_connect *m);

/*
 * Finds the path to the host of the remote address.  Returns its first link; or NULL, and the request was refused: its
 * local address is of another host, the process may make no connections now (ag_conn_trusts()), or there is no path.
 * `path` and `host_out` are set only with a link.
 */
struct ag_link *ag_attempt_link(struct ag_client *c, const struct w_connect *m,
				struct rt_path *path, uint16_t *host_out);

/*
 * Makes the end of an attempt over that path, in `state`; nothing is sent to the other agent.  NULL: the process has
 * too many, or there is no memory, and the request was refused.
 */
struct ag_conn *ag_attempt_new(struct ag_client *c, struct ag_link *l, const struct w_connect *m,
			       const struct rt_path *path, uint16_t host, enum ag_state state);

/*
 * Asks the other agent, and the end, which was AG_HELD, is AG_REQUESTED; or holds the request for ag_attempt_unhold()
 * when others wait before it or much is queued for the link.
 */
void ag_attempt_request(struct ag_conn *conn);

/* Sends held requests while the queue has room and the link is not broken.  Returns true if any was sent. */
bool ag_attempt_unhold(struct ag_link *l);

/*
 * Its link is down: moves an attempt that the other agent does not know yet to the first link of another path, if
 * there is one, and asks there if it was held (ag_attempt_request()).  Returns true if it did.
 */
bool ag_attempt_move(struct ag_conn *conn);

#endif
