/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * st_quiet.h - streams that the helper does not look at until something happens
 *
 * A stream on a VI in both directions, on which nothing has moved since the helper's last look, needs no more looks: a
 * thread that takes its entries, or posts a descriptor that does not complete at once, calls st_look_after().  So the
 * helper only sees to it that entries are taken, by the descriptor of the completion queue.  tests/model/sock_quiet.pml
 * is the model.
 *
 * Only the helper's thread calls these, but st_quiet_close() is called when that has ended, or in a child of fork().
 */
#ifndef ST_QUIET_H
#define ST_QUIET_H

#include "st_process.h"

#define ST_IDLE_NS 500000000u /* between looks at a stream that does not change its path */

/* All idle streams are due at one time: a wake of the helper costs more than a look. */
static inline uint64_t st_next_idle(uint64_t now)
{
	return (now / ST_IDLE_NS + 1) * ST_IDLE_NS;
}

/* Makes the descriptor.  Without it, as where none is left, no stream is quiet. */
void st_quiet_open(void);
/* Closes the descriptor, and ends the quiet of all streams; under the process lock, or in the one thread of a child. */
void st_quiet_close(void);
int st_quiet_fd(void); /* readable when st_quiet_step() has something to do */

/* Makes the stream quiet, under rx and tx, when it has a VI: false, it is not, and has to be looked at. */
bool st_quiet_begin(struct st_stream *s);
/* Ends that; does nothing for a stream that is not quiet. */
void st_quiet_end(struct st_stream *s);
/* Takes entries that came; watches those again that were not watched; returns when to come again. */
uint64_t st_quiet_step(uint64_t now);

#endif
