/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ends a job in one of several ways.
 *
 * usage: ends MANNER, one of: finalize return exit atexit atexit_later start_pes barrier wait lock sleep spin thread
 */
#include <pthread.h>
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STATUS 42

static long never, lock, written;

static void *end_all(void *none)
{
	printf("the end by a thread\n");
	shmem_global_exit(STATUS);
	return none;
}

/* All PEs but the last block as `manner` says, and the last ends the job. */
static void end_by_one(const char *manner, int me, int npes)
{
	pthread_t thread;

	if (strcmp(manner, "lock") == 0) {
		if (me == npes - 1)
			shmem_set_lock(&lock);
		shmem_barrier_all();
	}
	if (strcmp(manner, "thread") == 0 && me == npes - 1) {
		if (pthread_create(&thread, NULL, end_all, NULL) != 0)
			abort();
		shmem_long_wait_until(&never, SHMEM_CMP_NE, 0);
	}
	if (me == npes - 1) {
		printf("the end by PE %d", me); /* no end of line: still written out */
		shmem_global_exit(STATUS);
	}
	if (strcmp(manner, "barrier") == 0)
		shmem_barrier_all();
	if (strcmp(manner, "wait") == 0 || strcmp(manner, "thread") == 0)
		shmem_long_wait_until(&never, SHMEM_CMP_NE, 0);
	if (strcmp(manner, "lock") == 0)
		shmem_set_lock(&lock);
	while (strcmp(manner, "sleep") == 0)
		pause();
	for (;;)
		__atomic_load_n(&never, __ATOMIC_RELAXED);
}

int main(int argc, char **argv)
{
	const char *manner = argc == 2 ? argv[1] : "";
	int me, npes;

	if (strcmp(manner, "atexit") == 0)
		atexit(shmem_finalize);
	if (strcmp(manner, "start_pes") == 0)
		start_pes(0);
	else
		shmem_init();
	if (strcmp(manner, "atexit_later") == 0)
		atexit(shmem_finalize);
	me = shmem_my_pe();
	npes = shmem_n_pes();
	shmem_long_p(&written, 5, (me + 1) % npes);
	if (strcmp(manner, "finalize") == 0) {
		shmem_finalize();
		return written != 5;
	}
	/* The implicit end is collective: a PE that ends early does not take the others along. */
	if (strcmp(manner, "start_pes") == 0 || strcmp(manner, "return") == 0 ||
	    strcmp(manner, "exit") == 0 || strncmp(manner, "atexit", 6) == 0) {
		for (int i = 0; i < 20000 * me; i++)
			shmem_long_atomic_fetch_add(&written, 1, 0);
		printf("done\n");
		if (strcmp(manner, "exit") == 0)
			exit(0);
		return 0;
	}
	end_by_one(manner, me, npes);
	return 1;
}
