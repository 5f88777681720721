/* SPDX-License-Identifier: BSD-2-Clause */
#include "u_thread.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "u_futex.h"
#include "u_log.h"

#define NAME_BYTES 16 /* the kernel's limit, with the NUL */

/* Allocated by the creator: a thread that allocates gets an arena of the heap for itself. */
struct start {
	void *(*run)(void *);
	void *arg;
	char name[NAME_BYTES];
	bool moves;		 /* it does not begin on the processors on which it has to run */
	struct u_cpuset process; /* those of the process; empty: not known */
	struct u_cpuset cpus;	 /* those of the caller; empty: all of the process */
	_Atomic uint32_t moved;	 /* if `moves`: the thread has moved, and no longer uses this */
};

/* The processors of the process before a thread of the application was bound. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct u_cpuset original;
static bool has_original;

/* ---- processors ------------------------------------------------------------------------------ */

/* Gives the processors of a thread; 0: of the calling thread.  0, or -errno and an empty set. */
static int get_cpus(pid_t tid, struct u_cpuset *out)
{
	size_t size = CPU_ALLOC_SIZE(U_CPUSET_END);
	cpu_set_t *set = CPU_ALLOC(U_CPUSET_END);
	int rc = 0;

	memset(out, 0, sizeof(*out));
	if (set == NULL)
		return -ENOMEM;
	CPU_ZERO_S(size, set);
	if (sched_getaffinity(tid, size, set) != 0)
		rc = -errno;
	for (int cpu = 0; rc == 0 && cpu < U_CPUSET_END; cpu++) {
		if (CPU_ISSET_S((size_t)cpu, size, set))
			u_cpuset_add(out, cpu);
	}
	CPU_FREE(set);
	return rc;
}

/* The set as the kernel has it, of `size` bytes, to be given to CPU_FREE(); NULL: no memory. */
static cpu_set_t *kernel_set(const struct u_cpuset *cpus, size_t *size)
{
	cpu_set_t *set = CPU_ALLOC(U_CPUSET_END);

	*size = CPU_ALLOC_SIZE(U_CPUSET_END);
	if (set == NULL)
		return NULL;
	CPU_ZERO_S(*size, set);
	for (int cpu = u_cpuset_next(cpus, 0); cpu >= 0; cpu = u_cpuset_next(cpus, cpu + 1))
		CPU_SET_S((size_t)cpu, *size, set);
	return set;
}

int u_thread_move(pthread_t thread, const struct u_cpuset *cpus)
{
	size_t size;
	cpu_set_t *set = kernel_set(cpus, &size);
	int rc;

	if (set == NULL)
		return -ENOMEM;
	rc = -pthread_setaffinity_np(thread, size, set);
	CPU_FREE(set);
	return rc;
}

int u_thread_move_number(int tid, const struct u_cpuset *cpus)
{
	size_t size;
	cpu_set_t *set = kernel_set(cpus, &size);
	int rc;

	if (set == NULL)
		return -ENOMEM;
	rc = sched_setaffinity(tid, size, set) == 0 ? 0 : -errno;
	CPU_FREE(set);
	return rc;
}

int u_thread_own_cpus(struct u_cpuset *out)
{
	return get_cpus(0, out);
}

/* Those of the first thread, or those that u_thread_keep_cpus() kept. */
int u_thread_process_cpus(struct u_cpuset *out)
{
	int rc = 0;

	pthread_mutex_lock(&lock);
	if (has_original)
		*out = original;
	else
		rc = get_cpus(getpid(), out);
	pthread_mutex_unlock(&lock);
	return rc;
}

void u_thread_keep_cpus(void)
{
	pthread_mutex_lock(&lock);
	if (!has_original)
		has_original = get_cpus(getpid(), &original) == 0;
	pthread_mutex_unlock(&lock);
}

void u_thread_forked(void)
{
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

/* ---- starting -------------------------------------------------------------------------------- */

/*
 * Called by the new thread, since not all C libraries can set the affinity before its start.  If
 * the set of the process is unknown, the thread has its creator's.  Logs it if `cpus` cannot be had.
 */
static void choose_cpus(const struct start *s)
{
	char text[U_CPUSET_TEXT];
	int rc = 0;

	if (!u_cpuset_empty(&s->process))
		u_thread_move(pthread_self(), &s->process);
	if (!u_cpuset_empty(&s->cpus))
		rc = u_thread_move(pthread_self(), &s->cpus);
	if (rc != 0)
		u_warn("u", "thread %s cannot run on processors %s: %s; it runs anywhere", s->name,
		       u_cpuset_text(&s->cpus, text, sizeof(text)), strerror(-rc));
}

/*
 * The new thread: takes its name, moves if it has to, and calls `run`.  Frees `arg`, a struct start, unless it moves:
 * then wait_moved() does.
 */
static void *thread_main(void *arg)
{
	struct start *s = arg;
	void *(*run)(void *) = s->run;

	arg = s->arg;
	pthread_setname_np(pthread_self(), s->name);
	if (s->moves) {
		choose_cpus(s);
		atomic_store_explicit(&s->moved, 1, memory_order_release);
		u_futex_wake(&s->moved, 1, UINT32_MAX, true);
	} else {
		free(s);
	}
	return run(arg);
}

/*
 * A thread inherits the mask of its creator, so the creator blocks all signals during the call.  0 or a positive
 * errno.
 */
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

/*
 * Finds the processors of the process, and whether the new thread, for which s->cpus is set, has to move: it begins on
 * those of its creator.
 */
static void find_cpus(struct start *s)
{
	struct u_cpuset own;

	if (u_thread_process_cpus(&s->process) != 0)
		memset(&s->process, 0, sizeof(s->process));
	s->moves = !u_cpuset_empty(&s->cpus) || get_cpus(0, &own) != 0 ||
		   !u_cpuset_equal(&own, &s->process);
}

/*
 * Waits until the thread, one that `moves`, has moved, and frees `s`; else it could later undo a binding that the
 * caller makes.
 */
static void wait_moved(struct start *s)
{
	while (atomic_load_explicit(&s->moved, memory_order_acquire) == 0)
		u_futex_wait(&s->moved, 0, UINT32_MAX, -1, true);
	free(s);
}

int u_thread_start_on(const struct u_cpuset *cpus, pthread_t *thread, const char *name,
		      void *(*run)(void *), void *arg)
{
	struct start *start = calloc(1, sizeof(*start));
	pthread_t created;
	bool moves;
	int rc;

	if (start == NULL) {
		u_error("u", "thread %s cannot be started: no memory", name);
		return -ENOMEM;
	}
	start->run = run;
	start->arg = arg;
	if (cpus != NULL)
		start->cpus = *cpus;
	find_cpus(start);
	strncpy(start->name, name, NAME_BYTES - 1);

	moves = start->moves;
	rc = create_masked(&created, start);
	if (rc != 0) {
		free(start);
		u_error("u", "thread %s cannot be started: %s%s", name, strerror(rc),
			rc == EAGAIN ? "; raise ulimit -u, -v or -d, or the cgroup's pids.max"
				     : "");
		return -ENOMEM;
	}
	if (moves)
		wait_moved(start);
	*thread = created;
	return 0;
}

int u_thread_start(pthread_t *thread, const char *name, void *(*run)(void *), void *arg)
{
	return u_thread_start_on(NULL, thread, name, run, arg);
}

void u_thread_join(pthread_t thread)
{
	pthread_join(thread, NULL);
}

void u_thread_detach(pthread_t thread)
{
	pthread_detach(thread);
}
