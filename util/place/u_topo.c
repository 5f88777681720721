/* SPDX-License-Identifier: BSD-2-Clause */
#include "u_topo.h"

int u_topo_number(const struct u_topo *topo, int index, enum u_topo_part part)
{
	const struct u_topo_cpu *cpu = &topo->cpus[index];

	switch (part) {
	case U_TOPO_CORE:
		return cpu->core;
	case U_TOPO_CACHE:
		return cpu->cache;
	case U_TOPO_PACKAGE:
		return cpu->package;
	case U_TOPO_NODE:
		return cpu->node;
	default:
		return index;
	}
}

/* The index of the first processor of the set, in the order of the machine, that is in the part `number`, or -1. */
static int first_in(const struct u_topo *topo, const struct u_cpuset *set, enum u_topo_part part,
		    int number)
{
	for (int i = 0; i < topo->count; i++) {
		if (u_topo_number(topo, i, part) == number && u_cpuset_has(set, topo->cpus[i].os))
			return i;
	}
	return -1;
}

void u_topo_around(const struct u_topo *topo, const struct u_cpuset *of, enum u_topo_part part,
		   struct u_cpuset *out)
{
	for (int i = 0; i < topo->count; i++) {
		int number = u_topo_number(topo, i, part);

		if (number != U_TOPO_NONE && first_in(topo, of, part, number) >= 0)
			u_cpuset_add(out, topo->cpus[i].os);
	}
}

int u_topo_spread(const struct u_topo *topo, const struct u_cpuset *set, enum u_topo_part part)
{
	int i, count = 0;

	for (i = 0; i < topo->count; i++) {
		count += u_cpuset_has(set, topo->cpus[i].os) &&
			 first_in(topo, set, part, u_topo_number(topo, i, part)) == i;
	}
	return count;
}

int u_topo_find(const struct u_topo *topo, int os)
{
	for (int i = 0; i < topo->count; i++) {
		if (topo->cpus[i].os == os)
			return i;
	}
	return -1;
}

bool u_topo_caches_known(const struct u_topo *topo, const struct u_cpuset *set)
{
	for (int i = 0; i < topo->count; i++) {
		if (u_cpuset_has(set, topo->cpus[i].os) && topo->cpus[i].cache == U_TOPO_NONE)
			return false;
	}
	return true;
}

void u_topo_all(const struct u_topo *topo, struct u_cpuset *out)
{
	for (int i = 0; i < topo->count; i++)
		u_cpuset_add(out, topo->cpus[i].os);
}
