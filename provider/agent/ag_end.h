/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ending a connection: taking it from its process, freeing it, and telling the process that it is
 * lost.
 */
#ifndef AG_END_H
#define AG_END_H

#include "ag_conn.h"
#include "w_ctl.h"

/* Takes an end from its process, if it has one, and ends the shares of memory that were named over it. */
void ag_end_detach(struct ag_conn *conn);

/* Frees an end and all that it has.  Its process is not told; no record is sent but the refusal of a pending RESUME. */
void ag_end_free(struct ag_conn *conn);

/* Tells its process, if it has one, that the connection is lost. */
void ag_end_tell_lost(struct ag_conn *conn, enum w_lost reason);

#endif
