/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests of processes about connections, and the end of connections whose process leaves or whose
 * link is down.  The answers of the other agent come to ag_remote.c.
 */
#ifndef AG_CONNECT_H
#define AG_CONNECT_H

#include "ag_client.h"
#include "ag_conn.h"
#include "ag_link.h"
#include "ag_state.h"
#include "w_ctl.h"

/* Handle W_LISTEN, W_UNLISTEN, W_CONNECT, W_CANCEL, W_ACCEPT, W_REJECT, W_CONFIRM and W_CLOSE of a process. */
void ag_connect_listen(struct ag_client *c, const struct w_connect *m);
void ag_connect_unlisten(struct ag_client *c, const struct w_token *m);
void ag_connect_request(struct ag_client *c, const struct w_connect *m);
void ag_connect_cancel(struct ag_client *c, const struct w_token *m);
void ag_connect_accept(struct ag_client *c, const struct w_accept *m);
void ag_connect_reject(struct ag_client *c, const struct w_conn *m);
void ag_connect_confirm(struct ag_client *c, const struct w_conn *m);
void ag_connect_close(struct ag_client *c, const struct w_conn *m);

/*
 * Its process leaves a connection, in any state, for `reason`, of which the other agent is told.  The end is freed, or
 * waits without a process for the other end's last record; the caller uses it no more.  The process is not answered.
 */
void ag_connect_leave(struct ag_conn *conn, enum w_lost reason);

/*
 * The link is down: attempts over it move to another link or are refused with `why`, its connections are suspended or
 * lost, and offers that came over it are freed.
 */
void ag_connect_link_down(struct ag_link *l, const char *why);

/*
 * Ends connections that a process was told of and has not confirmed in time: at the other end a
 * peer waits, or the process of a server sends messages that nobody reads.  A process whose messages were not read
 * gets more time, once.  Returns the next deadline, or U_NEVER.
 */
int64_t ag_connect_timers(struct ag_agent *a, int64_t now);

#endif
