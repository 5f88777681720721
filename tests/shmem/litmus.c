/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The order that fence, quiet, signals and atomic operations guarantee, tried many times: each
 * round looks for a result that the specification forbids.
 */
#include "rules.h"

#define ROUNDS 300

static long data[64], flag, other, counter, seen[2];
static uint64_t signal_word;

static void start_round(void)
{
	memset(data, 0, sizeof(data));
	flag = other = 0;
	signal_word = 0;
	shmem_barrier_all();
}

/* A flag put after a fence is not seen before the data put ahead of it. */
static void fence_orders_puts(void)
{
	long values[64];

	for (int round = 1; round <= ROUNDS; round++) {
		start_round();
		for (int i = 0; i < 64; i++)
			values[i] = round;
		shmem_long_put(data, values, 1 + round % 64, next);
		shmem_fence();
		shmem_long_p(&flag, round, next);
		shmem_long_wait_until(&flag, SHMEM_CMP_EQ, round);
		for (int i = 0; i < 1 + round % 64; i++)
			CHECK(data[i] == round);
		shmem_barrier_all();
	}
}

/*
 * Likewise if the flag is set, or added to, by an atomic operation, and the data is put by a non-
 * blocking call.
 */
static void fence_orders_atomics(void)
{
	static long values[64];

	for (int round = 1; round <= ROUNDS; round++) {
		start_round();
		for (int i = 0; i < 64; i++)
			values[i] = round;
		shmem_long_put_nbi(data, values, 64, next);
		shmem_fence();
		if (round % 2)
			shmem_long_atomic_set(&flag, 1, next);
		else
			shmem_long_atomic_add(&flag, 1, next);
		shmem_fence();
		shmem_long_p(&other, 2, next);
		shmem_long_wait_until(&other, SHMEM_CMP_EQ, 2);
		CHECK(flag == 1);
		for (int i = 0; i < 64; i++)
			CHECK(data[i] == round);
		shmem_barrier_all();
	}
}

static void signal_comes_behind_its_data(void)
{
	long values[64];

	for (int round = 1; round <= ROUNDS; round++) {
		start_round();
		for (int i = 0; i < 64; i++)
			values[i] = round;
		shmem_long_put_signal(data, values, 1 + round % 64, &signal_word, (uint64_t)round,
				      round % 2 ? SHMEM_SIGNAL_SET : SHMEM_SIGNAL_ADD, next);
		CHECK(shmem_signal_wait_until(&signal_word, SHMEM_CMP_GE, 1) == (uint64_t)round);
		for (int i = 0; i < 1 + round % 64; i++)
			CHECK(data[i] == round);
		shmem_barrier_all();
	}
}

/* Data put before a quiet is seen by a third PE that learns of it afterwards. */
static void quiet_is_seen_by_all(void)
{
	for (int round = 1; npes > 2 && round <= ROUNDS; round++) {
		start_round();
		if (me == 0) {
			shmem_long_p(&data[0], round, 1);
			shmem_quiet();
			shmem_long_p(&flag, round, 2);
		} else if (me == 2) {
			shmem_long_wait_until(&flag, SHMEM_CMP_EQ, round);
			CHECK(shmem_long_g(&data[0], 1) == round);
		}
		shmem_barrier_all();
	}
}

/* Two PEs put to each other, call quiet and get: not both may find the old value. */
static void one_of_two_is_first(void)
{
	for (int round = 1; npes > 1 && round <= ROUNDS; round++) {
		start_round();
		if (me < 2) {
			shmem_long_p(&data[me], 1, 0);
			shmem_quiet();
			seen[me] = shmem_long_g(&data[1 - me], 0);
			shmem_long_p(&seen[me], seen[me], 0);
		}
		shmem_barrier_all();
		if (me == 0)
			CHECK(seen[0] == 1 || seen[1] == 1);
		shmem_barrier_all();
	}
}

/* All PEs add at each PE, by every operation that adds, and while one waits. */
static void atomics_of_all_agree(void)
{
	enum { EACH = 200 };
	long want = (long)npes * EACH * 2;

	counter = 0;
	shmem_barrier_all();
	for (int i = 0; i < EACH; i++) {
		for (int pe = 0; pe < npes; pe++) {
			shmem_long_atomic_inc(&counter, pe);
			for (;;) {
				long old = shmem_long_atomic_fetch(&counter, pe);

				if (shmem_long_atomic_compare_swap(&counter, old, old + 1, pe) ==
				    old)
					break;
			}
		}
	}
	shmem_quiet();
	shmem_long_wait_until(&counter, SHMEM_CMP_GE, want);
	shmem_barrier_all();
	CHECK(counter == want);
}

/* Operations that return nothing, and non-blocking ones, are complete after quiet. */
static void counts_are_complete_after_quiet(void)
{
	enum { EACH = 500 };
	static long old[EACH];

	counter = 0;
	shmem_barrier_all();
	for (int i = 0; i < EACH; i++)
		shmem_long_atomic_fetch_add_nbi(&old[i], &counter, 1, next);
	shmem_quiet();
	CHECK(shmem_long_atomic_fetch(&counter, next) == EACH);
	for (int i = 0; i < EACH; i++)
		CHECK(old[i] == i);
	shmem_barrier_all();
}

int main(void)
{
	static const struct rule rules[] = {
		RULE(fence_orders_puts),
		RULE(fence_orders_atomics),
		RULE(signal_comes_behind_its_data),
		RULE(quiet_is_seen_by_all),
		RULE(one_of_two_is_first),
		RULE(atomics_of_all_agree),
		RULE(counts_are_complete_after_quiet),
	};

	shmem_init();
	learn_who();
	run_rules(rules, sizeof(rules) / sizeof(*rules));
	shmem_finalize();
	return 0;
}
