/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules of waiting, order and completion. */
#include <pthread.h>

#include "rules.h"

#define MANY 1000

/* ---- Order and completion -------------------------------------------------------------------- */

/* Messages of several sizes by several routines, each after a fence, then a flag. */
static void fence_orders(void)
{
	static char small, big[70000], from[70000];
	static long counter, data, flag;
	static uint64_t sig;

	for (int round = 1; round <= 100; round++) {
		memset(from, round, sizeof(from));
		shmem_putmem(big, from, sizeof(big), next);
		shmem_fence();
		shmem_long_atomic_add(&counter, 5, next);
		shmem_fence();
		shmem_char_p(&small, (char)round, next);
		shmem_fence();
		shmem_long_put_signal(&data, &(long){ round * 3 }, 1, &sig, 1, SHMEM_SIGNAL_ADD,
				      next);
		shmem_fence();
		shmem_long_atomic_set(&flag, round, next);
		shmem_long_wait_until(&flag, SHMEM_CMP_EQ, round);
		CHECK(sig == (uint64_t)round && data == round * 3 && small == (char)round);
		CHECK(counter == round * 5);
		for (size_t i = 0; i < sizeof(big); i += 997)
			CHECK(big[i] == (char)round);
		CHECK(big[sizeof(big) - 1] == (char)round);
		shmem_barrier_all();
	}
}

/* A PE that sees a put made after a fence also sees the puts before the fence. */
static void order_of_puts(void)
{
	static volatile long first, second;

	for (int i = 1; i <= MANY; i++) {
		shmem_long_p((long *)&first, i, next);
		shmem_fence();
		shmem_long_p((long *)&second, i, next);
	}
	shmem_quiet();
	for (long seen = 0; seen < MANY;) {
		seen = __atomic_load_n(&second, __ATOMIC_ACQUIRE);
		CHECK(__atomic_load_n(&first, __ATOMIC_ACQUIRE) >= seen);
		shmem_long_test((long *)&second, SHMEM_CMP_EQ, MANY);
	}
	shmem_long_wait_until((long *)&second, SHMEM_CMP_EQ, MANY);
	CHECK(first == MANY);
}

/* Stores of this PE, into its memory and into that of a near one, are seen before puts after the fence. */
static void fence_orders_stores(void)
{
	static long mine, stored, flag;
	long *theirs = shmem_ptr(&stored, next);
	int by_pointer = shmem_ptr(&stored, prev) != NULL;

	for (int round = 1; round <= 200; round++) {
		__atomic_store_n(&mine, round, __ATOMIC_RELAXED);
		if (theirs != NULL)
			__atomic_store_n(theirs, round, __ATOMIC_RELAXED);
		shmem_fence();
		shmem_long_p(&flag, round, next);
		shmem_long_wait_until(&flag, SHMEM_CMP_EQ, round);
		CHECK(!by_pointer || __atomic_load_n(&stored, __ATOMIC_RELAXED) == round);
		CHECK(shmem_long_g(&mine, prev) == round);
		shmem_barrier_all();
	}
}

/* Complete means visible to all: a third PE that learns of it in another way sees the data. */
static void quiet_is_visible_to_all(void)
{
	static long data, told;
	int home = npes - 1;

	for (int round = 1; round <= 50; round++) {
		if (me == 0) {
			shmem_long_p(&data, round, home);
			shmem_quiet();
			for (int pe = 0; pe < npes; pe++)
				shmem_long_atomic_set(&told, round, pe);
		}
		shmem_long_wait_until(&told, SHMEM_CMP_GE, round);
		CHECK(shmem_long_g(&data, home) == round);
		shmem_barrier_all();
	}
}

static void quiet_completes_nbi(void)
{
	static long there[MANY], here[MANY], from[MANY], old, counter;

	for (int i = 0; i < MANY; i++)
		from[i] = me * MANY + i;
	shmem_long_put_nbi(there, from, MANY, next);
	for (int i = 0; i < 10; i++)
		shmem_long_put_nbi(&there[i], &from[MANY - 1 - i], 1, next);
	shmem_long_atomic_fetch_add_nbi(&old, &counter, 7, next);
	shmem_quiet();
	CHECK(old == 0);
	shmem_sync_all(); /* completes nothing itself */
	CHECK(counter == 7);
	for (int i = 10; i < MANY; i++)
		CHECK(there[i] == prev * MANY + i);
	shmem_long_get_nbi(here, there, MANY, next);
	shmem_long_get_nbi(from, there, 1, me);
	shmem_quiet();
	for (int i = 10; i < MANY; i++)
		CHECK(here[i] == me * MANY + i);
	CHECK(from[0] == there[0]);
}

static void pe_quiet_completes(void)
{
	static long there[MAX_PES];
	int all[MAX_PES];

	for (int pe = 0; pe < npes; pe++) {
		all[pe] = pe;
		shmem_long_put_nbi(&there[me], &(long){ 5 }, 1, pe);
		shmem_pe_quiet(&all[pe], 1);
		CHECK(shmem_long_g(&there[me], pe) == 5);
		shmem_long_atomic_add(&there[me], 1, pe);
	}
	shmem_pe_quiet(all, (size_t)npes);
	shmem_pe_quiet(NULL, 0);
	shmem_sync_all();
	for (int pe = 0; pe < npes; pe++)
		CHECK(there[pe] == 6);
}

/* ---- Waiting --------------------------------------------------------------------------------- */

/* Any update ends a wait: by put, atomic operation, signal, or a store through a pointer. */
static void updates_end_waits(void)
{
	static long by_put, by_add, by_store;
	static int by_int_put;
	static uint64_t by_signal;
	long *pointer;

	shmem_long_p(&by_put, 1, next);
	shmem_quiet();
	shmem_long_wait_until(&by_put, SHMEM_CMP_NE, 0);
	shmem_int_put(&by_int_put, &(int){ -4 }, 1, next);
	shmem_quiet();
	shmem_int_wait_until(&by_int_put, SHMEM_CMP_LT, 0);
	shmem_long_atomic_inc(&by_add, next);
	shmem_quiet();
	shmem_long_wait_until(&by_add, SHMEM_CMP_GT, 0);
	shmem_putmem_signal(NULL, NULL, 0, &by_signal, 3, SHMEM_SIGNAL_SET, next);
	shmem_quiet();
	CHECK(shmem_signal_wait_until(&by_signal, SHMEM_CMP_GE, 1) == 3);
	CHECK(shmem_signal_fetch(&by_signal) == 3);
	pointer = shmem_ptr(&by_store, next);
	if (pointer != NULL)
		__atomic_store_n(pointer, 2, __ATOMIC_RELEASE);
	else
		shmem_long_p(&by_store, 2, next);
	shmem_quiet();
	shmem_long_wait_until(&by_store, SHMEM_CMP_EQ, 2);
}

/* A PE that only waits still serves the others, who need many round trips before they wake it. */
static void progress_while_waiting(void)
{
	static long counter, go;

	if (me == 0 && npes > 1) {
		shmem_long_wait_until(&go, SHMEM_CMP_EQ, npes - 1);
		CHECK(counter == 200L * (npes - 1));
	} else if (npes > 1) {
		for (int i = 0; i < 200; i++)
			shmem_long_atomic_fetch_inc(&counter, 0);
		shmem_long_atomic_inc(&go, 0);
	}
}

/*
 * A PE that computes and makes no call serves the others too: gets, puts, atomic operations and
 * signals, whose results they need before they go on.
 */
static void progress_while_computing(void)
{
	enum { LENGTH = 9000 };
	static long counter, go, table[LENGTH], copy[LENGTH], slots[MAX_PES][100];
	static uint64_t sig;

	for (long i = 0; i < LENGTH; i++)
		table[i] = 3 * i + 1;
	shmem_sync_all();
	if (me == 0) {
		while (npes > 1 && __atomic_load_n(&go, __ATOMIC_ACQUIRE) < npes - 1)
			;
		CHECK(counter == 50L * (npes - 1) && sig == 3u * (unsigned)(npes - 1));
		for (int pe = 1; pe < npes; pe++)
			CHECK(slots[pe][0] == pe * 100 && slots[pe][99] == pe * 100 + 99);
		return;
	}
	shmem_long_get(copy, table, LENGTH, 0);
	CHECK(memcmp(copy, table, sizeof(copy)) == 0);
	CHECK(shmem_long_g(&table[LENGTH - 1], 0) == table[LENGTH - 1]);
	for (int i = 0; i < 100; i++)
		copy[i] = me * 100 + i;
	shmem_long_put(slots[me], copy, 100, 0);
	shmem_quiet();
	shmem_long_get_nbi(&copy[100], slots[me], 100, 0);
	shmem_quiet();
	CHECK(memcmp(copy, &copy[100], 100 * sizeof(long)) == 0);
	for (int i = 0; i < 50; i++)
		shmem_long_atomic_fetch_inc(&counter, 0);
	shmem_long_put_signal(slots[me], copy, 100, &sig, 3, SHMEM_SIGNAL_ADD, 0);
	shmem_fence();
	shmem_long_atomic_inc(&go, 0);
	shmem_quiet();
}

static void data_comes_with_the_signal(void)
{
	static char data[100000], from[100000];
	static uint64_t sig;
	const size_t sizes[] = { 1, 7, 8, 48, 64, 100, 1000, 4096, 5000, 65536, 100000 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		memset(from, (int)i + 1, sizes[i]);
		if (i % 2)
			shmem_putmem_signal(data, from, sizes[i], &sig, i + 1, SHMEM_SIGNAL_SET,
					    next);
		else
			shmem_putmem_signal_nbi(data, from, sizes[i], &sig, 1, SHMEM_SIGNAL_ADD,
						next);
		CHECK(shmem_signal_wait_until(&sig, SHMEM_CMP_EQ, i + 1) == i + 1);
		for (size_t k = 0; k < sizes[i]; k++)
			CHECK(data[k] == (char)(i + 1));
		shmem_barrier_all();
	}
}

static void data_and_signal_in_different_segments(void)
{
	static long in_bss[5000];
	static uint64_t sig_in_bss;
	long *in_heap = shmem_calloc(5000, sizeof(long)), from[5000];
	uint64_t *sig_in_heap = shmem_calloc(1, sizeof(uint64_t));

	CHECK(in_heap != NULL && sig_in_heap != NULL);
	for (int round = 1; round <= 20; round++) {
		size_t n = round % 2 ? 5000 : 3;
		for (size_t i = 0; i < n; i++)
			from[i] = me * 10000 + round;
		shmem_long_put_signal(in_heap, from, n, &sig_in_bss, 1, SHMEM_SIGNAL_ADD, next);
		shmem_long_put_signal(in_bss, from, n, sig_in_heap, (uint64_t)round,
				      SHMEM_SIGNAL_SET, next);
		shmem_signal_wait_until(&sig_in_bss, SHMEM_CMP_EQ, (uint64_t)round);
		CHECK(in_heap[0] == prev * 10000 + round && in_heap[n - 1] == in_heap[0]);
		shmem_signal_wait_until(sig_in_heap, SHMEM_CMP_EQ, (uint64_t)round);
		CHECK(in_bss[0] == prev * 10000 + round && in_bss[n - 1] == in_bss[0]);
		shmem_barrier_all();
	}
	shmem_free(sig_in_heap);
	shmem_free(in_heap);
}

/* Signals of all PEs to one object add up, with data, without, and alone. */
static void signals_of_all_add_up(void)
{
	static uint64_t sum, set;
	static long data[MAX_PES];

	for (int i = 0; i < 300; i++) {
		shmem_long_put_signal(&data[me], &(long){ i }, 1, &sum, 1, SHMEM_SIGNAL_ADD, 0);
		shmem_putmem_signal_nbi(NULL, NULL, 0, &sum, 10, SHMEM_SIGNAL_ADD, 0);
		shmem_signal_add(&sum, 100, 0);
	}
	shmem_signal_set(&set, 7, next);
	shmem_barrier_all();
	CHECK(shmem_signal_fetch(&set) == 7);
	if (me == 0) {
		CHECK(shmem_signal_fetch(&sum) == 300u * 111u * (unsigned)npes);
		for (int pe = 0; pe < npes; pe++)
			CHECK(data[pe] == 299);
	}
}

/* ---- Several elements ------------------------------------------------------------------------ */

static void empty_sets(void)
{
	static int ivars[3] = { 1, 1, 1 };
	const int out[3] = { 1, 2, -1 };
	size_t indices[3];

	shmem_int_wait_until_all(NULL, 0, NULL, SHMEM_CMP_EQ, 0);
	shmem_int_wait_until_all(ivars, 3, out, SHMEM_CMP_EQ, 0);
	CHECK(shmem_int_wait_until_any(NULL, 0, NULL, SHMEM_CMP_EQ, 0) == SIZE_MAX);
	CHECK(shmem_int_wait_until_any(ivars, 3, out, SHMEM_CMP_EQ, 1) == SIZE_MAX);
	CHECK(shmem_int_wait_until_some(NULL, 0, NULL, NULL, SHMEM_CMP_EQ, 0) == 0);
	CHECK(shmem_int_wait_until_some(ivars, 3, indices, out, SHMEM_CMP_EQ, 1) == 0);
	CHECK(shmem_int_test_all(NULL, 0, NULL, SHMEM_CMP_EQ, 0) == 1);
	CHECK(shmem_int_test_all(ivars, 3, out, SHMEM_CMP_EQ, 0) == 1);
	CHECK(shmem_int_test_any(NULL, 0, NULL, SHMEM_CMP_EQ, 0) == SIZE_MAX);
	CHECK(shmem_int_test_any(ivars, 3, out, SHMEM_CMP_EQ, 1) == SIZE_MAX);
	CHECK(shmem_int_test_some(NULL, 0, NULL, NULL, SHMEM_CMP_EQ, 0) == 0);
	CHECK(shmem_int_test_some(ivars, 3, indices, out, SHMEM_CMP_EQ, 1) == 0);
	shmem_int_wait_until_all_vector(NULL, 0, NULL, SHMEM_CMP_EQ, NULL);
	CHECK(shmem_int_wait_until_any_vector(NULL, 0, NULL, SHMEM_CMP_EQ, NULL) == SIZE_MAX);
	CHECK(shmem_int_test_all_vector(NULL, 0, NULL, SHMEM_CMP_EQ, NULL) == 1);
}

/* An element whose status is not zero never counts; the status is the program's and is not written. */
static void excluded_elements_do_not_count(void)
{
	static long ivars[5] = { 1, 0, 1, 0, 1 };
	const long values[5] = { 1, 8, 1, 9, 1 };
	const int status[5] = { 0, 1, 0, -7, 0 };
	int copy[5];
	size_t found[5], n;

	memcpy(copy, status, sizeof(copy));
	shmem_long_wait_until_all(ivars, 5, copy, SHMEM_CMP_EQ, 1);
	shmem_long_wait_until_all_vector(ivars, 5, copy, SHMEM_CMP_EQ, values);
	CHECK(shmem_long_test_all(ivars, 5, copy, SHMEM_CMP_EQ, 1) == 1);
	CHECK(shmem_long_test_all_vector(ivars, 5, copy, SHMEM_CMP_EQ, values) == 1);
	CHECK(shmem_long_test_all(ivars, 5, NULL, SHMEM_CMP_EQ, 1) == 0);
	CHECK(shmem_long_test_any(ivars, 5, copy, SHMEM_CMP_EQ, 0) == SIZE_MAX);
	CHECK(shmem_long_test_any_vector(ivars, 5, copy, SHMEM_CMP_NE, values) == SIZE_MAX);
	CHECK(shmem_long_test_some(ivars, 5, found, copy, SHMEM_CMP_EQ, 0) == 0);
	n = shmem_long_wait_until_some(ivars, 5, found, copy, SHMEM_CMP_EQ, 1);
	CHECK(n >= 1 && n <= 3);
	for (size_t i = 0; i < n; i++)
		CHECK(found[i] < 5 && status[found[i]] == 0);
	n = shmem_long_test_some_vector(ivars, 5, found, copy, SHMEM_CMP_EQ, values);
	CHECK(n == 3 && found[0] + found[1] + found[2] == 0 + 2 + 4);
	n = shmem_long_wait_until_some_vector(ivars, 5, found, copy, SHMEM_CMP_EQ, values);
	CHECK(n >= 1 && n <= 3);
	CHECK(memcmp(copy, status, sizeof(copy)) == 0);
}

/* Among elements that all hold, each is returned after a bounded number of calls, by chance. */
static void fairness(void)
{
	static long ivars[10];
	int wait_saw[10] = { 0 }, test_saw[10] = { 0 }, status[10] = { 0 };
	const long values[10] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 };

	status[4] = 1;
	for (int i = 0; i < 10; i++)
		ivars[i] = values[i];
	for (int round = 0; round < 2000; round++) {
		size_t a =
			shmem_long_wait_until_any_vector(ivars, 10, status, SHMEM_CMP_EQ, values);
		size_t b = shmem_long_test_any(ivars, 10, status, SHMEM_CMP_GE, 0);
		CHECK(a < 10 && b < 10 && a != 4 && b != 4);
		wait_saw[a]++;
		test_saw[b]++;
	}
	for (int i = 0; i < 10; i++)
		CHECK((wait_saw[i] > 0) == (i != 4) && (test_saw[i] > 0) == (i != 4));
}

/* Each PE sends one message to each; they are taken in the order of arrival. */
static void any_from_all(void)
{
	static uint64_t flags[MAX_PES], data[MAX_PES];
	int taken[MAX_PES] = { 0 };

	for (int pe = 0; pe < npes; pe++) {
		shmem_uint64_p(&data[me], (uint64_t)(100 + me), (me + pe) % npes);
		shmem_fence();
		shmem_uint64_atomic_set(&flags[me], 1, (me + pe) % npes);
	}
	for (int i = 0; i < npes; i++) {
		size_t from =
			shmem_uint64_wait_until_any(flags, (size_t)npes, taken, SHMEM_CMP_EQ, 1);
		CHECK(from < (size_t)npes && !taken[from] && data[from] == 100 + from);
		taken[from] = 1;
	}
	CHECK(shmem_uint64_test_any(flags, (size_t)npes, taken, SHMEM_CMP_EQ, 1) == SIZE_MAX);
	CHECK(shmem_uint64_test_all(flags, (size_t)npes, NULL, SHMEM_CMP_EQ, 1) == 1);
}

static void comparisons_of_each_sign(void)
{
	static int32_t i32 = -5;
	static uint32_t u32 = UINT32_MAX - 4;
	static int64_t i64 = INT64_MIN;
	static uint64_t u64 = UINT64_MAX;
	static short s = -1;
	static unsigned short us = 65535;

	CHECK(shmem_int32_test(&i32, SHMEM_CMP_LT, 0) == 1);
	CHECK(shmem_uint32_test(&u32, SHMEM_CMP_GT, 0x80000000u) == 1);
	CHECK(shmem_int64_test(&i64, SHMEM_CMP_LE, INT64_MIN) == 1);
	CHECK(shmem_int64_test(&i64, SHMEM_CMP_GT, 0) == 0);
	CHECK(shmem_uint64_test(&u64, SHMEM_CMP_GT, 1) == 1);
	CHECK(shmem_short_test(&s, SHMEM_CMP_LT, 0) == 1 &&
	      shmem_short_test(&s, SHMEM_CMP_EQ, -1) == 1);
	CHECK(shmem_ushort_test(&us, SHMEM_CMP_GT, 0) == 1 &&
	      shmem_ushort_test(&us, SHMEM_CMP_EQ, 65535) == 1);
}

/* A thread that waits does not keep another one from waking it. */
static long thread_flag;

static void *wake(void *none)
{
	shmem_long_atomic_set(&thread_flag, 1, me);
	return none;
}

static void threads_wait_alone(void)
{
	pthread_t thread;
	int level;

	shmem_query_thread(&level);
	CHECK(level == SHMEM_THREAD_MULTIPLE);
	CHECK(pthread_create(&thread, NULL, wake, NULL) == 0);
	shmem_long_wait_until(&thread_flag, SHMEM_CMP_EQ, 1);
	CHECK(pthread_join(thread, NULL) == 0);
}

static const struct rule rules[] = {
	RULE(fence_orders),
	RULE(order_of_puts),
	RULE(fence_orders_stores),
	RULE(quiet_is_visible_to_all),
	RULE(quiet_completes_nbi),
	RULE(pe_quiet_completes),
	RULE(updates_end_waits),
	RULE(progress_while_waiting),
	RULE(progress_while_computing),
	RULE(data_comes_with_the_signal),
	RULE(data_and_signal_in_different_segments),
	RULE(signals_of_all_add_up),
	RULE(empty_sets),
	RULE(excluded_elements_do_not_count),
	RULE(fairness),
	RULE(any_from_all),
	RULE(comparisons_of_each_sign),
	RULE(threads_wait_alone),
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
