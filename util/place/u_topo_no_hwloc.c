/* SPDX-License-Identifier: BSD-2-Clause */
/* Stands in for u_topo_hwloc.c in a build without the headers of hwloc. */
#include <errno.h>
#include <stdio.h>

#include "u_topo_read.h"

/* Returns -ENOENT with a line, always. */
int u_topo_read(const char *synthetic, struct u_topo **out, char error[U_TOPO_ERROR])
{
	snprintf(error, U_TOPO_ERROR,
		 "this build of Viaduct has no hwloc; processors can be named by "
		 "their numbers");
	return -ENOENT;
}
