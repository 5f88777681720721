/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run_place.h"
#include "u_place_bind.h"

unsigned int run_place_host(const struct run_options *o, int pe)
{
	int hosts = o->hosts != 0 ? o->hosts : 1;

	if (o->map == RUN_BLOCK)
		return (unsigned int)((long)pe * hosts / o->np);
	return (unsigned int)(pe % hosts);
}

/* The machine of PE n of those for which there are slots, in groups. */
static int in_groups(const struct run_machines *m, int n)
{
	int i = 0;

	while (n >= m->at[i].slots)
		n -= m->at[i++].slots;
	return i;
}

/* As in_groups(), but in turn: in each round the machines that have slots left. */
static int in_turn(const struct run_machines *m, int n)
{
	int round = 0, i = 0;

	for (;; i++) {
		if (i == m->n) {
			i = 0;
			round++;
		}
		if (m->at[i].slots > round && n-- == 0)
			return i;
	}
}

int run_place_machine(const struct run_options *o, int pe)
{
	int i, slots = 0;

	for (i = 0; i < o->machines.n; i++)
		slots += o->machines.at[i].slots;
	if (o->map == RUN_BLOCK)
		return in_groups(&o->machines, pe % slots);
	return in_turn(&o->machines, pe % slots);
}

/* What this process may use, before it starts PEs. */
static struct u_cpuset allowed;
static struct u_topo *machine;

/* Adds to `allowed` the processors that this process may use. 0 or -errno. */
static int find_allowed(void)
{
	size_t bytes = CPU_ALLOC_SIZE(U_CPUSET_END);
	cpu_set_t *set = CPU_ALLOC(U_CPUSET_END);
	int rc = set == NULL ? -ENOMEM : 0;

	if (rc == 0 && sched_getaffinity(0, bytes, set) != 0)
		rc = -errno;
	for (int cpu = 0; rc == 0 && cpu < U_CPUSET_END; cpu++) {
		if (CPU_ISSET_S((size_t)cpu, bytes, set))
			u_cpuset_add(&allowed, cpu);
	}
	CPU_FREE(set);
	return rc;
}

/* Makes `machine` one of which nothing is known: each processor of `allowed` is a core. 0 or -ENOMEM. */
static int flat_machine(void)
{
	int cpu, n = u_cpuset_count(&allowed);

	machine = calloc(1, sizeof(*machine) + (size_t)n * sizeof(machine->cpus[0]));
	if (machine == NULL)
		return -ENOMEM;
	for (cpu = u_cpuset_next(&allowed, 0); cpu >= 0; cpu = u_cpuset_next(&allowed, cpu + 1)) {
		machine->cpus[machine->count] = (struct u_topo_cpu){ .os = cpu,
								     .core = machine->count,
								     .cache = U_TOPO_NONE };
		machine->count++;
	}
	return 0;
}

/* Must it be known how processors belong together, to find such parts? */
static bool needs_topology(enum u_topo_part part)
{
	return part != U_TOPO_CPU && part != U_TOPO_CORE;
}

int run_place_open(const struct run_options *o, char error[U_TOPO_ERROR])
{
	struct u_cpuset out;
	int rc = find_allowed();

	if (rc == 0)
		rc = u_topo_read(NULL, &machine, error);
	else
		snprintf(error, U_TOPO_ERROR, "%s", strerror(-rc));
	if (rc == -ENOENT && !needs_topology(o->bind_part) && !needs_topology(o->map_by)) {
		rc = flat_machine();
		snprintf(error, U_TOPO_ERROR, "no memory");
	}
	if (rc != 0)
		return rc;
	rc = u_place_bind(machine, &allowed, o->bind_part, o->map_by, 0, &out);
	if (rc != 0)
		snprintf(error, U_TOPO_ERROR,
			 "the kernel does not tell of such parts of this machine");
	return rc;
}

int run_place_bind(const struct run_options *o, int n)
{
	size_t bytes = CPU_ALLOC_SIZE(U_CPUSET_END);
	cpu_set_t *set = CPU_ALLOC(U_CPUSET_END);
	struct u_cpuset cpus;
	int cpu, rc;

	if (set == NULL)
		return -ENOMEM;
	CPU_ZERO_S(bytes, set);
	rc = u_place_bind(machine, &allowed, o->bind_part, o->map_by, (unsigned int)n, &cpus);
	if (rc == 0) {
		for (cpu = u_cpuset_next(&cpus, 0); cpu >= 0; cpu = u_cpuset_next(&cpus, cpu + 1))
			CPU_SET_S((size_t)cpu, bytes, set);
		if (sched_setaffinity(0, bytes, set) != 0)
			rc = -errno;
	}
	CPU_FREE(set);
	errno = -rc;
	return rc;
}
