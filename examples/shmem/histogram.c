/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * histogram - all PEs count into bins that lie at all of them.
 *
 *	oshcc -o histogram histogram.c
 *	oshrun -np 4 ./histogram
 *
 * Bin b lies at PE b % npes.  PEs that add to a bin at the same time do not disturb each other,
 * since the addition is atomic: it is executed as one step where the bin lies.
 */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>

#define BINS 256
#define SAMPLES 5000 /* of each PE */

/* Every number depends on the PE and i only, so that the result can be computed again. */
static int bin_of(int pe, int i)
{
	unsigned int x = (unsigned int)(pe * SAMPLES + i) * 2654435761u;

	return (int)((x >> 24) & (x >> 16) & (BINS - 1)); /* some bins get more than others */
}

/* The number of bins at this PE that differ from a count without PEs. */
static int check(const long *bins)
{
	static long alone[BINS];
	int npes = shmem_n_pes(), pe, i, wrong = 0;

	for (pe = 0; pe < npes; pe++)
		for (i = 0; i < SAMPLES; i++)
			alone[bin_of(pe, i)]++;
	for (i = shmem_my_pe(); i < BINS; i += npes)
		wrong += bins[i / npes] != alone[i];
	return wrong;
}

int main(void)
{
	static long mine, all;
	long *bins;
	int me, npes, i, wrong;

	shmem_init();
	me = shmem_my_pe();
	npes = shmem_n_pes();
	bins = shmem_calloc((size_t)(BINS / npes + 1), sizeof(*bins));
	if (!bins) {
		fprintf(stderr, "histogram: the symmetric heap is too small\n");
		shmem_global_exit(1);
	}

	for (i = 0; i < SAMPLES; i++) {
		int bin = bin_of(me, i);

		shmem_long_atomic_inc(bins + bin / npes, bin % npes);
	}
	shmem_barrier_all(); /* completes the additions of all PEs */

	wrong = check(bins);
	for (i = me; i < BINS; i += npes)
		mine += bins[i / npes];
	shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &all, &mine, 1);
	if (wrong || all != (long)SAMPLES * npes) {
		fprintf(stderr, "histogram: PE %d: %d bins are wrong, %ld samples of %ld\n", me,
			wrong, all, (long)SAMPLES * npes);
		shmem_global_exit(1);
	}
	if (me == 0)
		printf("histogram: %ld samples of %d PEs in %d bins\n", all, npes, BINS);
	shmem_free(bins);
	shmem_finalize();
	return 0;
}
