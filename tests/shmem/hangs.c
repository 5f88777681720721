/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Jobs that make no progress, for hang_test.py, which reads the report of their waits.
 *
 * usage: hangs NAME, one of: start barrier wait_until signal lock end reduce put atomic first
 *
 * Writes the address that the report has to name.
 */
#include <poll.h>
#include <pthread.h>
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static long flag, lock, data[1000], out[1000];
static uint64_t sig;
static int me, npes;

static void say(const char *what, const void *address)
{
	printf("%s %d %#llx %d\n", what, me, (unsigned long long)(uintptr_t)address, (int)getpid());
	fflush(stdout);
}

/* Stays without making a call. */
static _Noreturn void stay(void)
{
	for (;;)
		pause();
}

static void barrier(void)
{
	if (me == npes - 1)
		stay();
	if (me == 0)
		say("at", NULL);
	shmem_barrier_all();
}

static void wait_until(void)
{
	if (me != 0)
		stay();
	say("at", &flag);
	shmem_long_wait_until(&flag, SHMEM_CMP_EQ, 7);
}

static void wait_for_signal(void)
{
	if (me != 0)
		stay();
	say("at", &sig);
	shmem_signal_wait_until(&sig, SHMEM_CMP_GE, 1);
}

static void lock_of_another(void)
{
	if (me == npes - 1)
		shmem_set_lock(&lock);
	shmem_barrier_all();
	if (me == npes - 1)
		stay();
	if (me != 0)
		stay();
	say("at", &lock);
	shmem_set_lock(&lock);
}

static void end(void)
{
	if (me != 0)
		exit(0);
	say("at", &flag);
	shmem_long_wait_until(&flag, SHMEM_CMP_EQ, 7);
}

static void reduce(void)
{
	if (me == npes - 1)
		stay();
	say("at", NULL);
	shmem_long_sum_reduce(SHMEM_TEAM_WORLD, out, data, 1000);
}

static void *wait_in_thread(void *none)
{
	say("thread", &flag);
	shmem_long_wait_until(&flag, SHMEM_CMP_EQ, 7);
	return none;
}

static void read_line(void)
{
	char line[80];

	if (fgets(line, sizeof(line), stdin) == NULL)
		exit(1);
}

/*
 * PE 0 puts to the PE in the middle, or adds there, and completes it.  Before that the test stops
 * processes and writes a line; it continues them later.
 */
static void complete(const char *how)
{
	pthread_t thread;

	if (me == 0) {
		if (strcmp(how, "first") != 0)
			shmem_long_put(data, out, 1000, npes / 2);
		shmem_long_atomic_inc(&flag, npes / 2);
		shmem_quiet();
	}
	shmem_barrier_all();
	say("ready", data);
	if (me != 0)
		stay();
	read_line();
	if (strcmp(how, "atomic") == 0)
		shmem_long_atomic_inc(&flag, npes / 2);
	else
		shmem_long_put(data, out, strcmp(how, "first") == 0 ? 2 : 1000, npes / 2);
	shmem_quiet();
	say("through", data);
	read_line();
	if (pthread_create(&thread, NULL, wait_in_thread, NULL) != 0)
		exit(1);
	stay();
}

static void quiet_of_put(void)
{
	complete("put");
}

static void quiet_of_atomic(void)
{
	complete("atomic");
}

/* This is the first put to that PE, so its engine has to receive it. */
static void quiet_of_first_put(void)
{
	complete("first");
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} all[] = {
		{ "barrier", barrier },
		{ "wait_until", wait_until },
		{ "signal", wait_for_signal },
		{ "lock", lock_of_another },
		{ "reduce", reduce },
		{ "put", quiet_of_put },
		{ "atomic", quiet_of_atomic },
		{ "first", quiet_of_first_put },
		{ "end", end },
	};
	int provided;

	if (argc == 2 && strcmp(argv[1], "start") == 0) {
		say("at", NULL);
		stay(); /* before it has called anything */
	}
	if (shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided) != 0)
		return 1;
	me = shmem_my_pe();
	npes = shmem_n_pes();
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		if (argc == 2 && strcmp(argv[1], all[i].name) == 0)
			all[i].run();
	}
	return 1;
}
