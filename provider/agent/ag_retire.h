/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inbound slices of paths that connections have left.  The other end may store there until it has
 * left the path too, so such a slice is kept until the CLOSE of the other end comes or, if that is
 * lost with a relay, a time limit has passed.
 */
#ifndef AG_RETIRE_H
#define AG_RETIRE_H

#include <stdbool.h>
#include <stdint.h>

#include "ag_conn.h"
#include "ag_link.h"
#include "ag_state.h"
#include "w_cm.h"
#include "w_ctl.h"

/*
 * Takes the slice of an end that leaves its path, after which the end has none; frees it at once where nobody
 * can store there, or there is no memory to note it.  The path, epoch and peer of the end are those of the
 * slice.
 */
void ag_retire_slice(struct ag_conn *conn);

/* May the connection get another slice?  False: too many of its slices are retired. */
bool ag_retire_has_room(const struct ag_conn *conn);

/*
 * Frees the slices over `l` that the CLOSE `cm` concerns: its sender no longer stores there.  NULL:
 * all slices over `l`, which is down.
 */
void ag_retire_left(struct ag_link *l, const struct w_cm *cm);

/* Frees slices whose time is over.  Returns the next deadline, U_NEVER if there is none. */
int64_t ag_retire_timers(struct ag_agent *a, int64_t now);

#endif
