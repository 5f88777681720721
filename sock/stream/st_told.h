/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * st_told.h - the list that st_wait_take() gives: streams with news whose entry is taken, and those on which a send has
 * found no room.  tests/model/sock_set.pml is the model.
 */
#ifndef ST_TOLD_H
#define ST_TOLD_H

#include "st_process.h"

/*
 * Lists the stream, which has a VI, with a reference, and wakes sleepers, unless it is listed already; under the lock
 * of w.
 */
void st_told_add(struct st_wait *w, struct st_stream *s);
/* As st_told_add(), but takes the lock; in a handler that has interrupted the holder it counts a change instead. */
void st_tell(struct st_stream *s);

#endif
