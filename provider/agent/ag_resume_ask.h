/* SPDX-License-Identifier: BSD-2-Clause */
/* Asking for a path for connections that have lost theirs; w_ctl.h draws the exchange. */
#ifndef AG_RESUME_ASK_H
#define AG_RESUME_ASK_H

#include <stdbool.h>
#include <stdint.h>

#include "ag_conn.h"
#include "ag_state.h"

/*
 * The first end of a suspended connection asks the other over a path, if there is one, by a RESUME with the
 * reason conn->left, 0 for one that goes on; if not, it stays suspended, and is due again after AG_ASK_NS.
 */
void ag_resume_ask(struct ag_conn *conn);

/* Does this end, the other one, wait for a RESUME, or for the answer to its ACCEPT?  The first end may be gone. */
bool ag_resume_waits_for_first(const struct ag_conn *conn);

/*
 * For a closed connection whose path is lost: the first end tells the other by a RESUME with the reason
 * conn->left, the final message, and repeats that until it is answered or time is over.  False: this is not the
 * first end, or it is not resumable.
 */
bool ag_resume_final_message(struct ag_conn *conn);

/*
 * Paths have changed: first ends that wait for one ask again.  Also starts the time after which connections
 * leave paths that are needlessly long.
 */
void ag_resume_retry(struct ag_agent *a);

/*
 * Asks again, gives up, leaves paths that are needlessly long, and frees retired slices.  Returns the next
 * deadline.
 */
int64_t ag_resume_timers(struct ag_agent *a, int64_t now);

#endif
