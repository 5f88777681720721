/* SPDX-License-Identifier: BSD-2-Clause */
/* st_parting.h - a closed socket that the other end might still write to, as in tests/model/sock_parting.pml */
#ifndef ST_PARTING_H
#define ST_PARTING_H

#include "st_paths.h"

/*
 * Under rx and tx, when the program has closed the stream or the process ends.  The kernel answers what comes for a
 * closed socket by a reset, and drops what it has not sent yet.  So neither the socket nor the VI may end before a
 * token or a mark that is under way has come, which the helper reads, and before the other end knows by a word in its
 * memory that nobody reads: it sends no mark when the VI is lost.  True: that is still due.
 */
bool st_parting_due(struct st_stream *s);
/* The helper's, for a closed stream: does what is due.  True: socket and VI stay.  Takes rx and tx. */
bool st_parting_step(struct st_stream *s);

#endif
