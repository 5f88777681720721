/* SPDX-License-Identifier: BSD-2-Clause */
/* Accepting the connections of other PEs. */
#ifndef OSH_ACCEPT_H
#define OSH_ACCEPT_H

#include "osh_conn.h"

/* Begins to accept connections, by the thread osh-serve, after osh_conn_init().  0 or -errno. */
int osh_accept_begin(void);
/* Accepts no more, waits for the threads that accept, and closes the connections that nobody has taken. */
void osh_accept_end(void);

/* Takes over a connection that PE `pe` made to this one: the caller has to close it. False: there is none yet. */
bool osh_accept_take(int pe, VIP_VI_HANDLE *vi);

#endif
