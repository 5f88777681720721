/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The last PE is stopped, as by a debugger, for longer than any wait of the library lasts, before another has a
 * connection to it.  Nothing is lost, and the job goes on.
 */
#include <poll.h>
#include <sched.h>
#include <shmem.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define STOP_MS 40000

static long count, process;

/* Starts a child that continues this process. */
static int stop(void)
{
	pid_t child = fork();

	if (child < 0)
		return 1;
	if (child == 0) {
		poll(NULL, 0, STOP_MS);
		kill(getppid(), SIGCONT);
		_exit(0);
	}
	raise(SIGSTOP);
	return waitpid(child, NULL, 0) != child;
}

static int is_stopped(long pid)
{
	char path[64], state = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%ld/stat", pid);
	file = fopen(path, "re");
	if (file == NULL || fscanf(file, "%*d %*s %c", &state) != 1)
		shmem_global_exit(3);
	fclose(file);
	return state == 'T';
}

int main(void)
{
	int last;

	shmem_init();
	last = shmem_n_pes() - 1;
	process = getpid();
	shmem_long_broadcast(SHMEM_TEAM_WORLD, &process, &process, 1, last);
	if (shmem_my_pe() == last) {
		if (stop() != 0)
			shmem_global_exit(2);
	} else {
		while (!is_stopped(process))
			sched_yield();
		shmem_long_atomic_inc(&count, last);
	}
	shmem_barrier_all();
	if (shmem_my_pe() == last && count != last) {
		fprintf(stderr, "%ld of %d have arrived\n", count, last);
		shmem_global_exit(1);
	}
	shmem_finalize();
	return 0;
}
