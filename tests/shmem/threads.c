/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads of one PE at the level MULTIPLE: all calls at once, on one context and on several. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rules.h"

#define THREADS 4
#define EACH 200

static long counter, slots[THREADS * EACH], lock, locked_count;
static shmem_team_t teams[THREADS];

static void in_threads(void *(*work)(void *))
{
	pthread_t threads[THREADS];

	for (long i = 0; i < THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
}

static void *access_all(void *number)
{
	long t = (long)number, value;

	for (long i = 0; i < EACH; i++) {
		shmem_long_p(&slots[t * EACH + i], me * 1000 + i, next);
		shmem_quiet();
		value = shmem_long_g(&slots[t * EACH + i], next);
		CHECK(value == me * 1000 + i);
		shmem_long_atomic_add(&counter, 1, (int)(i % npes));
	}
	return NULL;
}

static void one_context_for_all(void)
{
	long sum = 0;

	counter = 0;
	shmem_barrier_all();
	in_threads(access_all);
	shmem_barrier_all();
	for (int pe = 0; pe < npes; pe++)
		sum += shmem_long_atomic_fetch(&counter, pe);
	CHECK(sum == (long)npes * THREADS * EACH);
}

static void *own_context(void *number)
{
	long t = (long)number;
	shmem_ctx_t ctx;

	CHECK(shmem_ctx_create(t % 2 ? SHMEM_CTX_PRIVATE : 0, &ctx) == 0);
	for (long i = 0; i < EACH; i++) {
		shmem_ctx_long_p(ctx, &slots[t * EACH + i], i + 1, next);
		shmem_ctx_quiet(ctx);
		CHECK(shmem_ctx_long_g(ctx, &slots[t * EACH + i], next) == i + 1);
	}
	shmem_ctx_destroy(ctx);
	return NULL;
}

static void a_context_each(void)
{
	in_threads(own_context);
}

static void *own_team(void *number)
{
	static long in[THREADS][100], out[THREADS][100];
	long t = (long)number;

	for (int round = 0; round < 20; round++) {
		for (int i = 0; i < 100; i++)
			in[t][i] = me + i + round;
		CHECK(shmem_long_sum_reduce(teams[t], out[t], in[t], 100) == 0);
		for (int i = 0; i < 100; i++)
			CHECK(out[t][i] == npes * (npes - 1l) / 2 + npes * (long)(i + round));
		CHECK(shmem_team_sync(teams[t]) == 0);
	}
	return NULL;
}

static void a_team_each(void)
{
	for (int t = 0; t < THREADS; t++)
		CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, npes, NULL, 0, &teams[t]) ==
		      0);
	in_threads(own_team);
	for (int t = 0; t < THREADS; t++)
		shmem_team_destroy(teams[t]);
}

/* Two threads use two sets of almost all PEs, for the first time at once and in different order. */
static void *own_set(void *number)
{
	static long in[2][10], out[2][10], work[2][10], sync[2][SHMEM_SYNC_SIZE];
	long t = (long)number, sum = 0;
	int size = npes - 1;

	if (t > 1 || size < 1 || me < t || me >= t + size)
		return NULL;
	if (t == me % 2)
		sched_yield();
	for (int pe = (int)t; pe < t + size; pe++)
		sum += pe;
	for (int round = 0; round < 20; round++) {
		for (int i = 0; i < 10; i++)
			in[t][i] = me + round;
		shmem_long_sum_to_all(out[t], in[t], 10, (int)t, 0, size, work[t], sync[t]);
		for (int i = 0; i < 10; i++)
			CHECK(out[t][i] == sum + (long)size * round);
		shmem_barrier((int)t, 0, size, sync[t]);
	}
	return NULL;
}

static void sets_are_made_at_once(void)
{
	in_threads(own_set);
	shmem_barrier_all();
}

static void *take_lock(void *unused)
{
	for (int i = 0; i < EACH / 4; i++) {
		long count;

		shmem_set_lock(&lock);
		count = shmem_long_g(&locked_count, 0);
		shmem_long_p(&locked_count, count + 1, 0);
		shmem_clear_lock(&lock);
	}
	return unused;
}

static void threads_compete_for_a_lock(void)
{
	locked_count = 0;
	shmem_barrier_all();
	in_threads(take_lock);
	shmem_barrier_all();
	CHECK(shmem_long_g(&locked_count, 0) == (long)npes * THREADS * (EACH / 4));
}

static long own_lock[MAX_PES];
static _Atomic pid_t waiter[THREADS];
static long order[THREADS], served;

static void *queue_up(void *number)
{
	long t = (long)number;

	atomic_store(&waiter[t], (pid_t)syscall(SYS_gettid));
	shmem_set_lock(&own_lock[me]);
	order[served++] = t;
	shmem_clear_lock(&own_lock[me]);
	return NULL;
}

/* Does that thread of this process sleep? */
static int sleeps(pid_t thread)
{
	char path[64], state = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)thread);
	file = fopen(path, "re");
	CHECK(file != NULL && fscanf(file, "%*d (%*[^)]) %c", &state) == 1);
	fclose(file);
	return state == 'S';
}

/* Each asks for the lock once the one before it waits, which can only be for the lock. */
static void threads_get_a_lock_in_their_order(void)
{
	pthread_t threads[THREADS];

	shmem_set_lock(&own_lock[me]);
	for (long t = 0; t < THREADS; t++) {
		CHECK(pthread_create(&threads[t], NULL, queue_up, (void *)t) == 0);
		while (atomic_load(&waiter[t]) == 0 || !sleeps(atomic_load(&waiter[t])))
			sched_yield();
	}
	CHECK(shmem_test_lock(&own_lock[me]) == 1);
	shmem_clear_lock(&own_lock[me]);
	for (int t = 0; t < THREADS; t++)
		CHECK(pthread_join(threads[t], NULL) == 0);
	for (int t = 0; t < THREADS; t++)
		CHECK(order[t] == t);
}

int main(void)
{
	static const struct rule rules[] = { RULE(one_context_for_all),
					     RULE(a_context_each),
					     RULE(a_team_each),
					     RULE(sets_are_made_at_once),
					     RULE(threads_compete_for_a_lock),
					     RULE(threads_get_a_lock_in_their_order) };
	int provided;

	if (shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided) != 0 ||
	    provided != SHMEM_THREAD_MULTIPLE)
		return 1;
	learn_who();
	run_rules(rules, sizeof(rules) / sizeof(*rules));
	shmem_finalize();
	return 0;
}
