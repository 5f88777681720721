/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules of start and end: several starts, a start after the end, threads. */
#include <dirent.h>
#include <pthread.h>

#include "rules.h"

static long in_static, kept = 11;

static int is_initialized(void)
{
	int initialized = -1;

	shmem_query_initialized(&initialized);
	return initialized;
}

static void *ask(void *none)
{
	CHECK(is_initialized() == 1);
	return none;
}

/* What a program does between start and end. */
static void work(int round)
{
	long *heap = shmem_calloc(100, sizeof(long));
	shmem_team_t team;
	shmem_ctx_t ctx;

	CHECK(heap != NULL);
	shmem_long_p(&heap[99], round * 10 + me, next);
	shmem_long_p(&in_static, round * 20 + me, next);
	shmem_barrier_all();
	CHECK(heap[99] == round * 10 + prev && in_static == round * 20 + prev);
	CHECK(kept == 11);
	CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, npes, NULL, 0, &team) == 0);
	CHECK(shmem_team_sync(team) == 0);
	if (shmem_ctx_create(0, &ctx) == 0)
		shmem_ctx_long_atomic_inc(ctx, &heap[0], next);
	if (shmem_team_create_ctx(team, 0, &ctx) == 0)
		shmem_ctx_long_atomic_inc(ctx, &heap[0], next);
	/* Neither block, team nor context is given back: the end does that. */
}

/* Descriptors that this process has. */
static int count_files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	CHECK(dir != NULL);
	while (readdir(dir) != NULL)
		n++;
	closedir(dir);
	return n;
}

int main(void)
{
	const int levels[] = { SHMEM_THREAD_SINGLE, SHMEM_THREAD_FUNNELED, SHMEM_THREAD_SERIALIZED,
			       SHMEM_THREAD_MULTIPLE };
	int files = 0, first = -1, provided = -1, level = -1;
	pthread_t thread;

	CHECK(is_initialized() == 0);
	for (int round = 0; round < 4; round++) {
		CHECK(shmem_init_thread(levels[round], &provided) == 0);
		learn_who();
		if (round == 0)
			first = me;
		rule_name = "a start after the end";
		CHECK(me == first && is_initialized() == 1);
		CHECK(provided >= SHMEM_THREAD_SINGLE && provided <= SHMEM_THREAD_MULTIPLE);
		shmem_query_thread(&level);
		CHECK(level == provided);
		CHECK(pthread_create(&thread, NULL, ask, NULL) == 0);
		CHECK(pthread_join(thread, NULL) == 0);
		work(round);

		rule_name = "several starts";
		shmem_init();
		shmem_init();
		CHECK(shmem_my_pe() == me && shmem_n_pes() == npes);
		work(round + 4);
		shmem_long_p(&in_static, 77, next);
		shmem_finalize(); /* as a barrier */
		CHECK(in_static == 77 && is_initialized() == 1);
		work(round + 8);
		shmem_finalize();
		CHECK(is_initialized() == 1);
		work(round + 12);
		shmem_long_p(&in_static, 78, next);
		shmem_finalize(); /* the last: it completes too */
		CHECK(is_initialized() == 0);
		CHECK(in_static == 78 && kept == 11);
		if (round == 0)
			files = count_files();
		CHECK(count_files() == files);
	}
	if (me == 0)
		puts("ok starts and ends");
	return 0;
}
