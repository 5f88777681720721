/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The first message of a process and its answer, and freeing all objects of a process that leaves.
 */
#ifndef AG_SESSION_H
#define AG_SESSION_H

#include "ag_client.h"
#include "ag_state.h"
#include "w_ctl.h"

/*
 * HELLO: notes the kind and the name of the program, in which unusual characters become '_', and answers with
 * WELCOME or a refusal, after which the client leaves.  The version was checked before.
 */
void ag_session_hello(struct ag_client *c, const struct w_hello *m);

/* A message of another version: tells the process so, and closes its socket when that was sent. */
void ag_session_bad_version(struct ag_client *c, const void *msg);

/* Ends a process's waiters, connections and memory, and frees its client.  The other ends are told W_LOST_PROCESS. */
void ag_session_end(struct ag_client *c);

/*
 * Ends every client that was dropped, or that leaves and was sent all that was queued for it, as
 * ag_session_end() does.
 */
void ag_session_reap(struct ag_agent *a);

#endif
