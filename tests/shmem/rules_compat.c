/* SPDX-License-Identifier: BSD-2-Clause */
/* A program in the manner of those for OpenSHMEM 1.0 to 1.4. */
#include <complex.h>
#include <mpp/shmem.h>
#include <mpp/shmemx.h>

#include "rules.h"

#define N 7
#define LARGER(a, b) ((a) > (b) ? (a) : (b))

static long pSync[LARGER(_SHMEM_REDUCE_SYNC_SIZE, _SHMEM_BCAST_SYNC_SIZE)];
static long pSync_barrier[_SHMEM_BARRIER_SYNC_SIZE];
static long pSync_collect[_SHMEM_COLLECT_SYNC_SIZE];
static long pSync_all[SHMEM_ALLTOALL_SYNC_SIZE + SHMEM_ALLTOALLS_SYNC_SIZE];

static void barrier(void)
{
	shmem_barrier(0, 0, npes, pSync_barrier);
}

/* ---- Reductions ------------------------------------------------------------------------------ */

/* `want` is the result over the PEs, for elements of the value (pe + i) % 5 + 1. */
#define REDUCE(name, type, op, first, combine)                                                     \
	do {                                                                                       \
		static type from[N], into[N];                                                      \
		static type work[LARGER(N / 2 + 1, _SHMEM_REDUCE_MIN_WRKDATA_SIZE)];               \
		for (int i = 0; i < N; i++) {                                                      \
			from[i] = (type)((me + i) % 5 + 1);                                        \
			into[i] = 0;                                                               \
		}                                                                                  \
		shmem_barrier_all();                                                               \
		shmem_##name##_##op##_to_all(into, from, N, 0, 0, npes, work, pSync);              \
		for (int i = 0; i < N; i++) {                                                      \
			type a = first;                                                            \
			for (int pe = 0; pe < npes; pe++) {                                        \
				type b = (type)((pe + i) % 5 + 1);                                 \
				a = (type)(combine);                                               \
			}                                                                          \
			CHECK(into[i] == a);                                                       \
		}                                                                                  \
		shmem_barrier_all();                                                               \
	} while (0)

#define LOGIC(name, type)                                                                          \
	REDUCE(name, type, and, (type)-1, a &b);                                                   \
	REDUCE(name, type, or, 0, a | b);                                                          \
	REDUCE(name, type, xor, 0, a ^ b)
#define ORDER(name, type)                                                                          \
	REDUCE(name, type, max, -100, a > b ? a : b);                                              \
	REDUCE(name, type, min, 100, a < b ? a : b)
#define ARITH(name, type)                                                                          \
	REDUCE(name, type, sum, 0, a + b);                                                         \
	REDUCE(name, type, prod, 1, a *b)

static void reductions_of_integers(void)
{
	LOGIC(short, short);
	LOGIC(int, int);
	LOGIC(long, long);
	LOGIC(longlong, long long);
	ORDER(short, short);
	ORDER(int, int);
	ORDER(long, long);
	ORDER(longlong, long long);
	ARITH(int, int);
	ARITH(long, long);
	ARITH(longlong, long long);
}

static void reductions_of_reals(void)
{
	ORDER(float, float);
	ORDER(double, double);
	ORDER(longdouble, long double);
	ARITH(float, float);
	ARITH(double, double);
	ARITH(longdouble, long double);
	ARITH(complexf, float complex);
	ARITH(complexd, double complex);
}

/* ---- Atomic operations and waits ------------------------------------------------------------- */

static void old_atomics(void)
{
	static int i = 5;
	static long l = 6, counter;
	static long long ll = 7;
	static float f = 1.5f;
	static double d = 2.5;
	static long lock;

	CHECK(shmem_int_cswap(&i, 5, 50 + me, next) == 5);
	CHECK(shmem_long_fadd(&l, 4, next) == 6);
	CHECK(shmem_longlong_finc(&ll, next) == 7);
	CHECK(shmem_float_swap(&f, 3.5f, next) == 1.5f);
	CHECK(shmem_double_fetch(&d, next) == 2.5);
	barrier();
	CHECK(i == 50 + prev && l == 10 && ll == 8 && f == 3.5f);
	barrier();
	shmem_double_set(&d, 9.5, next);
	shmem_int_add(&i, 2, next);
	shmem_long_inc(&l, next);
	barrier();
	CHECK(d == 9.5 && i == 52 + prev && l == 11);
	for (int k = 0; k < 50; k++) {
		while (shmem_long_cswap(&lock, 0, 1, 0) != 0)
			;
		shmem_long_p(&counter, shmem_long_g(&counter, 0) + 1, 0);
		shmem_quiet();
		shmem_long_swap(&lock, 0, 0);
	}
	barrier();
	CHECK(shmem_long_g(&counter, 0) == 50 * npes);
}

static void old_waits(void)
{
	static short s;
	static int i;
	static long l, more;
	static long long ll;
	static unsigned short us = 3;

	shmem_short_p(&s, 1, next);
	shmem_int_p(&i, 2, next);
	shmem_long_p(&l, 3, next);
	shmem_longlong_p(&ll, 4, next);
	shmem_quiet();
	shmem_short_wait(&s, 0);
	shmem_int_wait(&i, 0);
	shmem_long_wait(&l, 0);
	shmem_longlong_wait(&ll, 0);
	CHECK(s == 1 && i == 2 && l == 3 && ll == 4);
	shmem_long_p(&more, 8, next);
	shmem_quiet();
	shmem_wait(&more, 0);
	shmem_wait_until(&more, _SHMEM_CMP_GE, 8);
	(shmem_wait_until)(&more, SHMEM_CMP_EQ, 8); /* the function */
	shmem_short_wait_until(&s, SHMEM_CMP_NE, 0);
	shmem_ushort_wait_until(&us, SHMEM_CMP_GT, 2);
	CHECK(shmem_ushort_test(&us, SHMEM_CMP_LT, 4) && !shmem_short_test(&s, SHMEM_CMP_LT, 0));
}

/* ---- Collectives ----------------------------------------------------------------------------- */

static void old_collectives(void)
{
	static int from[16], into[16 * MAX_PES];
	static double wide[4], widest[4 * MAX_PES];
	int at = 0;

	for (int i = 0; i < 16; i++)
		from[i] = me * 100 + i;
	for (int i = 0; i < 4; i++)
		wide[i] = me + i / 4.0;
	barrier();
	shmem_collect32(into, from, (size_t)me % 3 + 1, 0, 0, npes, pSync_collect);
	for (int pe = 0; pe < npes; pe++)
		for (int i = 0; i < pe % 3 + 1; i++)
			CHECK(into[at++] == pe * 100 + i);
	barrier();
	shmem_fcollect64(widest, wide, 4, 0, 0, npes, pSync_collect);
	for (int pe = 0; pe < npes; pe++)
		for (int i = 0; i < 4; i++)
			CHECK(widest[4 * pe + i] == pe + i / 4.0);
	barrier();
	shmem_alltoall32(into, from, 1, 0, 0, npes, pSync_all);
	for (int pe = 0; pe < npes; pe++)
		CHECK(into[pe] == pe * 100 + me);
	barrier();
	shmem_alltoalls32(into, from, 2, 1, 1, 0, 0, npes, pSync_all);
	for (int pe = 0; pe < npes; pe++)
		CHECK(into[2 * pe] == pe * 100 + me);
	barrier();
	shmem_broadcast32(into, from, 16, npes - 1, 0, 0, npes, pSync);
	CHECK(me == npes - 1 || into[15] == (npes - 1) * 100 + 15);
	barrier();
}

/* The heart of many old programs: a ring of neighbours that exchange borders of a field. */
static void a_ring_of_borders(void)
{
	double *field = shmalloc(102 * sizeof(double));

	CHECK(field != NULL);
	for (int i = 0; i < 102; i++)
		field[i] = 0;
	if (me == 0)
		field[1] = 1000;
	shmem_barrier_all();
	for (int step = 0; step < 50; step++) {
		double left, right;
		shmem_double_put(&field[101], &field[1], 1, prev);
		shmem_double_put(&field[0], &field[100], 1, next);
		shmem_barrier_all();
		left = field[0];
		for (int i = 1; i <= 100; i++) {
			right = field[i + 1];
			double now = field[i];
			field[i] = now / 2 + left / 4 + right / 4;
			left = now;
		}
		shmem_barrier_all();
	}
	{
		static double sum, total, work[_SHMEM_REDUCE_MIN_WRKDATA_SIZE];
		sum = 0;
		for (int i = 1; i <= 100; i++)
			sum += field[i];
		shmem_double_sum_to_all(&total, &sum, 1, 0, 0, npes, work, pSync);
		CHECK(total > 999.9 && total < 1000.1);
	}
	shfree(field);
}

static const struct rule rules[] = {
	RULE(reductions_of_integers), RULE(reductions_of_reals), RULE(old_atomics), RULE(old_waits),
	RULE(old_collectives),	      RULE(a_ring_of_borders),
};

int main(void)
{
	start_pes(0);
	start_pes(0); /* does nothing */
	learn_who();
	CHECK(_my_pe() == me && _num_pes() == npes);
	for (int i = 0; i < (int)(sizeof(pSync) / sizeof(long)); i++)
		pSync[i] = _SHMEM_SYNC_VALUE;
	for (int i = 0; i < _SHMEM_BARRIER_SYNC_SIZE; i++)
		pSync_barrier[i] = _SHMEM_SYNC_VALUE;
	for (int i = 0; i < _SHMEM_COLLECT_SYNC_SIZE; i++)
		pSync_collect[i] = _SHMEM_SYNC_VALUE;
	for (int i = 0; i < (int)(sizeof(pSync_all) / sizeof(long)); i++)
		pSync_all[i] = SHMEM_SYNC_VALUE;
	shmem_barrier_all();
	run_rules(rules, sizeof(rules) / sizeof(rules[0]));
	return 0; /* without finalizing */
}
