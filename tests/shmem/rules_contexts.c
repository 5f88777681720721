/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules of contexts and of threads. */
#include <pthread.h>

#include "rules.h"

#define THREADS 4

static void default_context(void)
{
	static long data;
	shmem_team_t team;

	CHECK(shmem_ctx_get_team(SHMEM_CTX_DEFAULT, &team) == 0 && team == SHMEM_TEAM_WORLD);
	shmem_ctx_long_p(SHMEM_CTX_DEFAULT, &data, 4, next);
	shmem_quiet(); /* the same context */
	CHECK(shmem_ctx_long_g(SHMEM_CTX_DEFAULT, &data, next) == 4);
}

static void invalid_context(void)
{
	shmem_team_t team = SHMEM_TEAM_WORLD;
	shmem_ctx_t ctx = SHMEM_CTX_DEFAULT;

	shmem_ctx_fence(SHMEM_CTX_INVALID);
	shmem_ctx_quiet(SHMEM_CTX_INVALID);
	shmem_ctx_pe_quiet(SHMEM_CTX_INVALID, &me, 1);
	shmem_ctx_destroy(SHMEM_CTX_INVALID);
	shmem_ctx_session_start(SHMEM_CTX_INVALID, 0, NULL, 0);
	shmem_ctx_session_stop(SHMEM_CTX_INVALID);
	CHECK(shmem_ctx_get_team(SHMEM_CTX_INVALID, &team) != 0 && team == SHMEM_TEAM_INVALID);
	CHECK(shmem_team_create_ctx(SHMEM_TEAM_INVALID, 0, &ctx) != 0 && ctx == SHMEM_CTX_INVALID);
}

static void all_options(void)
{
	static long data[16];
	const long bits[] = { SHMEM_CTX_SERIALIZED, SHMEM_CTX_PRIVATE, SHMEM_CTX_NOSTORE,
			      SHMEM_CTX_SESSION_BATCH };

	for (int i = 0; i < 16; i++) {
		shmem_ctx_t ctx = SHMEM_CTX_DEFAULT;
		shmem_team_t team;
		long options = 0;
		for (int b = 0; b < 4; b++)
			options |= i >> b & 1 ? bits[b] : 0;
		CHECK(shmem_ctx_create(options, &ctx) == 0);
		CHECK(ctx != SHMEM_CTX_INVALID && ctx != SHMEM_CTX_DEFAULT);
		CHECK(shmem_ctx_get_team(ctx, &team) == 0 && team == SHMEM_TEAM_WORLD);
		shmem_ctx_long_p(ctx, &data[i], me + i, next);
		shmem_ctx_quiet(ctx);
		CHECK(shmem_ctx_long_g(ctx, &data[i], next) == me + i);
		shmem_ctx_destroy(ctx);
	}
}

/* Makes contexts until the library has no more; then it works as before. */
static void many_contexts(void)
{
	enum { MANY = 200 };
	static long data[MANY];
	shmem_ctx_t ctx[MANY];
	int n = 0;

	for (; n < MANY; n++)
		if (shmem_ctx_create(n % 2 ? SHMEM_CTX_SERIALIZED : 0, &ctx[n]) != 0)
			break;
	CHECK(n == MANY || ctx[n] == SHMEM_CTX_INVALID);
	CHECK(n >= 64);
	for (int i = 0; i < n; i++)
		shmem_ctx_long_atomic_add(ctx[i], &data[i], me + 1, next);
	for (int i = 0; i < n; i++) {
		shmem_ctx_quiet(ctx[i]);
		CHECK(shmem_ctx_long_atomic_fetch(ctx[i], &data[i], next) == me + 1);
	}
	for (int i = 0; i < n; i++)
		shmem_ctx_destroy(ctx[n - 1 - i]);
	shmem_barrier_all();
	shmem_long_p(&data[0], 1000, next);
	shmem_barrier_all();
	CHECK(data[0] == 1000);
}

static void destroy_completes(void)
{
	static long data[100], from[100], old, counter;
	shmem_ctx_t ctx;

	for (int round = 1; round <= 100; round++) {
		CHECK(shmem_ctx_create(0, &ctx) == 0);
		for (int i = 0; i < 100; i++)
			from[i] = round * 1000 + i;
		shmem_ctx_long_put_nbi(ctx, data, from, 100, next);
		shmem_ctx_long_atomic_fetch_add_nbi(ctx, &old, &counter, 1, next);
		shmem_ctx_destroy(ctx);
		CHECK(old == round - 1);
		shmem_sync_all();
		CHECK(data[0] == round * 1000 && data[99] == round * 1000 + 99);
		shmem_sync_all();
	}
}

/* Each context completes its own operations, whatever is under way on the others. */
static void contexts_are_independent(void)
{
	static char there[1 << 20], from[1 << 20];
	static long data;
	shmem_ctx_t bulk, small;

	CHECK(shmem_ctx_create(0, &bulk) == 0);
	CHECK(shmem_ctx_create(0, &small) == 0);
	memset(from, 5, sizeof(from));
	for (int round = 1; round <= 10; round++) {
		shmem_ctx_putmem_nbi(bulk, there, from, sizeof(from), next);
		shmem_ctx_long_p(small, &data, round, next);
		shmem_ctx_quiet(small);
		CHECK(shmem_ctx_long_g(small, &data, next) == round);
		shmem_ctx_quiet(bulk);
	}
	shmem_barrier_all();
	CHECK(there[0] == 5 && there[sizeof(there) - 1] == 5);
	shmem_ctx_destroy(small);
	shmem_ctx_destroy(bulk);
}

static void fences_of_contexts(void)
{
	static long data, flag;
	shmem_ctx_t ctx;

	CHECK(shmem_ctx_create(0, &ctx) == 0);
	for (int round = 1; round <= 200; round++) {
		shmem_ctx_long_p(ctx, &data, round, next);
		shmem_ctx_fence(ctx);
		shmem_ctx_long_atomic_set(ctx, &flag, round, next);
		shmem_ctx_quiet(ctx);
		shmem_long_wait_until(&flag, SHMEM_CMP_EQ, round);
		CHECK(data == round);
		shmem_barrier_all();
	}
	shmem_ctx_destroy(ctx);
}

static void sessions(void)
{
	static long data[50];
	shmem_ctx_session_config_t config = { 50 };

	shmem_ctx_session_stop(SHMEM_CTX_DEFAULT);
	for (int round = 0; round < 3; round++) {
		shmem_ctx_session_start(SHMEM_CTX_DEFAULT, SHMEM_CTX_SESSION_BATCH, &config,
					SHMEM_CTX_SESSION_TOTAL_OPS);
		shmem_ctx_session_start(SHMEM_CTX_DEFAULT, 0, NULL, 0); /* nested */
		for (int i = 0; i < 50; i++)
			shmem_long_p(&data[i], round * 100 + i, next);
		shmem_fence();
		shmem_quiet(); /* a session changes nothing about completion */
		CHECK(shmem_long_g(&data[49], next) == round * 100 + 49);
		shmem_ctx_session_stop(SHMEM_CTX_DEFAULT);
		shmem_ctx_session_stop(SHMEM_CTX_DEFAULT);
	}
}

/* Destroyed with its team. */
static void a_team_takes_its_contexts(void)
{
	static long data;
	shmem_team_config_t config = { 1 };

	for (int round = 1; round <= 20; round++) {
		shmem_team_t team;
		shmem_ctx_t ctx;
		CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, npes, &config,
					       SHMEM_TEAM_NUM_CONTEXTS, &team) == 0);
		CHECK(shmem_team_create_ctx(team, 0, &ctx) == 0);
		shmem_ctx_long_p(ctx, &data, round, next);
		shmem_team_destroy(team);
		shmem_barrier_all();
		CHECK(data == round);
		shmem_barrier_all();
	}
}

/* ---- Threads --------------------------------------------------------------------------------- */

static long slots[THREADS][1000], total, ordered[THREADS];

static void *thread_with_default(void *number)
{
	int t = (int)(intptr_t)number;

	for (int i = 0; i < 1000; i++) {
		shmem_long_p(&slots[t][i], me * 1000 + i + 1, next);
		shmem_long_atomic_inc(&total, (me + i) % npes);
		if (i % 100 == 0)
			shmem_quiet();
	}
	shmem_quiet();
	for (int i = 0; i < 1000; i++)
		CHECK(shmem_long_g(&slots[t][i], next) == me * 1000 + i + 1);
	return NULL;
}

static void *thread_with_private(void *number)
{
	int t = (int)(intptr_t)number;
	shmem_ctx_t ctx;

	CHECK(shmem_ctx_create(SHMEM_CTX_PRIVATE, &ctx) == 0);
	for (int i = 1; i <= 300; i++) {
		long old = shmem_ctx_long_atomic_fetch_add(ctx, &ordered[t], 1, next);
		CHECK(old == i - 1);
		shmem_ctx_long_put_nbi(ctx, &slots[t][i], &(long){ -i }, 1, next);
		shmem_ctx_quiet(ctx);
		CHECK(shmem_ctx_long_g(ctx, &slots[t][i], next) == -i);
	}
	shmem_ctx_destroy(ctx);
	return NULL;
}

static void run_threads(void *(*run)(void *))
{
	pthread_t threads[THREADS];

	for (int t = 0; t < THREADS; t++)
		CHECK(pthread_create(&threads[t], NULL, run, (void *)(intptr_t)t) == 0);
	for (int t = 0; t < THREADS; t++)
		CHECK(pthread_join(threads[t], NULL) == 0);
}

static void threads_on_one_context(void)
{
	run_threads(thread_with_default);
	shmem_barrier_all();
	CHECK(total == THREADS * 1000L);
}

static long issued[1000], issued_from[1000];

static void *thread_that_issues(void *none)
{
	for (int i = 0; i < 1000; i++) {
		issued_from[i] = me * 1000 + i;
		shmem_long_put_nbi(&issued[i], &issued_from[i], 1, next);
	}
	return none;
}

/* quiet completes operations that another thread issued before it ended, like those of the calling thread. */
static void quiet_completes_what_a_thread_issued(void)
{
	pthread_t thread;

	CHECK(pthread_create(&thread, NULL, thread_that_issues, NULL) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
	shmem_quiet();
	shmem_sync_all(); /* completes nothing itself */
	for (int i = 0; i < 1000; i++)
		CHECK(issued[i] == prev * 1000 + i);
}

static void threads_on_their_own(void)
{
	run_threads(thread_with_private);
}

static shmem_team_t thread_teams[THREADS];
static long reduce_from[THREADS], reduce_into[THREADS];

static void *thread_with_team(void *number)
{
	int t = (int)(intptr_t)number;

	for (int i = 0; i < 100; i++) {
		reduce_from[t] = me + i;
		CHECK(shmem_long_sum_reduce(thread_teams[t], &reduce_into[t], &reduce_from[t], 1) ==
		      0);
		CHECK(reduce_into[t] == npes * (npes - 1) / 2 + (long)i * npes);
		CHECK(shmem_team_sync(thread_teams[t]) == 0);
	}
	return NULL;
}

/* Collectives of different teams may run at the same time. */
static void threads_in_collectives(void)
{
	for (int t = 0; t < THREADS; t++)
		CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, npes, NULL, 0,
					       &thread_teams[t]) == 0);
	run_threads(thread_with_team);
	for (int t = 0; t < THREADS; t++)
		shmem_team_destroy(thread_teams[t]);
}

static const struct rule rules[] = {
	RULE(default_context),
	RULE(invalid_context),
	RULE(all_options),
	RULE(many_contexts),
	RULE(destroy_completes),
	RULE(contexts_are_independent),
	RULE(fences_of_contexts),
	RULE(sessions),
	RULE(a_team_takes_its_contexts),
	RULE(threads_on_one_context),
	RULE(quiet_completes_what_a_thread_issued),
	RULE(threads_on_their_own),
	RULE(threads_in_collectives),
};

int main(void)
{
	int level;

	CHECK(shmem_init_thread(SHMEM_THREAD_MULTIPLE, &level) == 0);
	CHECK(level == SHMEM_THREAD_MULTIPLE);
	learn_who();
	run_rules(rules, sizeof(rules) / sizeof(rules[0]));
	shmem_finalize();
	return 0;
}
