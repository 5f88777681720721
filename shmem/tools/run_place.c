/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>

#include "run_place.h"

#define PROCESSORS_MAX 16384

unsigned int run_place_host(const struct run_options *o, int pe)
{
	int hosts = o->hosts != 0 ? o->hosts : 1;

	if (o->map == RUN_BLOCK)
		return (unsigned int)((long)pe * hosts / o->np);
	return (unsigned int)(pe % hosts);
}

/* The n-th of the set, from 0, which has more. */
static int nth(const cpu_set_t *set, size_t bytes, int n)
{
	int cpu = 0;

	for (;; cpu++) {
		if (CPU_ISSET_S((size_t)cpu, bytes, set) && n-- == 0)
			return cpu;
	}
}

int run_place_bind(int pe)
{
	size_t bytes = CPU_ALLOC_SIZE(PROCESSORS_MAX);
	cpu_set_t *set = CPU_ALLOC(PROCESSORS_MAX);
	int cpu, rc = 0;

	if (set == NULL)
		return -ENOMEM;
	CPU_ZERO_S(bytes, set);
	if (sched_getaffinity(0, bytes, set) != 0) {
		rc = -errno;
	} else {
		cpu = nth(set, bytes, pe % CPU_COUNT_S(bytes, set));
		CPU_ZERO_S(bytes, set);
		CPU_SET_S((size_t)cpu, bytes, set);
		if (sched_setaffinity(0, bytes, set) != 0)
			rc = -errno;
	}
	CPU_FREE(set);
	return rc;
}
