/* SPDX-License-Identifier: BSD-2-Clause */
/* The conditions of a measurement: the machine and its load. */
#ifndef PF_ENV_H
#define PF_ENV_H

#include <stddef.h>

#define PF_MAX_WARNINGS 8u

struct pf_env {
	char cpu_model[128];
	char kernel[160];
	char arch[32];
	char governor[32]; /* "unknown" without cpufreq */
	int cpus_online;
	int cpus_allowed; /* of this process */
	int virtual_machine;
	double load_average;
	double cpu_quota; /* processors the control group grants, 0: no limit */
	char warnings[PF_MAX_WARNINGS][160];
	size_t warning_count;
};

/*
 * `busy` is the number of processes that measure on this machine, each of which polls if `poll`;
 * `together`: all are pinned to one processor.
 */
void pf_env_read(struct pf_env *env, int busy, int poll, int together);

/* Binds the calling thread and its future threads.  Returns 0 or -errno. */
int pf_env_pin(int cpu);

#endif
