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

struct start {
	void *(*run)(void *);
	void *arg;
	char name[NAME_BYTES];
};

static void *thread_main(void *arg)
{
	struct start start = *(struct start *)arg;

	free(arg);
	pthread_setname_np(pthread_self(), start.name);
	return start.run(start.arg);
}

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

/* Where the set cannot be learnt, the thread inherits its creator's. */
static void attr_set_cpus(pthread_attr_t *attr)
{
	size_t size;
	cpu_set_t *set = process_cpus(&size);

	if (set == NULL)
		return;
	pthread_attr_setaffinity_np(attr, size, set);
	CPU_FREE(set);
}

/* A thread inherits the mask of its creator, so the creator blocks all signals meanwhile. */
static int create_masked(pthread_t *thread, pthread_attr_t *attr, struct start *start)
{
	sigset_t all;
	sigset_t before;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(thread, attr, thread_main, start);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc;
}

int u_thread_start(pthread_t *thread, const char *name, void *(*run)(void *), void *arg)
{
	struct start *start = calloc(1, sizeof(*start));
	pthread_attr_t attr;
	pthread_t created;
	int rc;

	if (start == NULL) {
		u_error("u", "thread %s cannot be started: no memory", name);
		return -ENOMEM;
	}
	start->run = run;
	start->arg = arg;
	strncpy(start->name, name, NAME_BYTES - 1);

	rc = pthread_attr_init(&attr);
	if (rc == 0) {
		attr_set_cpus(&attr);
		rc = create_masked(&created, &attr, start);
		pthread_attr_destroy(&attr);
	}
	if (rc != 0) {
		free(start);
		u_error("u", "thread %s cannot be started: %s%s", name, strerror(rc),
			rc == EAGAIN ? "; raise RLIMIT_NPROC, RLIMIT_AS or the cgroup's pids.max"
				     : "");
		return -ENOMEM;
	}
	*thread = created;
	return 0;
}
