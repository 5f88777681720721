/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Collectives and transfers of lengths around the limits between their algorithms, for any number of
 * PEs: from the message of one line to several rounds of pieces.
 */
#include "rules.h"

#define MOST 40000u

static const size_t lengths[] = { 1, 5, 6, 7, 100, 1023, 1025, 8192, MOST };
static long *source, *dest, *all;

static long value(int pe, size_t i)
{
	return pe * 1000003l + (long)i;
}

static void fill(size_t n)
{
	for (size_t i = 0; i < n; i++)
		source[i] = value(me, i);
	memset(dest, 0xff, n * (size_t)npes * sizeof(*dest));
	shmem_barrier_all();
}

static void check_blocks(size_t n)
{
	for (int pe = 0; pe < npes; pe++) {
		for (size_t i = 0; i < n; i++)
			CHECK(dest[(size_t)pe * n + i] == value(pe, i));
	}
}

static void reductions(void)
{
	for (size_t k = 0; k < sizeof(lengths) / sizeof(*lengths); k++) {
		size_t n = lengths[k];
		long pes = npes * (npes - 1l) / 2;

		fill(n);
		shmem_long_sum_reduce(SHMEM_TEAM_WORLD, dest, source, n);
		for (size_t i = 0; i < n; i++)
			CHECK(dest[i] == 1000003l * pes + npes * (long)i);
		shmem_barrier_all();
		shmem_long_max_reduce(SHMEM_TEAM_WORLD, source, source, n);
		for (size_t i = 0; i < n; i++)
			CHECK(source[i] == value(npes - 1, i));
		shmem_barrier_all();
	}
}

static void scans(void)
{
	for (size_t k = 0; k < sizeof(lengths) / sizeof(*lengths); k++) {
		size_t n = lengths[k];

		fill(n);
		shmem_long_sum_exscan(SHMEM_TEAM_WORLD, dest, source, n);
		for (size_t i = 0; i < n; i++)
			CHECK(dest[i] == 1000003l * (me * (me - 1l) / 2) + me * (long)i);
		shmem_barrier_all();
		shmem_long_sum_inscan(SHMEM_TEAM_WORLD, source, source, n);
		for (size_t i = 0; i < n; i++)
			CHECK(source[i] == 1000003l * (me * (me + 1l) / 2) + (me + 1) * (long)i);
		shmem_barrier_all();
	}
}

static void blocks(void)
{
	for (size_t k = 0; k < sizeof(lengths) / sizeof(*lengths); k++) {
		size_t n = lengths[k];

		fill(n);
		shmem_long_fcollect(SHMEM_TEAM_WORLD, dest, source, n);
		check_blocks(n);
		for (size_t i = 0; i < n * (size_t)npes; i++)
			all[i] = value(me, i % n);
		memset(dest, 0xff, n * (size_t)npes * sizeof(*dest));
		shmem_barrier_all();
		shmem_long_alltoall(SHMEM_TEAM_WORLD, dest, all, n);
		check_blocks(n);
		shmem_barrier_all();
		for (int root = 0; root < npes; root++) {
			memset(dest, 0xff, n * sizeof(*dest));
			shmem_barrier_all();
			shmem_long_broadcast(SHMEM_TEAM_WORLD, dest, source, n, root);
			for (size_t i = 0; i < n; i++)
				CHECK(dest[i] == value(root, i));
			shmem_barrier_all();
		}
	}
}

static void uneven_blocks(void)
{
	for (size_t k = 4; k < sizeof(lengths) / sizeof(*lengths); k++) {
		size_t n = lengths[k], at = 0;

		fill(n);
		shmem_long_collect(SHMEM_TEAM_WORLD, dest, source, n - (size_t)me % 3);
		for (int pe = 0; pe < npes; pe++) {
			for (size_t i = 0; i < n - (size_t)pe % 3; i++)
				CHECK(dest[at++] == value(pe, i));
		}
		shmem_barrier_all();
	}
}

/* From and to memory that is neither in the heap nor a variable, so that it has to be copied or registered. */
static void private_memory(void)
{
	for (size_t k = 0; k < sizeof(lengths) / sizeof(*lengths); k++) {
		size_t n = lengths[k];
		long *own = malloc(n * sizeof(*own));

		CHECK(own != NULL);
		fill(n);
		for (size_t i = 0; i < n; i++)
			own[i] = value(me, i);
		shmem_long_put(dest, own, n, next);
		shmem_barrier_all();
		for (size_t i = 0; i < n; i++)
			CHECK(dest[i] == value(prev, i));
		memset(own, 0, n * sizeof(*own));
		shmem_long_get(own, dest, n, next);
		for (size_t i = 0; i < n; i++)
			CHECK(own[i] == value(me, i));
		memset(own, 0, n * sizeof(*own));
		shmem_long_get_nbi(own, dest, n, next);
		shmem_quiet();
		for (size_t i = 0; i < n; i++)
			CHECK(own[i] == value(me, i));
		free(own);
		shmem_barrier_all();
	}
}

int main(void)
{
	static const struct rule rules[] = { RULE(reductions), RULE(scans), RULE(blocks),
					     RULE(uneven_blocks), RULE(private_memory) };

	shmem_init();
	learn_who();
	source = shmem_malloc(MOST * sizeof(long));
	dest = shmem_malloc(MOST * (size_t)npes * sizeof(long));
	all = shmem_malloc(MOST * (size_t)npes * sizeof(long));
	CHECK(source != NULL && dest != NULL && all != NULL);
	run_rules(rules, sizeof(rules) / sizeof(*rules));
	shmem_finalize();
	return 0;
}
