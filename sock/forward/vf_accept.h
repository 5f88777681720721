/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * accept() of a program.
 *
 * The connection is accepted here, from a copy of the program's own listener: so the kernel's queue tells the program's
 * poll() what is there, and limits it.  If it is from a host of the fabric the program gets the end of a local
 * connection in its place, else the connection itself.
 *
 * While a call waits for a connection, this process has the listener open; a call that a signal or the end of its
 * process has made void is noticed by vf_accept_check().
 */
#ifndef VF_ACCEPT_H
#define VF_ACCEPT_H

#include "vf_notify.h"

void vf_accept(const struct vf_call *call);
/* Looks at calls that wait.  Milliseconds until it should be called again; -1: there are none. */
int vf_accept_check(void);

#endif
