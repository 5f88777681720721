/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records of neighbours, and of this agent to itself: the path of each is checked, and it is passed
 * to the unit that it concerns.
 */
#ifndef AG_RECORD_H
#define AG_RECORD_H

#include <stdint.h>

#include "ag_link.h"
#include "ag_state.h"

/*
 * Handles records that the neighbour wrote, up to AG_CTL_BATCH of them, and returns credit.  Stops at one that
 * names a slice which has not arrived, and if the link breaks.  Does nothing unless the link is up.
 */
void ag_record_receive(struct ag_link *l);

/*
 * Writes records queued for the neighbour, and held requests, as many as there is credit for, and rings.  Does
 * nothing while the link is down or broken.
 */
void ag_record_pump(struct ag_link *l);

/* Handles the records that this agent queued for itself, also those that are queued meanwhile, until none is left. */
void ag_record_drain_self(struct ag_agent *a);

/*
 * Does what is due on a link that is up: see the timers of ag_ctl.h.  Also writes records, and receives if one
 * waits for its slice or the link seems silent.  Returns the next deadline.
 */
int64_t ag_record_timers(struct ag_link *l, int64_t now);

#endif
