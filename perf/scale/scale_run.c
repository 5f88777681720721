/* SPDX-License-Identifier: BSD-2-Clause */
/* The processes of a test, and the board they share. */
#include "scale.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

void sc_sleep(double seconds)
{
	struct timespec ts = { (time_t)seconds, 0 };

	ts.tv_nsec = (long)((seconds - (double)ts.tv_sec) * 1e9);
	while (nanosleep(&ts, &ts) && errno == EINTR)
		;
}

static struct sc_board *own_board; /* of the job whose process this is */

void sc_die(const char *fmt, ...)
{
	char line[300];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	/* Only the first process prints: the others would say that their connections to it are lost. */
	if (!own_board || atomic_exchange(&own_board->told.v, 1) == 0)
		fprintf(stderr, "vi_scale: %s\n", line);
	_exit(PF_EXIT_FAILURE);
}

void sc_check(VIP_RETURN rc, const char *call)
{
	if (rc == VIP_ERROR_RESOURCE)
		sc_die("%.60s: %s: fewer --vis, --processes or --regions, or a larger "
		       "VIADUCT_WINDOW_BYTES",
		       call, VipxErrorString(rc));
	if (rc != VIP_SUCCESS)
		sc_die("%.60s: %s", call, VipxErrorString(rc));
}

void sc_await(struct sc_cell *cell, uint64_t least)
{
	while (atomic_load(&cell->v) < least)
		sc_sleep(0.0005);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double sc_median(double *v, size_t n)
{
	qsort(v, n, sizeof(*v), by_value);
	return n ? v[n / 2] : 0;
}

static pid_t start(struct sc_job *job, uint32_t index)
{
	pid_t parent = getpid(), pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* A huge page would hide the memory of single objects. */
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	if (getppid() != parent)
		_exit(PF_EXIT_FAILURE);
	own_board = job->board;
	if (index < job->count)
		job->body(job, index);
	else
		job->conduct(job, index);
	_exit(PF_EXIT_OK);
}

static int run_all(struct sc_job *job)
{
	uint32_t i, n = job->count + (job->conduct ? 1 : 0);
	pid_t pids[SC_MAX_PROCESSES + 1];
	sigset_t set;
	int rc;

	signal(SIGCHLD, SIG_DFL); /* where it is ignored no child can be waited for */
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	fflush(NULL);
	for (i = 0; i < n; i++) {
		pids[i] = start(job, i);
		if (pids[i] < 0)
			break;
	}
	rc = i < n ? -errno : 0;
	if (rc)
		pf_kill_children(pids, i);
	return pf_await_children(pids, i, job->cfg->timeout) ?: rc;
}

int sc_run(struct sc_job *job)
{
	int rc;

	job->board = mmap(NULL, sizeof(*job->board), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (job->board == MAP_FAILED) {
		job->board = NULL;
		rc = -errno;
		fprintf(stderr, "vi_scale: shared memory: %s\n", strerror(-rc));
		return rc;
	}
	rc = run_all(job);
	if (rc == -ETIMEDOUT)
		fprintf(stderr, "vi_scale: %s: not done within %.0f s; --timeout allows more\n",
			job->test, job->cfg->timeout);
	else if (rc && rc != -ECHILD)
		fprintf(stderr, "vi_scale: %s: starting processes: %s\n", job->test, strerror(-rc));
	return rc;
}

void sc_end(struct sc_job *job)
{
	if (job->board)
		munmap(job->board, sizeof(*job->board));
	job->board = NULL;
}
