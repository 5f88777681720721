/* SPDX-License-Identifier: BSD-2-Clause */
/* Accepting the connections of other PEs. */
#ifndef OSH_ACCEPT_H
#define OSH_ACCEPT_H

#include "osh_conn.h"

/* Begins to accept connections, after osh_conn_init().  0 or -errno. */
int osh_accept_begin(void);
/* Accepts no more, and ends those that are left. */
void osh_accept_end(void);

/* Takes a connection that this PE made over; false: it made none, or it was taken. */
bool osh_accept_take(int pe, VIP_VI_HANDLE *vi);

#endif
