/* SPDX-License-Identifier: BSD-2-Clause */
#include "u_load.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define FIELDS 8 /* user, nice, system, idle, iowait, irq, softirq, steal */
#define IDLE 3
#define IOWAIT 4

/* Takes the line of one processor, and leaves any other. */
static void take_line(const char *line, struct u_load *out)
{
	unsigned long long t[FIELDS] = { 0 };
	uint64_t all = 0;
	int cpu;

	if (sscanf(line, "cpu%d %llu %llu %llu %llu %llu %llu %llu %llu", &cpu, &t[0], &t[1], &t[2],
		   &t[3], &t[4], &t[5], &t[6], &t[7]) < 2 + IDLE ||
	    cpu < 0 || cpu >= U_CPUSET_END)
		return;
	for (int i = 0; i < FIELDS; i++)
		all += t[i];
	out->all[cpu] = all;
	out->used[cpu] = all - t[IDLE] - t[IOWAIT];
}

int u_load_read(const char *path, struct u_load *out)
{
	FILE *file = fopen(path, "re");
	char line[512];
	uint64_t all = 0;

	if (file == NULL)
		return -errno;
	memset(out, 0, sizeof(*out));
	while (fgets(line, sizeof(line), file) != NULL && strncmp(line, "cpu", 3) == 0)
		take_line(line, out);
	fclose(file);
	for (int cpu = 0; cpu < U_CPUSET_END; cpu++)
		all |= out->all[cpu];
	return all != 0 ? 0 : -ENODATA;
}

void u_load_between(const struct u_load *before, const struct u_load *after,
		    uint16_t out[U_CPUSET_END])
{
	for (int cpu = 0; cpu < U_CPUSET_END; cpu++) {
		uint64_t all = after->all[cpu] - before->all[cpu];
		uint64_t used = after->used[cpu] - before->used[cpu];

		/* A processor that went offline or came back, and counters of the kernel that went back. */
		if (before->all[cpu] == 0 || after->all[cpu] <= before->all[cpu] || used > all)
			out[cpu] = 1000;
		else
			out[cpu] = (uint16_t)(used * 1000 / all);
	}
}

int u_load_read_thread(const char *folder, int tid, struct u_load_thread *out)
{
	unsigned long long user, system, started;
	char path[256], line[1024] = "";
	const char *end;
	FILE *file;

	snprintf(path, sizeof(path), "%.200s/%d/stat", folder, tid);
	file = fopen(path, "re");
	if (file == NULL)
		return errno == ENOENT ? -ESRCH : -errno;
	if (fgets(line, sizeof(line), file) == NULL)
		line[0] = '\0';
	fclose(file);
	/* The name, in brackets, may have any characters. */
	end = strrchr(line, ')');
	if (end == NULL ||
	    sscanf(end + 1,
		   " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d %*d %*d %llu",
		   &user, &system, &started) != 3)
		return -ESRCH;
	out->started = started;
	out->used = user + system;
	return 0;
}
