/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules of locks. */
#include <pthread.h>
#include <sched.h>

#include "rules.h"

#define MANY 20

static long in_bss, in_data = 0, many[MANY];
static long counter[MANY];

/* Adds 1 to a counter of PE 0 by a get and a put, which only a lock makes safe. */
static void add_unsafely(long *object)
{
	long value = shmem_long_g(object, 0);

	shmem_long_p(object, value + 1, 0);
}

static void exclude(long *lock, int rounds)
{
	for (int i = 0; i < rounds; i++) {
		shmem_set_lock(lock);
		add_unsafely(&counter[0]);
		shmem_clear_lock(lock); /* completes the put first */
	}
	shmem_barrier_all();
	CHECK(shmem_long_g(&counter[0], 0) == (long)rounds * npes);
	shmem_barrier_all();
	if (me == 0)
		counter[0] = 0;
	shmem_barrier_all();
}

static void locks_exclude(void)
{
	long *in_heap = shmem_calloc(1, sizeof(*in_heap));

	exclude(&in_bss, 200);
	exclude(&in_data, 50);
	exclude(in_heap, 50);
	shmem_free(in_heap);
}

static void test_lock_excludes(void)
{
	for (int i = 0; i < 50; i++) {
		while (shmem_test_lock(&in_bss) != 0)
			;
		add_unsafely(&counter[1]);
		shmem_clear_lock(&in_bss);
	}
	shmem_barrier_all();
	CHECK(shmem_long_g(&counter[1], 0) == 50L * npes);
}

static void both_kinds_together(void)
{
	for (int i = 0; i < 50; i++) {
		if ((me + i) % 2 == 0)
			shmem_set_lock(&in_bss);
		else
			while (shmem_test_lock(&in_bss) != 0)
				;
		add_unsafely(&counter[2]);
		shmem_clear_lock(&in_bss);
	}
	shmem_barrier_all();
	CHECK(shmem_long_g(&counter[2], 0) == 50L * npes);
}

static void many_locks_at_once(void)
{
	for (int round = 0; round < 5; round++) {
		for (int i = 0; i < MANY; i++)
			shmem_set_lock(&many[i]);
		for (int i = 3; i < MANY; i++)
			add_unsafely(&counter[i]);
		for (int i = 0; i < MANY; i++)
			shmem_clear_lock(&many[(i * 7) % MANY]);
	}
	shmem_barrier_all();
	for (int i = 3; i < MANY; i++)
		CHECK(shmem_long_g(&counter[i], 0) == 5L * npes);
}

static void different_locks_are_independent(void)
{
	shmem_set_lock(&many[me]); /* each has one of its own, and waits for nobody */
	shmem_barrier_all();
	CHECK(npes == 1 || shmem_test_lock(&many[next]) == 1);
	shmem_barrier_all();
	shmem_clear_lock(&many[me]);
	shmem_barrier_all();
	if (me == 0) {
		for (int i = 0; i < MANY; i++)
			CHECK(shmem_test_lock(&many[i]) == 0);
		for (int i = 0; i < MANY; i++)
			shmem_clear_lock(&many[i]);
	}
}

/* A PE that waits gets the lock although the others come back at once, again and again. */
static void nobody_starves(void)
{
	static long served[MAX_PES], stop;

	while (shmem_long_atomic_fetch(&stop, 0) == 0) {
		int all = 1;
		shmem_set_lock(&in_bss);
		shmem_long_atomic_inc(&served[me], 0);
		shmem_quiet();
		for (int pe = 0; pe < npes; pe++)
			all = all && shmem_long_atomic_fetch(&served[pe], 0) >= 5;
		if (all)
			shmem_long_atomic_set(&stop, 1, 0);
		shmem_clear_lock(&in_bss);
	}
}

/*
 * The PE that asked last, from the upper half of the object at the lock's home, which is one of the
 * PEs; -1: none.
 */
static int asked_last(const long *lock)
{
	int last = -1;

	for (int pe = 0; pe < npes; pe++) {
		uint64_t word = (uint64_t)shmem_long_atomic_fetch(lock, pe);
		if (word >> 32 != 0)
			last = (int)(word >> 32) - 1;
	}
	return last;
}

static void until_asked(const long *lock, int pe)
{
	while (asked_last(lock) != pe)
		sched_yield();
}

/*
 * While one PE has the lock the others ask for it, each after it has seen that the one before it
 * has asked.  They get it in this order, which is another in each round; each lock has another home.
 */
static void first_come_first_served(void)
{
	static long locks[2 * MAX_PES], taken;

	for (int round = 0; round < 2 * npes; round++) {
		long *lock = &locks[round];
		int step = round % 2 ? 1 : npes - 1, holder = round / 2;
		int place = (me - holder + npes) % npes * step % npes;
		int before = (holder + (place + npes - 1) * step) % npes;

		if (me == holder) {
			shmem_set_lock(lock);
			CHECK(place == 0 && asked_last(lock) == me);
		}
		shmem_barrier_all();
		until_asked(lock, before); /* the holder: until all have asked */
		if (me != holder)
			shmem_set_lock(lock);
		CHECK(shmem_long_atomic_fetch_inc(&taken, 0) == place);
		shmem_clear_lock(lock);
		shmem_barrier_all();
		CHECK(asked_last(lock) == -1);
		if (me == 0)
			taken = 0;
		shmem_barrier_all();
	}
}

static void clear_completes(void)
{
	static long data, more;

	for (int round = 0; round < 50; round++) {
		shmem_set_lock(&in_bss);
		CHECK(shmem_long_g(&data, next) == shmem_long_g(&more, next));
		for (int pe = 0; pe < npes; pe++) {
			shmem_long_put_nbi(&data, &(long){ me * 100 + round }, 1, pe);
			shmem_quiet();
			shmem_long_atomic_set(&more, me * 100 + round, pe);
		}
		shmem_clear_lock(&in_bss);
	}
}

static void *thread_of_lock(void *result)
{
	for (int i = 0; i < 30; i++) {
		shmem_set_lock(&in_data);
		add_unsafely(&counter[1]);
		shmem_clear_lock(&in_data);
	}
	return result;
}

static void threads_compete(void)
{
	pthread_t threads[3];
	int level;
	long before;

	shmem_query_thread(&level);
	CHECK(level == SHMEM_THREAD_MULTIPLE);
	before = shmem_long_g(&counter[1], 0);
	shmem_barrier_all();
	for (int i = 0; i < 3; i++)
		CHECK(pthread_create(&threads[i], NULL, thread_of_lock, NULL) == 0);
	for (int i = 0; i < 3; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	shmem_barrier_all();
	CHECK(shmem_long_g(&counter[1], 0) == before + 90L * npes);
}

static const struct rule rules[] = {
	RULE(locks_exclude),
	RULE(test_lock_excludes),
	RULE(both_kinds_together),
	RULE(many_locks_at_once),
	RULE(different_locks_are_independent),
	RULE(nobody_starves),
	RULE(first_come_first_served),
	RULE(clear_completes),
	RULE(threads_compete),
};

int main(void)
{
	int provided;

	CHECK(shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided) == 0);
	learn_who();
	run_rules(rules, sizeof(rules) / sizeof(rules[0]));
	shmem_finalize();
	return 0;
}
