/* SPDX-License-Identifier: BSD-2-Clause */
#include "pf_env.h"

#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

static int read_line(const char *path, char *out, size_t size)
{
	FILE *f = fopen(path, "re");
	int ok;

	if (!f)
		return -errno;
	ok = fgets(out, (int)size, f) != NULL;
	fclose(f);
	if (!ok)
		return -ENODATA;
	out[strcspn(out, "\n")] = '\0';
	return 0;
}

static void __attribute__((format(printf, 2, 3))) warn(struct pf_env *env, const char *fmt, ...)
{
	va_list ap;

	if (env->warning_count == PF_MAX_WARNINGS)
		return;
	va_start(ap, fmt);
	vsnprintf(env->warnings[env->warning_count++], sizeof(env->warnings[0]), fmt, ap);
	va_end(ap);
}

/* The processor's name, and whether this is a virtual machine. */
static void read_cpuinfo(struct pf_env *env)
{
	FILE *f = fopen("/proc/cpuinfo", "re");
	char line[4096], *colon;

	strcpy(env->cpu_model, "unknown");
	while (f && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		colon = strchr(line, ':');
		if (!colon)
			break;
		if (!strncmp(line, "model name", 10) && colon[1])
			snprintf(env->cpu_model, sizeof(env->cpu_model), "%s", colon + 2);
		if (!strncmp(line, "flags", 5) && strstr(colon, " hypervisor"))
			env->virtual_machine = 1;
	}
	if (f)
		fclose(f);
}

/* The quota of the own control group (version 2). */
static void read_quota(struct pf_env *env)
{
	char line[512], path[700];
	double quota, period;

	if (read_line("/proc/self/cgroup", line, sizeof(line)) || strncmp(line, "0::", 3))
		return;
	snprintf(path, sizeof(path), "/sys/fs/cgroup%s/cpu.max", line + 3);
	if (!read_line(path, line, sizeof(line)) && sscanf(line, "%lf %lf", &quota, &period) == 2 &&
	    period > 0)
		env->cpu_quota = quota / period;
}

static void read_kernel(struct pf_env *env)
{
	struct utsname u;

	if (uname(&u))
		return;
	snprintf(env->kernel, sizeof(env->kernel), "%.60s %.90s", u.sysname, u.release);
	snprintf(env->arch, sizeof(env->arch), "%.31s", u.machine);
}

static void add_warnings(struct pf_env *env, int busy, int poll)
{
	if (env->virtual_machine)
		warn(env,
		     "virtual machine: other guests take processor time; compare medians only");
	if (strcmp(env->governor, "unknown") && strcmp(env->governor, "performance"))
		warn(env, "cpufreq governor is %s: choose performance for steady figures",
		     env->governor);
	if (env->cpus_allowed < busy)
		warn(env, "%d processes measure on %d processor%s: %s", busy, env->cpus_allowed,
		     env->cpus_allowed == 1 ? "" : "s",
		     poll ? "polling then waits for the scheduler" : "they take turns");
	if (env->cpu_quota > 0 && env->cpu_quota < busy)
		warn(env,
		     "control group grants %.2f processors to %d process%s: throttling shows as "
		     "long outliers",
		     env->cpu_quota, busy, busy == 1 ? "" : "es");
	if (env->load_average > env->cpus_online)
		warn(env, "load average is %.1f on %d processor%s: others are running",
		     env->load_average, env->cpus_online, env->cpus_online == 1 ? "" : "s");
}

void pf_env_read(struct pf_env *env, int busy, int poll, int together)
{
	cpu_set_t set;

	memset(env, 0, sizeof(*env));
	read_cpuinfo(env);
	read_kernel(env);
	read_quota(env);
	if (read_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", env->governor,
		      sizeof(env->governor)))
		strcpy(env->governor, "unknown");
	env->cpus_online = (int)sysconf(_SC_NPROCESSORS_ONLN);
	env->cpus_allowed = env->cpus_online;
	if (!sched_getaffinity(0, sizeof(set), &set))
		env->cpus_allowed = CPU_COUNT(&set);
	if (getloadavg(&env->load_average, 1) != 1)
		env->load_average = 0;
	if (together)
		env->cpus_allowed = 1;
	add_warnings(env, busy, poll);
}

int pf_env_pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set) ? -errno : 0;
}
