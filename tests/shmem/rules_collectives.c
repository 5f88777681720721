/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules of collectives, of teams and of active sets. */
#include <complex.h>

#include "rules.h"

static long source[4096], dest[4096 * MAX_PES], more[4096 * MAX_PES];
static long pSync[SHMEM_COLLECT_SYNC_SIZE + SHMEM_REDUCE_SYNC_SIZE + SHMEM_BCAST_SYNC_SIZE];
static long barrier_sync[SHMEM_BARRIER_SYNC_SIZE], collect_sync[SHMEM_COLLECT_SYNC_SIZE];
static long work[4096 / 2 + 1 + SHMEM_REDUCE_MIN_WRKDATA_SIZE];

static void fill(long *array, size_t n, int pe)
{
	for (size_t i = 0; i < n; i++)
		array[i] = pe * 100000L + (long)i;
}

static int filled(const long *array, size_t n, int pe)
{
	for (size_t i = 0; i < n; i++)
		if (array[i] != pe * 100000L + (long)i)
			return 0;
	return 1;
}

static void broadcast_of_a_team_writes_the_roots_dest(void)
{
	for (int root = 0; root < npes; root++) {
		fill(source, 100, me);
		memset(dest, 0, 100 * sizeof(long));
		shmem_barrier_all();
		CHECK(shmem_long_broadcast(SHMEM_TEAM_WORLD, dest, source, 100, root) == 0);
		CHECK(filled(dest, 100, root));
		shmem_barrier_all();
		/* In place. */
		CHECK(shmem_long_broadcast(SHMEM_TEAM_WORLD, source, source, 100, root) == 0);
		CHECK(filled(source, 100, root));
		shmem_barrier_all();
	}
}

static void broadcast_of_a_set_does_not(void)
{
	for (int root = 0; root < npes; root++) {
		fill(source, 100, me);
		memset(dest, 0, 200 * sizeof(long));
		shmem_barrier_all();
		shmem_broadcast64(dest, source, 100, root, 0, 0, npes, pSync);
		CHECK(me == root ? dest[0] == 0 && dest[99] == 0 : filled(dest, 100, root));
		shmem_barrier_all();
		shmem_broadcast32(dest + 100, source, 100, root, 0, 0, npes, pSync);
		CHECK(me == root ? dest[100] == 0 : filled(dest + 100, 50, root));
		CHECK(dest[150] == 0);
		shmem_barrier_all();
	}
	for (size_t i = 0; i < sizeof(pSync) / sizeof(long); i++)
		CHECK(pSync[i] == SHMEM_SYNC_VALUE);
}

static void collect_of_different_lengths(void)
{
	for (int round = 0; round < 20; round++) {
		size_t n = (size_t)((me * 7 + round * 3) % 11 * (round % 4 == 0 ? 100 : 1)), at = 0;
		if (round == 7)
			n = 0; /* for all */
		if (round == 8)
			n = me == npes - 1 ? 5 : 0;
		fill(source, n, me);
		CHECK(shmem_long_collect(SHMEM_TEAM_WORLD, dest, source, n) == 0);
		for (int pe = 0; pe < npes; pe++) {
			size_t count =
				(size_t)((pe * 7 + round * 3) % 11 * (round % 4 == 0 ? 100 : 1));
			count = round == 7 ? 0 : round == 8 ? pe == npes - 1 ? 5 : 0 : count;
			CHECK(filled(dest + at, count, pe));
			at += count;
		}
		shmem_barrier_all();
	}
}

static void lengths(void)
{
	const size_t counts[] = { 0, 1, 2, 5, 6, 7, 16, 100, 511, 512, 513, 4096 };

	for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
		size_t n = counts[c];
		fill(source, n, me);
		CHECK(shmem_long_fcollect(SHMEM_TEAM_WORLD, dest, source, n) == 0);
		for (int pe = 0; pe < npes; pe++)
			CHECK(filled(dest + (size_t)pe * n, n, pe));
		CHECK(shmem_long_sum_reduce(SHMEM_TEAM_WORLD, more, source, n) == 0);
		for (size_t i = 0; i < n; i++)
			CHECK(more[i] == 100000L * npes * (npes - 1) / 2 + (long)i * npes);
		shmem_barrier_all();
		CHECK(shmem_long_broadcast(SHMEM_TEAM_WORLD, more, source, n, npes - 1) == 0);
		CHECK(filled(more, n, npes - 1));
		shmem_barrier_all();
		CHECK(shmem_long_max_reduce(SHMEM_TEAM_WORLD, source, source, n) == 0);
		CHECK(filled(source, n, npes - 1));
		shmem_barrier_all();
	}
}

static void alltoall_blocks(void)
{
	for (size_t n = 1; n <= 512; n *= 8) {
		fill(source, n * (size_t)npes, me);
		CHECK(shmem_long_alltoall(SHMEM_TEAM_WORLD, dest, source, n) == 0);
		for (int pe = 0; pe < npes; pe++)
			for (size_t i = 0; i < n; i++)
				CHECK(dest[(size_t)pe * n + i] ==
				      pe * 100000L + (long)((size_t)me * n + i));
		shmem_barrier_all();
	}
}

static void alltoalls_strides(void)
{
	for (size_t dst = 1; dst <= 3; dst++) {
		for (size_t sst = 1; sst <= 3; sst++) {
			const size_t n = 5;
			fill(source, n * sst * (size_t)npes, me);
			memset(dest, 0, n * dst * (size_t)npes * sizeof(long));
			shmem_barrier_all();
			CHECK(shmem_long_alltoalls(SHMEM_TEAM_WORLD, dest, source, (ptrdiff_t)dst,
						   (ptrdiff_t)sst, n) == 0);
			for (size_t k = 0; k < n * (size_t)npes * dst; k++) {
				size_t pe = k / (n * dst), i = k / dst % n;
				long want = (long)pe * 100000L + (long)(((size_t)me * n + i) * sst);
				CHECK(dest[k] == (k % dst ? 0 : want));
			}
			shmem_barrier_all();
		}
	}
}

/* ---- Reductions ------------------------------------------------------------------------------ */

static void reductions_of_small_and_odd_types(void)
{
	static unsigned char bytes[33], bytes_out[33];
	static unsigned int uints[3] = { UINT32_MAX, 1, 2 }, uints_out[3];
	static long double reals[3], reals_out[3];
	static double complex pairs[2], pairs_out[2];
	static short shorts[5], shorts_out[5];
	static char chars[3], chars_out[3];
	unsigned sum = 0;
	long double product = 1, real_sum = 0;
	double complex pair = 1;

	for (int i = 0; i < 33; i++)
		bytes[i] = (unsigned char)(200 + me);
	for (int i = 0; i < 3; i++)
		reals[i] = 1.5L + me, chars[i] = (char)(me - 3);
	for (int i = 0; i < 5; i++)
		shorts[i] = (short)(me % 2 ? -me : me);
	pairs[0] = pairs[1] = 1 + me % 3 * I;
	for (int pe = 0; pe < npes; pe++) {
		sum += 200u + (unsigned)pe;
		product *= 1.5L + pe;
		real_sum += 1.5L + pe;
		pair *= 1 + pe % 3 * I;
	}
	shmem_uchar_sum_reduce(SHMEM_TEAM_WORLD, bytes_out, bytes, 33);
	for (int i = 0; i < 33; i++)
		CHECK(bytes_out[i] == (unsigned char)sum);
	shmem_uint_sum_reduce(SHMEM_TEAM_WORLD, uints_out, uints, 3);
	CHECK(uints_out[0] == 0u - (unsigned)npes && uints_out[1] == (unsigned)npes);
	shmem_longdouble_prod_reduce(SHMEM_TEAM_WORLD, reals_out, reals, 3);
	CHECK(reals_out[0] == product && reals_out[2] == product);
	shmem_barrier_all();
	shmem_longdouble_sum_reduce(SHMEM_TEAM_WORLD, reals_out, reals, 3);
	CHECK(reals_out[0] == real_sum && reals_out[2] == real_sum);
	shmem_barrier_all();
	shmem_longdouble_min_reduce(SHMEM_TEAM_WORLD, reals_out, reals, 3);
	CHECK(reals_out[1] == 1.5L);
	shmem_complexd_prod_reduce(SHMEM_TEAM_WORLD, pairs_out, pairs, 2);
	CHECK(pairs_out[0] == pair && pairs_out[1] == pair);
	shmem_short_min_reduce(SHMEM_TEAM_WORLD, shorts_out, shorts, 5);
	CHECK(shorts_out[4] == -(npes / 2 * 2 - (npes > 1)));
	shmem_char_max_reduce(SHMEM_TEAM_WORLD, chars_out, chars, 3);
	CHECK(chars_out[2] == (char)(npes - 4));
}

static void big_reduction(void)
{
	const size_t n = (16u << 20) / sizeof(int);
	int *from = shmem_malloc(n * sizeof(int)), *into = shmem_malloc(n * sizeof(int));

	CHECK(from != NULL && into != NULL);
	for (size_t i = 0; i < n; i++)
		from[i] = (int)i + me;
	CHECK(shmem_int_sum_reduce(SHMEM_TEAM_WORLD, into, from, n) == 0);
	for (size_t i = 0; i < n; i++)
		CHECK(into[i] == (int)i * npes + npes * (npes - 1) / 2);
	shmem_free(into);
	shmem_free(from);
}

static void scans(void)
{
	for (int round = 0; round < 10; round++) {
		size_t n = round == 9 ? 1000 : (size_t)round;
		fill(source, n, me);
		CHECK(shmem_long_sum_inscan(SHMEM_TEAM_WORLD, dest, source, n) == 0);
		CHECK(shmem_long_sum_exscan(SHMEM_TEAM_WORLD, more, source, n) == 0);
		for (size_t i = 0; i < n; i++) {
			CHECK(more[i] == 100000L * me * (me - 1) / 2 + (long)i * me);
			CHECK(dest[i] == more[i] + source[i]);
		}
		shmem_barrier_all();
		CHECK(shmem_long_sum_exscan(SHMEM_TEAM_WORLD, source, source, n) == 0);
		CHECK(memcmp(source, more, n * sizeof(long)) == 0);
		shmem_barrier_all();
	}
}

/* Source and dest on a team that counts backwards. */
static void order_is_the_teams(void)
{
	shmem_team_t back;

	CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, npes - 1, -1, npes, NULL, 0, &back) == 0);
	fill(source, 3, me);
	CHECK(shmem_long_fcollect(back, dest, source, 3) == 0);
	for (int i = 0; i < npes; i++)
		CHECK(filled(dest + 3 * i, 3, npes - 1 - i));
	CHECK(shmem_long_broadcast(back, more, source, 3, 0) == 0);
	CHECK(filled(more, 3, npes - 1));
	source[0] = 1;
	shmem_barrier_all();
	CHECK(shmem_long_sum_exscan(back, dest, source, 1) == 0);
	CHECK(dest[0] == npes - 1 - me);
	shmem_team_destroy(back);
}

/* One directly after the other, with other sources and dests. */
static void back_to_back(void)
{
	for (int i = 0; i < 500; i++)
		source[i] = me + i;
	for (int i = 0; i < 500; i++) {
		CHECK(shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &dest[i], &source[i], 1) == 0);
		CHECK(dest[i] == (long)npes * i + npes * (npes - 1) / 2);
		if (i % 5 == 0)
			shmem_sync_all();
		if (i % 7 == 0) {
			CHECK(shmem_long_broadcast(SHMEM_TEAM_WORLD, &more[i], &source[i], 1,
						   i % npes) == 0);
			CHECK(more[i] == i % npes + i);
		}
	}
}

/* The source may be changed as soon as the call returns. */
static void source_is_free_afterwards(void)
{
	for (int round = 0; round < 100; round++) {
		static long one[100], all[100][MAX_PES];
		one[round] = me * 1000 + round;
		CHECK(shmem_long_fcollect(SHMEM_TEAM_WORLD, all[round], &one[round], 1) == 0);
		one[round] = -1;
		for (int pe = 0; pe < npes; pe++)
			CHECK(all[round][pe] == pe * 1000 + round);
	}
}

static void a_barrier_completes(void)
{
	for (int round = 1; round <= 200; round++) {
		shmem_long_p(&dest[0], round, next);
		shmem_long_atomic_add(&dest[1], 1, next);
		shmem_barrier_all();
		CHECK(dest[0] == round);
		shmem_barrier(0, 0, npes, barrier_sync);
	}
}

/* ---- Active sets ----------------------------------------------------------------------------- */

static void sets_with_strides(void)
{
	for (int log_stride = 0; 1 << log_stride <= npes; log_stride++) {
		for (int start = 0; start < npes; start++) {
			int stride = 1 << log_stride, size = (npes - start + stride - 1) / stride;
			int member = me >= start && (me - start) % stride == 0, sum = 0;

			for (int i = 0; i < size; i++)
				sum += start + i * stride;
			source[0] = me;
			if (member) {
				shmem_long_sum_to_all(dest, source, 1, start, log_stride, size,
						      work, pSync);
				CHECK(dest[0] == sum);
				shmem_barrier(start, log_stride, size, barrier_sync);
				shmem_fcollect64(more, source, 1, start, log_stride, size,
						 collect_sync);
				for (int i = 0; i < size; i++)
					CHECK(more[i] == start + i * stride);
				shmem_sync(start, log_stride, size, barrier_sync);
			}
			shmem_barrier_all();
		}
	}
}

/* The root of a broadcast is a number in the set, not a PE. */
static void root_counts_in_the_set(void)
{
	for (int start = 0; start < npes; start++) {
		int size = (npes - start + 1) / 2, member = me >= start && (me - start) % 2 == 0;

		for (int root = 0; root < size; root++) {
			source[0] = 1000 + me;
			dest[0] = -1;
			shmem_barrier_all();
			if (member)
				shmem_broadcast64(dest, source, 1, root, start, 1, size, pSync);
			CHECK(dest[0] ==
			      (member && me != start + 2 * root ? 1000 + start + 2 * root : -1));
			shmem_barrier_all();
		}
	}
}

static void zero_lengths_of_sets(void)
{
	shmem_long_sum_to_all(NULL, NULL, 0, 0, 0, npes, work, pSync);
	shmem_barrier_all();
	shmem_collect32(NULL, NULL, 0, 0, 0, npes, pSync);
	shmem_barrier_all();
	shmem_broadcast64(NULL, NULL, 0, 0, 0, 0, npes, pSync);
}

static const struct rule rules[] = {
	RULE(broadcast_of_a_team_writes_the_roots_dest),
	RULE(broadcast_of_a_set_does_not),
	RULE(collect_of_different_lengths),
	RULE(lengths),
	RULE(alltoall_blocks),
	RULE(alltoalls_strides),
	RULE(reductions_of_small_and_odd_types),
	RULE(big_reduction),
	RULE(scans),
	RULE(order_is_the_teams),
	RULE(back_to_back),
	RULE(source_is_free_afterwards),
	RULE(a_barrier_completes),
	RULE(sets_with_strides),
	RULE(root_counts_in_the_set),
	RULE(zero_lengths_of_sets),
};

int main(void)
{
	shmem_init();
	learn_who();
	for (size_t i = 0; i < sizeof(pSync) / sizeof(long); i++)
		pSync[i] = SHMEM_SYNC_VALUE;
	for (size_t i = 0; i < SHMEM_BARRIER_SYNC_SIZE; i++)
		barrier_sync[i] = SHMEM_SYNC_VALUE;
	for (size_t i = 0; i < SHMEM_COLLECT_SYNC_SIZE; i++)
		collect_sync[i] = SHMEM_SYNC_VALUE;
	shmem_barrier_all();
	run_rules(rules, sizeof(rules) / sizeof(rules[0]));
	shmem_finalize();
	return 0;
}
