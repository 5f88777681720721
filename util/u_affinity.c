/* SPDX-License-Identifier: BSD-2-Clause */
#include "u_affinity.h"

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "u_cfg.h"
#include "u_irq.h"
#include "u_log.h"
#include "u_thread.h"

#define AREA "u"
#define ADAPTERS "/sys/class/misc"
#define ADAPTER "viaduct"

/* ---- the circumstances ------------------------------------------------------------------------ */

/* The number of this process among those of its job on this machine, as launchers tell it. */
static const struct {
	const char *rank, *ranks;
} launchers[] = {
	{ "OSHRUN_PE", "OSHRUN_NPES" },
	{ "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE" },
	{ "MPI_LOCALRANKID", "MPI_LOCALNRANKS" },
	{ "MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_SIZE" },
	{ "SLURM_LOCALID", "SLURM_NTASKS_PER_NODE" },
};

/* Reads an environment variable as a number; false: it is not set, or no number in range, and *out means nothing. */
static bool number_of(const char *variable, unsigned int *out)
{
	const char *text = secure_getenv(variable);
	char *end;
	long n;

	if (text == NULL || text[0] < '0' || text[0] > '9')
		return false;
	n = strtol(text, &end, 10);
	*out = (unsigned int)n;
	return *end == '\0' && n < U_CPUSET_END * 16;
}

/* Takes rank and ranks from the first launcher that gives both; else leaves them. */
static void find_rank(struct u_place_case *c)
{
	unsigned int rank, ranks;

	for (size_t i = 0; i < sizeof(launchers) / sizeof(launchers[0]); i++) {
		if (number_of(launchers[i].rank, &rank) && number_of(launchers[i].ranks, &ranks) &&
		    rank < ranks) {
			c->rank = rank;
			c->ranks = ranks;
			return;
		}
	}
}

/* Reads the number in a file; U_TOPO_NONE: there is none, or it is negative. */
static int number_in(const char *path)
{
	FILE *file = fopen(path, "re");
	int n = U_TOPO_NONE;

	if (file == NULL)
		return U_TOPO_NONE;
	if (fscanf(file, "%d", &n) != 1 || n < 0)
		n = U_TOPO_NONE;
	fclose(file);
	return n;
}

/* The device of an adapter is one of the NTB core; the parent of that is the device on the bus. */
int u_affinity_node(const char *folder)
{
	int node = U_TOPO_NONE, lowest = -1, number, here;
	DIR *dir = opendir(folder);
	struct dirent *e;
	char path[512];

	while (dir != NULL && (e = readdir(dir)) != NULL) {
		if (sscanf(e->d_name, ADAPTER "%d", &number) != 1 || number < 0)
			continue;
		snprintf(path, sizeof(path), "%s/%.200s/device/../numa_node", folder, e->d_name);
		here = number_in(path);
		if (here != U_TOPO_NONE && (lowest < 0 || number < lowest)) {
			node = here;
			lowest = number;
		}
	}
	if (dir != NULL)
		closedir(dir);
	return node;
}

/* Does a rule depend on caches or nodes?  A list of processors does not. */
static bool needs_topology(const struct u_place_rules *rules)
{
	for (int i = 0; i < U_PLACE_ROLES; i++) {
		if (rules->of[i].where != U_PLACE_NONE && rules->of[i].where != U_PLACE_LIST)
			return true;
	}
	return false;
}

bool u_affinity_asked(const struct u_affinity *a)
{
	for (int i = 0; i < U_PLACE_ROLES; i++) {
		if (a->rules.of[i].where != U_PLACE_NONE)
			return true;
	}
	return false;
}

/*
 * Finds the circumstances of this process; reads the topology only if a rule or a flag needs it.  U_AFFINITY_FOREIGN:
 * leaves out the calling thread and the rank.
 */
static void find_out(struct u_affinity *a, unsigned int flags)
{
	struct u_place_case *c = &a->c;

	c->rules = &a->rules;
	c->foreign = (flags & U_AFFINITY_FOREIGN) != 0;
	c->device_node = U_TOPO_NONE;
	u_thread_process_cpus(&c->allowed);
	if (!c->foreign) {
		u_thread_own_cpus(&c->application);
		c->application_polls = u_cfg_uint(U_CFG_WAIT) == 0;
		find_rank(c);
	}
	snprintf(a->topo_error, sizeof(a->topo_error), "it was not needed");
	if (needs_topology(&a->rules) || (a->rules.dynamic && !c->foreign) ||
	    (flags & U_AFFINITY_TOPOLOGY) != 0) {
		if (u_topo_read(NULL, &a->topo, a->topo_error) == 0)
			c->topo = a->topo;
		c->device_node = u_affinity_node(ADAPTERS);
	}
}

int u_affinity_open(const char *rules, unsigned int flags, struct u_affinity **out)
{
	struct u_affinity *a = calloc(1, sizeof(*a));
	char error[U_PLACE_ERROR];
	int rc;

	if (a == NULL)
		return -ENOMEM;
	rc = u_place_parse(rules != NULL ? rules : u_cfg_str(U_CFG_AFFINITY), &a->rules, error);
	if (rc != 0) {
		u_error(AREA, "placement '%.80s': %s", rules != NULL ? rules : "", error);
		free(a);
		return rc;
	}
	find_out(a, flags);
	*out = a;
	return 0;
}

void u_affinity_close(struct u_affinity *a)
{
	if (a == NULL)
		return;
	free(a->topo);
	free(a);
}

/* ---- decisions in words and in the log --------------------------------------------------------- */

char *u_affinity_text(const struct u_affinity *a, const struct u_place_ask *ask,
		      const struct u_place_decision *d, char out[U_PLACE_TEXT])
{
	size_t used;

	u_place_text(&a->c, ask, d, out);
	used = strlen(out);
	if (d->why == U_PLACE_NO_TOPOLOGY)
		snprintf(out + used, U_PLACE_TEXT - used, ": %s", a->topo_error);
	return out;
}

/*
 * Logs a decision for which there is a rule, and a warning that is not empty if there is any rule.  False: the rules
 * are strict, and this is not as they say.
 */
static bool tell(const struct u_affinity *a, const struct u_place_ask *ask, const char *name,
		 const struct u_place_decision *d, const char *warning)
{
	bool met = u_place_met(d), bad = !met && a->rules.strict;
	char text[U_PLACE_TEXT];

	if (d->why != U_PLACE_NOT_ASKED)
		u_log(met   ? U_LOG_INFO
		      : bad ? U_LOG_ERROR
			    : U_LOG_WARN,
		      AREA, "placement of %s: %s", name, u_affinity_text(a, ask, d, text));
	if (warning[0] != '\0' && u_affinity_asked(a))
		u_warn(AREA, "placement of %s: it %s", name, warning);
	return !bad;
}

int u_affinity_decide(const struct u_affinity *a, const struct u_place_ask *asks,
		      const char *const *names, unsigned int n, struct u_place_decision *out)
{
	char warning[U_PLACE_TEXT];
	bool good = true;

	u_place(&a->c, asks, n, out);
	for (unsigned int i = 0; i < n; i++) {
		if (names[i] == NULL)
			continue;
		u_place_warning(asks, n, i, &out[i], warning);
		good &= tell(a, &asks[i], names[i], &out[i], warning);
	}
	return good ? 0 : -ENXIO;
}

/* ---- moving ------------------------------------------------------------------------------------ */

int u_affinity_move(const struct u_affinity *a, pthread_t thread, const char *name,
		    const struct u_place_decision *d)
{
	const struct u_cpuset *cpus = u_cpuset_empty(&d->cpus) ? &a->c.allowed : &d->cpus;
	char text[U_CPUSET_TEXT];
	int rc = u_thread_move(thread, cpus);

	if (rc != 0)
		u_warn(AREA, "thread %s cannot be moved to processors %s: %s", name,
		       u_cpuset_text(cpus, text, sizeof(text)), strerror(-rc));
	return rc;
}

int u_affinity_move_irq(const char *folder, int irq, const struct u_place_decision *d,
			char out[U_PLACE_TEXT])
{
	char list[U_CPUSET_TEXT];
	int rc = u_irq_move(folder, irq, &d->cpus);

	if (rc == 0)
		return 0;
	snprintf(out, U_PLACE_TEXT,
		 "it was not moved (%s); as root: echo %s > %s/%d/smp_affinity_list", strerror(-rc),
		 u_cpuset_text(&d->cpus, list, sizeof(list)), folder, irq);
	u_warn(AREA, "placement of interrupt %d: %s", irq, out);
	return rc;
}

int u_affinity_move_self(const struct u_affinity *a, const struct u_place_decision *d)
{
	if (u_cpuset_empty(&d->cpus))
		return 0;
	u_thread_keep_cpus();
	return u_affinity_move(a, pthread_self(), "of the application", d);
}
