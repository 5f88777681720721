/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the topology of this machine by hwloc, a library that is loaded only when this is called. */
#ifndef U_TOPO_READ_H
#define U_TOPO_READ_H

#include "u_topo.h"

#define U_TOPO_ERROR 160

/*
 * Reads the machine, or with `synthetic` the machine that hwloc makes of such a description, and gives
 * it to the caller, who frees it with free().  Returns 0, or an error with a line that says what is missing:
 * -ENOENT without hwloc, -EIO if it fails or finds no processors, -EINVAL for a bad description, -ENOMEM; *out is as
 * before.
 */
int u_topo_read(const char *synthetic, struct u_topo **out, char error[U_TOPO_ERROR]);

#endif
