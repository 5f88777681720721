/* SPDX-License-Identifier: BSD-2-Clause */
#include "u_place_bind.h"

#include <errno.h>
#include <string.h>

/*
 * Gives the processors of the set, not empty and all in the topology, that are in its part number n, from 0; after the
 * last part comes the first.
 */
static void nth(const struct u_topo *topo, const struct u_cpuset *set, enum u_topo_part part,
		unsigned int n, struct u_cpuset *out)
{
	struct u_cpuset rest = *set, one;
	int i;

	memset(out, 0, sizeof(*out));
	n %= (unsigned int)u_topo_spread(topo, set, part);
	for (i = 0; i < topo->count; i++) {
		if (!u_cpuset_has(&rest, topo->cpus[i].os))
			continue;
		memset(out, 0, sizeof(*out));
		memset(&one, 0, sizeof(one));
		u_cpuset_add(&one, topo->cpus[i].os);
		u_topo_around(topo, &one, part, out);
		u_cpuset_and(out, set);
		if (n-- == 0)
			return;
		u_cpuset_less(&rest, out);
	}
}

int u_place_bind(const struct u_topo *topo, const struct u_cpuset *allowed, enum u_topo_part bind,
		 enum u_topo_part map, unsigned int process, struct u_cpuset *out)
{
	struct u_cpuset there = *allowed, all = { { 0 } }, within, chosen, whole = { { 0 } };
	unsigned int parts;

	u_topo_all(topo, &all);
	u_cpuset_and(&there, &all);
	if (u_cpuset_empty(&there))
		return -ENODATA;
	if ((bind == U_TOPO_CACHE || map == U_TOPO_CACHE) && !u_topo_caches_known(topo, &there))
		return -ENODATA;
	parts = (unsigned int)u_topo_spread(topo, &there, map);
	nth(topo, &there, map, process % parts, &within);
	if (u_cpuset_empty(&within))
		return -ENODATA;
	nth(topo, &within, bind, process / parts, &chosen);
	u_topo_around(topo, &chosen, bind, &whole);
	u_cpuset_and(&whole, &there);
	if (u_cpuset_empty(&whole))
		return -ENODATA;
	*out = whole;
	return 0;
}
