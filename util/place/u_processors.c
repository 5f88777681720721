/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "u_cpuset.h"
#include "u_processors.h"

#define THOUSANDTHS_MAX 1000000000

/* ---- affinity ---- */

/* Sets count and cpus from the affinity of the calling thread; leaves them where that cannot be read. */
static void read_affinity(struct u_processors *out)
{
	size_t bytes = CPU_ALLOC_SIZE(U_CPUSET_END);
	cpu_set_t *set = CPU_ALLOC(U_CPUSET_END);

	if (set != NULL && sched_getaffinity(0, bytes, set) == 0) {
		out->count = (uint32_t)CPU_COUNT_S(bytes, set);
		for (size_t cpu = 0; cpu < U_PROCESSORS_WORDS * 64; cpu++) {
			if (CPU_ISSET_S(cpu, bytes, set))
				out->cpus[cpu / 64] |= UINT64_C(1) << cpu % 64;
		}
	}
	CPU_FREE(set);
}

/* ---- the machine ---- */

/* The FNV-1a hash of the text. */
static uint64_t hash(const char *text)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	for (; *text != '\0'; text++)
		h = (h ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
	return h;
}

/* Reads the first line of a file, with its '\n', cut to `size`.  False: there is none. */
static bool read_line(const char *path, char *line, int size)
{
	FILE *f = fopen(path, "re");
	bool ok = f != NULL && fgets(line, size, f) != NULL;

	if (f != NULL)
		fclose(f);
	return ok;
}

/* Returns a number of this machine and boot; 0: not known. */
static uint64_t machine_id(void)
{
	struct utsname names;
	char line[64];

	if (read_line("/proc/sys/kernel/random/boot_id", line, sizeof(line)))
		return hash(line);
	return uname(&names) == 0 ? hash(names.nodename) : 0;
}

/* ---- quotas of control groups ---- */

/* A line of mountinfo: the part of the hierarchy that is mounted, and the place. */
struct mount {
	char root[PATH_MAX], point[PATH_MAX];
	bool second; /* version 2 of control groups */
};

/* Is the word in a list with commas, which ends with the line or the text? */
static bool has_word(const char *list, const char *word)
{
	size_t n;

	for (;; list += n + 1) {
		n = strcspn(list, ",\n");
		if (n == strlen(word) && strncmp(list, word, n) == 0)
			return true;
		if (list[n] != ',')
			return false;
	}
}

/* Reads a line of mountinfo; false unless it is a hierarchy that may limit processor time. */
static bool take_mount(char *line, struct mount *m)
{
	char *rest = strstr(line, " - "), options[256];

	if (rest == NULL || sscanf(line, "%*s %*s %*s %4095s %4095s", m->root, m->point) != 2)
		return false;
	m->second = strncmp(rest, " - cgroup2 ", 11) == 0;
	if (m->second)
		return true;
	return strncmp(rest, " - cgroup ", 10) == 0 &&
	       sscanf(rest, " - cgroup %*s %255s", options) == 1 && has_word(options, "cpu");
}

/* Finds the group of the process (`proc`: its folder of /proc) in such a hierarchy: a line of its file "cgroup". */
static bool find_group(const char *proc, bool second, char path[PATH_MAX])
{
	char name[PATH_MAX], *line = NULL, *list, *at;
	bool found = false;
	size_t size = 0;
	FILE *f;

	if ((size_t)snprintf(name, sizeof(name), "%s/cgroup", proc) >= sizeof(name))
		return false;
	f = fopen(name, "re");
	while (f != NULL && !found && getline(&line, &size, f) > 0) {
		line[strcspn(line, "\n")] = '\0';
		list = strchr(line, ':');
		at = list != NULL ? strchr(list + 1, ':') : NULL;
		if (at == NULL)
			continue;
		*at++ = '\0';
		found = second ? list[1] == '\0' : has_word(list + 1, "cpu");
		if (found)
			snprintf(path, PATH_MAX, "%s", at);
	}
	free(line);
	if (f != NULL)
		fclose(f);
	return found;
}

/* Reads the number at the beginning of the file folder/name. False: there is none, and *out is as before. */
static bool read_number(const char *folder, const char *name, long long *out)
{
	char path[PATH_MAX + 32], line[64];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return read_line(path, line, sizeof(line)) && sscanf(line, "%lld", out) == 1;
}

/* The quota of one group, in thousandths of a processor; 0: none. */
static uint32_t quota_of(const char *folder, bool second)
{
	char path[PATH_MAX + 32], line[64];
	long long quota = 0, period = 0;

	snprintf(path, sizeof(path), "%s/cpu.max", folder);
	if (second && (!read_line(path, line, sizeof(line)) ||
		       sscanf(line, "%lld %lld", &quota, &period) != 2))
		return 0;
	if (!second && (!read_number(folder, "cpu.cfs_quota_us", &quota) ||
			!read_number(folder, "cpu.cfs_period_us", &period)))
		return 0;
	if (quota <= 0 || period <= 0 || quota / period >= THOUSANDTHS_MAX / 1000)
		return 0;
	quota = quota * 1000 / period;
	return quota == 0 ? 1 : (uint32_t)quota;
}

/* Returns a number of the control group that is not 0; 1 if the folder cannot be read. */
static uint64_t id_of(const char *folder)
{
	struct stat st;

	if (stat(folder, &st) != 0)
		return 1;
	return ((uint64_t)st.st_dev << 32 ^ (uint64_t)st.st_ino) | UINT64_C(1) << 63;
}

/* Walks from the group up to the mount, and replaces *group and *quota, 0 for none, where one has a smaller quota. */
static void walk(const struct mount *m, const char *path, uint64_t *group, uint32_t *quota)
{
	size_t root = strcmp(m->root, "/") == 0 ? 0 : strlen(m->root), least = strlen(m->point);
	char folder[PATH_MAX];
	uint32_t found;

	/* A path outside the mounted part is that of a container's parent: the mount itself is the group. */
	if (strncmp(path, m->root, root) != 0 || (path[root] != '/' && path[root] != '\0'))
		path = "";
	else
		path += root;
	if ((size_t)snprintf(folder, sizeof(folder), "%s%s", m->point, path) >= sizeof(folder))
		return;
	for (;;) {
		found = quota_of(folder, m->second);
		if (found != 0 && (*quota == 0 || found < *quota)) {
			*quota = found;
			*group = id_of(folder);
		}
		if (strlen(folder) <= least)
			return;
		*strrchr(folder, '/') = '\0';
	}
}

bool u_processors_quota(const char *proc, uint64_t *group, uint32_t *quota)
{
	char name[PATH_MAX], path[PATH_MAX], *line = NULL;
	struct mount *m = malloc(sizeof(*m));
	size_t size = 0;
	FILE *f = NULL;

	*group = 0;
	*quota = 0;
	if (m != NULL && (size_t)snprintf(name, sizeof(name), "%s/mountinfo", proc) < sizeof(name))
		f = fopen(name, "re");
	while (f != NULL && getline(&line, &size, f) > 0) {
		if (take_mount(line, m) && find_group(proc, m->second, path))
			walk(m, path, group, quota);
	}
	free(line);
	free(m);
	if (f != NULL)
		fclose(f);
	return *quota != 0;
}

/* ---- all of it ---- */

void u_processors_read(struct u_processors *out)
{
	memset(out, 0, sizeof(*out));
	out->machine = machine_id();
	read_affinity(out);
	u_processors_quota("/proc/self", &out->group, &out->quota);
}

unsigned int u_processors_count(void)
{
	struct u_processors p;
	uint32_t n;

	u_processors_read(&p);
	n = p.count;
	if (p.quota != 0 && (n == 0 || (p.quota + 999) / 1000 < n))
		n = (p.quota + 999) / 1000;
	return n != 0 ? n : 1;
}

void u_processors_crowd_begin(struct u_processors_crowd *c, const struct u_processors *mine)
{
	*c = (struct u_processors_crowd){ .mine = mine };
}

void u_processors_crowd_add(struct u_processors_crowd *c, const struct u_processors *other)
{
	const struct u_processors *mine = c->mine;
	uint64_t both = 0, outside = 0;

	if (other->machine != mine->machine)
		return;
	c->group += mine->quota != 0 && other->quota != 0 && other->group == mine->group;
	for (int i = 0; i < U_PROCESSORS_WORDS; i++) {
		both |= other->cpus[i] & mine->cpus[i];
		outside |= other->cpus[i] & ~mine->cpus[i];
	}
	if (both == 0)
		return;
	c->meets++;
	c->within += outside == 0;
	for (int i = 0; i < U_PROCESSORS_WORDS; i++)
		c->cpus[i] |= other->cpus[i];
}

/* How many of the U_PROCESSORS_WORDS * 64 bits are set. */
static unsigned int count_bits(const uint64_t *cpus)
{
	unsigned int n = 0;

	for (int i = 0; i < U_PROCESSORS_WORDS; i++)
		n += (unsigned int)__builtin_popcountll(cpus[i]);
	return n;
}

bool u_processors_crowd_is(const struct u_processors_crowd *c)
{
	return c->within > count_bits(c->mine->cpus) || c->meets > count_bits(c->cpus) ||
	       (uint64_t)c->group * 1000 > (c->mine->quota != 0 ? c->mine->quota : UINT64_MAX);
}
