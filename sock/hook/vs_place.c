// SPDX-License-Identifier: BSD-2-Clause
#include "vs_place.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <vipl.h>
#include <vipl_ext.h>

#include "vs_real.h"

#define PASSES 8   /* over the list of threads, which may make others during a pass */
#define OURS "vi-" /* how the names of the library's threads begin */

/* A list such as "0,2-5", up to what is none; false: it names no processor. */
static bool read_cpus(const char *text, cpu_set_t *set)
{
	unsigned long from, to;
	char *end;

	CPU_ZERO(set);
	while (*text >= '0' && *text <= '9') {
		from = to = strtoul(text, &end, 10);
		if (*end == '-')
			to = strtoul(end + 1, &end, 10);
		for (; from <= to && from < CPU_SETSIZE; from++)
			CPU_SET(from, set);
		text = *end == ',' ? end + 1 : end;
	}
	return CPU_COUNT(set) > 0;
}

/* The thread is one of the library's, by its name. */
static bool is_ours(int tid)
{
	char path[64], name[32] = "";
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/comm", tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd >= 0 ? vs_real.read(fd, name, sizeof(name) - 1) : -1;
	if (fd >= 0)
		vs_real.close(fd);
	return n > 0 && strncmp(name, OURS, strlen(OURS)) == 0;
}

/* Moves all threads but the library's to these processors.  True: it has moved one. */
static bool move_all(const cpu_set_t *to)
{
	DIR *d = opendir("/proc/self/task");
	struct dirent *e;
	bool moved = false;
	cpu_set_t now;
	int tid;

	while (d && (e = readdir(d)) != NULL) {
		tid = (int)strtol(e->d_name, NULL, 10);
		if (tid <= 0 || sched_getaffinity(tid, sizeof(now), &now) != 0 ||
		    CPU_EQUAL(&now, to) || is_ours(tid))
			continue;
		moved |= sched_setaffinity(tid, sizeof(*to), to) == 0;
	}
	if (d)
		closedir(d);
	return moved;
}

void vs_place_threads(void *nic)
{
	VIPX_PLACEMENT p = { .Size = sizeof(p) };
	cpu_set_t to;
	int i;

	if (VipxQueryPlacement(nic, VIPX_ROLE_APPLICATION, &p) != VIP_SUCCESS ||
	    !read_cpus(p.Cpus, &to))
		return;
	for (i = 0; i < PASSES && move_all(&to); i++)
		;
}
