/* SPDX-License-Identifier: BSD-2-Clause */
/* st_step.h - what the helper's thread does for a stream */
#ifndef ST_STEP_H
#define ST_STEP_H

#include "st_paths.h"

/* One round of everything; when to come again, or ST_NEVER: it needs no looking after. */
uint64_t st_step(struct st_stream *s, uint64_t now);
/*
 * Gives the VI and the ring back, whatever is under way: no direction is on the ring then, the phase is NONE, and
 * sleepers are woken.  Waits for the NIC; takes rx, tx and the wait object's lock; does nothing without a VI.
 */
void st_drop_link(struct st_stream *s);

#endif
