/* SPDX-License-Identifier: BSD-2-Clause */
/* st_error.h - the error of a stream */
#ifndef ST_ERROR_H
#define ST_ERROR_H

#include "st_link.h"

/*
 * The connection ends with ECONNRESET here, kept for the program, and by the kernel at the other end; sleepers wake,
 * and the helper looks at the stream.  Any lock may be held.  Only the first call counts.
 */
void st_reset(struct st_stream *s);
/* Keeps an error of the kernel's for the program, unless one is kept already, and wakes sleepers. */
void st_keep_error(struct st_stream *s, int positive);
/* Takes the kept error: negative, or 0. */
int st_give_error(struct st_stream *s);

#endif
