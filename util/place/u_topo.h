/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The topology of a machine, for placement: for each processor that is online, its core, the cache
 * that its core shares, its package and its memory node.
 */
#ifndef U_TOPO_H
#define U_TOPO_H

#include <stdbool.h>
#include <stdint.h>

#include "u_cpuset.h"

#define U_TOPO_NONE (-1)

struct u_topo_cpu {
	int os;		 /* the number that Linux gives it */
	int core;	 /* cores, caches and packages are numbered from 0 */
	int cache;	 /* its largest cache within one package; U_TOPO_NONE: not known */
	int cache_level; /* of that cache, such as 3 */
	int package;
	int node; /* the number that Linux gives the memory node */
};

struct u_topo {
	int count;
	struct u_topo_cpu cpus[];
};

enum u_topo_part { U_TOPO_CPU, U_TOPO_CORE, U_TOPO_CACHE, U_TOPO_PACKAGE, U_TOPO_NODE };

/* The number of the part that the processor of that index is in; for U_TOPO_CPU the index; or U_TOPO_NONE. */
int u_topo_number(const struct u_topo *topo, int index, enum u_topo_part part);

/* Adds to *out the processors of the machine that share such a part with one of `of`, those themselves too. */
void u_topo_around(const struct u_topo *topo, const struct u_cpuset *of, enum u_topo_part part,
		   struct u_cpuset *out);

/* The number of different such parts that the processors of a set are in; U_TOPO_NONE counts as one. */
int u_topo_spread(const struct u_topo *topo, const struct u_cpuset *set, enum u_topo_part part);

/* The index of the processor that has this number in Linux, or -1. */
int u_topo_find(const struct u_topo *topo, int os);

/* Are the caches of all these processors known? Those that the machine has not got are not looked at. */
bool u_topo_caches_known(const struct u_topo *topo, const struct u_cpuset *set);

/* Adds the machine's processors to *out, allowed or not. */
void u_topo_all(const struct u_topo *topo, struct u_cpuset *out);

#endif
