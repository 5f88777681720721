/* SPDX-License-Identifier: BSD-2-Clause */
/* The processors that a launcher gives to each process of a machine. */
#ifndef U_PLACE_BIND_H
#define U_PLACE_BIND_H

#include "u_topo.h"

/*
 * Process i goes to part i of the kind `map`, in turn, and within that to the next part of the kind `bind`;
 * it gets the allowed processors of this part, without being bound.  Returns 0; or -ENODATA if such a part is not
 * known, or no processor of the machine is allowed, with *out as before.
 */
int u_place_bind(const struct u_topo *topo, const struct u_cpuset *allowed, enum u_topo_part bind,
		 enum u_topo_part map, unsigned int process, struct u_cpuset *out);

#endif
