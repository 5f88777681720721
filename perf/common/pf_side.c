/* SPDX-License-Identifier: BSD-2-Clause */
#include "pf_side.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

double pf_clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

int pf_first_cpus(int cpu[2])
{
	cpu_set_t set;
	int i, n = 0;

	if (sched_getaffinity(0, sizeof(set), &set))
		return -errno;
	for (i = 0; n < 2 && i < CPU_SETSIZE; i++) {
		if (CPU_ISSET(i, &set))
			cpu[n++] = i;
	}
	if (n == 1)
		cpu[1] = cpu[0];
	return n == 2 ? 0 : -ENODEV;
}

static void signal_children(const pid_t *pids, uint32_t n, int sig)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		if (pids[i] > 0)
			kill(pids[i], sig);
	}
}

void pf_kill_children(const pid_t *pids, uint32_t n)
{
	/* All stand still first: none tells of the connection to another that has just been killed. */
	signal_children(pids, n, SIGSTOP);
	signal_children(pids, n, SIGKILL);
}

/* Its process id may belong to another process by now. */
static void forget(pid_t *pids, uint32_t n, pid_t pid)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		if (pids[i] == pid)
			pids[i] = -1;
	}
}

int pf_await_children(pid_t *pids, uint32_t n, double timeout)
{
	struct timespec slice = { 0, 100000000 };
	double end = pf_clock_ns() + timeout * 1e9;
	uint32_t left = n;
	int status, rc = 0;
	sigset_t set;
	pid_t pid;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	while (left) {
		pid = waitpid(-1, &status, WNOHANG);
		if (pid > 0) {
			left--;
			forget(pids, n, pid);
			if (status && !rc)
				rc = -ECHILD;
		} else {
			sigtimedwait(&set, NULL, &slice);
		}
		if (!rc && pf_clock_ns() > end)
			rc = -ETIMEDOUT;
		if (rc)
			pf_kill_children(pids, n);
	}
	return rc;
}
