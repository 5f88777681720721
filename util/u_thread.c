/* SPDX-License-Identifier: BSD-2-Clause */
#include "u_thread.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "u_log.h"

#define NAME_BYTES 16 /* the kernel's limit, with the NUL */
#define MAX_CPUS (1 << 16)

/* Allocated by the creator: a thread that allocates gets an arena of the heap for itself. */
struct start {
	void *(*run)(void *);
	void *arg;
	int cpu;
	char name[NAME_BYTES];
	cpu_set_t *cpus; /* of the process; NULL: unknown */
	size_t cpus_size;
};

/* The CPUs of the process, that is of its first thread.  The set grows until the kernel's fits. */
static cpu_set_t *process_cpus(size_t *size_out)
{
	for (int cpus = 1024; cpus <= MAX_CPUS; cpus *= 2) {
		size_t size = CPU_ALLOC_SIZE(cpus);
		cpu_set_t *set = CPU_ALLOC(cpus);

		if (set == NULL)
			return NULL;
		if (sched_getaffinity(getpid(), size, set) == 0) {
			*size_out = size;
			return set;
		}
		CPU_FREE(set);
		if (errno != EINVAL)
			return NULL;
	}
	return NULL;
}

/*
 * Called by the new thread, since not all C libraries can set the affinity before its start.  If
 * the set of the process is unknown, the thread has its creator's.
 */
static void choose_cpus(struct start *s)
{
	if (s->cpus == NULL) {
		if (s->cpu != U_ANY_CPU)
			u_warn("u",
			       "thread %s cannot be bound to processor %d: those of the process are unknown",
			       s->name, s->cpu);
		return;
	}
	sched_setaffinity(0, s->cpus_size, s->cpus);
	if (s->cpu == U_ANY_CPU)
		return;
	CPU_ZERO_S(s->cpus_size, s->cpus);
	CPU_SET_S((size_t)s->cpu, s->cpus_size, s->cpus);
	if (sched_setaffinity(0, s->cpus_size, s->cpus) != 0)
		u_warn("u", "thread %s cannot run on processor %d: %s; it runs anywhere", s->name,
		       s->cpu, strerror(errno));
}

static void start_free(struct start *s)
{
	CPU_FREE(s->cpus);
	free(s);
}

static void *thread_main(void *arg)
{
	struct start *s = arg, start = *s;

	choose_cpus(s);
	start_free(s);
	pthread_setname_np(pthread_self(), start.name);
	return start.run(start.arg);
}

/* A thread inherits the mask of its creator, so the creator blocks all signals meanwhile. */
static int create_masked(pthread_t *thread, struct start *start)
{
	sigset_t all;
	sigset_t before;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(thread, NULL, thread_main, start);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc;
}

int u_thread_start_on(int cpu, pthread_t *thread, const char *name, void *(*run)(void *), void *arg)
{
	struct start *start = calloc(1, sizeof(*start));
	pthread_t created;
	int rc;

	if (start == NULL) {
		u_error("u", "thread %s cannot be started: no memory", name);
		return -ENOMEM;
	}
	start->run = run;
	start->arg = arg;
	start->cpu = cpu;
	start->cpus = process_cpus(&start->cpus_size);
	strncpy(start->name, name, NAME_BYTES - 1);

	rc = create_masked(&created, start);
	if (rc != 0) {
		start_free(start);
		u_error("u", "thread %s cannot be started: %s%s", name, strerror(rc),
			rc == EAGAIN ? "; raise RLIMIT_NPROC, RLIMIT_AS or the cgroup's pids.max"
				     : "");
		return -ENOMEM;
	}
	*thread = created;
	return 0;
}

int u_thread_start(pthread_t *thread, const char *name, void *(*run)(void *), void *arg)
{
	return u_thread_start_on(U_ANY_CPU, thread, name, run, arg);
}
