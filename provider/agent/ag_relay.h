/* SPDX-License-Identifier: BSD-2-Clause */
/* Records of other hosts that go through this one, and the circuits that they make and end. */
#ifndef AG_RELAY_H
#define AG_RELAY_H

#include <stdbool.h>

#include "ag_link.h"
#include "ag_state.h"

/*
 * Passes on a checked record whose path goes on from here, or drops it.  0, or -EAGAIN: a slice
 * that it names has not arrived, and this is not the last chance.
 */
int ag_relay_record(struct ag_link *l, const void *msg, bool last_chance);

/*
 * The link is down: tells the ends at the other side of its circuits, and frees the circuits for which no
 * record is awaited any more.
 */
void ag_relay_link_down(struct ag_link *l);

/* Stops circuits for which a transfer thread found that a node broke the protocol, and tells both ends of each. */
void ag_relay_settle(struct ag_agent *a);

#endif
