/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * connect() of a program.
 *
 * First a connection to the peer is made here.  Once it exists the program's own socket, of which this process takes a
 * copy, is connected with a local one: so its options, its modes and the sets that it is in stay as they are.  The call
 * then ends as the kernel's does.  Whenever that is not possible, or lasts longer than VF_CONNECT_MS, the kernel
 * executes the program's call.
 */
#ifndef VF_CONNECT_H
#define VF_CONNECT_H

#include "vf_notify.h"

#define VF_CONNECT_MS 200

void vf_connect(const struct vf_call *call);
/* Gives up attempts that last too long.  Milliseconds until it should be called again; -1: there are none. */
int vf_connect_check(void);

#endif
