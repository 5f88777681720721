/* SPDX-License-Identifier: BSD-2-Clause */
/* The first message of a process and its answer, and what is given up when the process leaves. */
#ifndef AG_SESSION_H
#define AG_SESSION_H

#include "ag_client.h"
#include "ag_state.h"
#include "w_ctl.h"

/* HELLO: answered by WELCOME. */
void ag_session_hello(struct ag_client *c, const struct w_hello *m);

/* A message of another version: the process is told so, and its socket closed. */
void ag_session_bad_version(struct ag_client *c, const void *msg);

/* Ends all that a process has, and frees its client. */
void ag_session_end(struct ag_client *c);

/* Does so with every client that was dropped or has left. */
void ag_session_reap(struct ag_agent *a);

#endif
