/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections that outlive their path: resuming them over another one.  w_ctl.h draws the exchange. */
#ifndef AG_RESUME_H
#define AG_RESUME_H

#include <stdbool.h>
#include <stdint.h>

#include "ag_client.h"
#include "ag_conn.h"
#include "ag_link.h"
#include "ag_state.h"
#include "w_cm.h"
#include "w_ctl.h"

/*
 * The link of its path is down: suspends the connection, or gives up the attempt to resume it, after which the
 * first end asks again.  False: it is not resumable, and so lost.
 */
bool ag_resume_link_down(struct ag_conn *conn);

/* Handles W_SUSPENDED of a process: asks for a path, or answers the RESUME that came before. */
void ag_resume_suspended(struct ag_client *c, const struct w_suspended *m);

/*
 * Handles W_CONFIRM of a process, which has mapped the new path: the connection is on it, and the first end
 * sends CONFIRM.  Out of turn it is ignored.  False: the connection is not being resumed.
 */
bool ag_resume_confirm(struct ag_conn *conn);

/* Handle CLOSE, and REFUSE or CANCEL, of the other end; false: it does not concern resuming. */
bool ag_resume_closed(struct ag_conn *conn, const struct w_cm *cm);
bool ag_resume_refused(struct ag_conn *conn, const struct w_cm *cm);

/*
 * Handles RESUME of the first end: accepts the connection that it names over the path by which it came, as soon
 * as its process has suspended it; or refuses.  A final message ends the connection.
 */
void ag_resume_request(struct ag_link *l, const struct w_cm *cm);

/* Handles QUERY: answers UNKNOWN if this agent does not have the end that it names. */
void ag_resume_query(struct ag_link *l, const struct w_cm *cm);

/* Handles UNKNOWN: the first end is gone, so this end no longer waits for it. */
void ag_resume_unknown(struct ag_link *l, const struct w_cm *cm);

/*
 * Handle ACCEPT and CONFIRM of the other end of a connection that is being resumed.  0, or -EAGAIN:
 * the slice that they name has not arrived, and this is not the last chance.
 */
int ag_resume_accept(struct ag_conn *conn, const struct w_cm *cm, bool last_chance);
int ag_resume_confirmed(struct ag_conn *conn, const struct w_cm *cm, bool last_chance);

#endif
