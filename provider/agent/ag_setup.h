/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bringing links up through scratchpads, and taking them down: this is the only unit that tells all
 * others when a link is down.
 */
#ifndef AG_SETUP_H
#define AG_SETUP_H

#include <stdint.h>

#include "ag_link.h"

/* Compares the link with its port and the neighbour's words, and sets it up or takes it down. */
void ag_setup_check(struct ag_link *l);

/* Makes the port handle its events, calls ag_setup_check(), and receives records. */
void ag_setup_service(struct ag_link *l);

/* Takes the link down, for this agent: connections and circuits over it end or move. */
void ag_setup_reset(struct ag_link *l, const char *why);

/* Takes a link marked by ag_link_break() down at both ends; it may come up again soon. */
void ag_setup_cut(struct ag_link *l, int64_t now);

/* Continues the set-up of a link that is not up.  Returns the next deadline. */
int64_t ag_setup_timers(struct ag_link *l, int64_t now);

#endif
