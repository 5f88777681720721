/* SPDX-License-Identifier: BSD-2-Clause */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "st_core.h"
#include "st_process.h"

#define PATH "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list"

/* Reads a list such as "0,32" or "2-3"; false: there is none. */
static bool read_list(const char *text, cpu_set_t *out)
{
	unsigned long from, to;
	char *end;

	CPU_ZERO(out);
	while (isdigit((unsigned char)*text)) {
		from = to = strtoul(text, &end, 10);
		if (*end == '-')
			to = strtoul(end + 1, &end, 10);
		for (; from <= to && from < CPU_SETSIZE; from++)
			CPU_SET(from, out);
		text = *end == ',' ? end + 1 : end;
	}
	return CPU_COUNT(out) > 0;
}

/* The processors of the core of this one; false: the kernel does not tell. */
static bool core_of(int cpu, cpu_set_t *out)
{
	char path[sizeof(PATH) + 16], text[128];

	snprintf(path, sizeof(path), PATH, cpu);
	return st_sys_read_line(path, text, sizeof(text)) > 0 && read_list(text, out) &&
	       CPU_ISSET(cpu, out);
}

/* Gives the core of the calling thread; its processors, if they are not one core. */
static void own_core(struct st_core *out)
{
	cpu_set_t core, both;
	int cpu = 0;

	if (sched_getaffinity(0, sizeof(out->cpus), &out->cpus) != 0)
		return;
	while (cpu < CPU_SETSIZE && !CPU_ISSET(cpu, &out->cpus))
		cpu++;
	if (cpu == CPU_SETSIZE || !core_of(cpu, &core))
		return;
	CPU_OR(&both, &out->cpus, &core);
	if (!CPU_EQUAL(&both, &core))
		return;
	out->one = true;
	out->cpus = core;
}

void st_core_place(unsigned number, struct st_core *out)
{
	VIPX_PLACEMENT place = { .Size = sizeof(place) };

	*out = (struct st_core){ 0 };
	if (VipxPlaceThread(st_process.nic, VIPX_ROLE_SERVICE, number, st_process.config.pollers,
			    VIPX_PLACE_POLLS, &place) == VIP_SUCCESS &&
	    place.Got == VIPX_PLACE_SAME_CORE)
		own_core(out);
}

/* That processor is one of the core's. */
static bool has(const struct st_core *core, int cpu)
{
	return cpu >= 0 && cpu < CPU_SETSIZE && CPU_ISSET(cpu, &core->cpus);
}

unsigned st_core_pick(const struct st_core *cores, unsigned n, unsigned own, bool *here)
{
	int cpu = sched_getcpu();
	unsigned at = own;

	for (unsigned i = 0; i < n && !has(&cores[at], cpu); i++) {
		if (has(&cores[i], cpu))
			at = i;
	}
	*here = cores[at].one && has(&cores[at], cpu);
	return at;
}

bool st_core_any_single(const struct st_core *cores, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		if (cores[i].one && CPU_COUNT(&cores[i].cpus) == 1)
			return true;
	}
	return false;
}
