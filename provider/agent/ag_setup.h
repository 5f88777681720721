/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bringing links up through scratchpads, and taking them down: this is the only unit that tells all
 * others when a link is down.
 */
#ifndef AG_SETUP_H
#define AG_SETUP_H

#include <stdint.h>

#include "ag_link.h"

/*
 * Begins or continues the set-up of the link, or takes it down, as the state of its port and the neighbour's
 * words demand.  While l->admin_down, no set-up begins.
 */
void ag_setup_check(struct ag_link *l);

/* Makes the port handle its events, calls ag_setup_check(), and receives records. */
void ag_setup_service(struct ag_link *l);

/*
 * Takes the link down in this agent: connections and circuits over it end or move; `why` is for the log.  The
 * port stays enabled, so the next ag_setup_check() may begin a set-up.
 */
void ag_setup_reset(struct ag_link *l, const char *why);

/*
 * Takes a link marked by ag_link_break(), so that l->broken says why, down at both ends: disables its port,
 * which is to be enabled again AG_RETRY_NS after `now`.
 */
void ag_setup_cut(struct ag_link *l, int64_t now);

/*
 * Continues the set-up of a link that is not up, or begins it again.  Returns the next deadline, U_NEVER
 * without a set-up.
 */
int64_t ag_setup_timers(struct ag_link *l, int64_t now);

#endif
