/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * matmul - C = A * B; each PE has some rows of each matrix.
 *
 *	oshcc -o matmul matmul.c
 *	oshrun -np 4 ./matmul
 *
 * A PE computes its rows of C.  It needs its rows of A, and all of B, which it fetches block by
 * block: while it works on one block the next is under way (shmem_get_nbi).
 */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>

#define N 120

typedef double row[N];

static int first_row(int pe)
{
	return N * pe / shmem_n_pes();
}

static int rows_of(int pe)
{
	return first_row(pe + 1) - first_row(pe);
}

/* Small whole numbers: sums of their products are exact in any order. */
static double a_of(int i, int j)
{
	return (i * 7 + j * 3) % 11 - 5;
}

static double b_of(int i, int j)
{
	return (i * 5 + j * 2) % 13 - 6;
}

static void fetch(row *to, row *b, int pe)
{
	shmem_double_get_nbi(to[0], b[0], (size_t)rows_of(pe) * N, pe);
}

/* Adds the products with those rows of B that `pe` has. */
static void multiply(row *c, row *a, row *block, int pe)
{
	int rows = rows_of(shmem_my_pe()), first = first_row(pe), i, j, k;

	for (i = 0; i < rows; i++)
		for (k = 0; k < rows_of(pe); k++)
			for (j = 0; j < N; j++)
				c[i][j] += a[i][first + k] * block[k][j];
}

static int wrong_cells(row *c)
{
	int me = shmem_my_pe(), i, j, k, wrong = 0;

	for (i = 0; i < rows_of(me); i++) {
		for (j = 0; j < N; j++) {
			double sum = 0;

			for (k = 0; k < N; k++)
				sum += a_of(first_row(me) + i, k) * b_of(k, j);
			wrong += c[i][j] != sum;
		}
	}
	return wrong;
}

int main(void)
{
	static int wrong, all;
	row *a, *b, *c, *block[2];
	size_t most;
	int me, npes, i, j;

	shmem_init();
	me = shmem_my_pe();
	npes = shmem_n_pes();
	most = (size_t)(N / npes + 1); /* rows of a PE */

	/* Only B is read by other PEs, so only B needs symmetric memory. */
	b = shmem_malloc(most * sizeof(row));
	a = calloc(most, sizeof(row));
	c = calloc(most, sizeof(row));
	block[0] = calloc(most, sizeof(row));
	block[1] = calloc(most, sizeof(row));
	if (!a || !b || !c || !block[0] || !block[1]) {
		fprintf(stderr, "matmul: no memory\n");
		shmem_global_exit(1);
	}
	for (i = 0; i < rows_of(me); i++) {
		for (j = 0; j < N; j++) {
			a[i][j] = a_of(first_row(me) + i, j);
			b[i][j] = b_of(first_row(me) + i, j);
		}
	}
	shmem_barrier_all(); /* B is complete everywhere */

	/* Each PE begins with its own block, so that not all read from the same PE. */
	fetch(block[0], b, me);
	for (i = 0; i < npes; i++) {
		shmem_quiet(); /* the block has come */
		if (i + 1 < npes)
			fetch(block[(i + 1) % 2], b, (me + i + 1) % npes);
		multiply(c, a, block[i % 2], (me + i) % npes);
	}

	wrong = wrong_cells(c);
	shmem_int_sum_reduce(SHMEM_TEAM_WORLD, &all, &wrong, 1);
	if (all) {
		fprintf(stderr, "matmul: PE %d: %d cells are wrong, %d in all\n", me, wrong, all);
		shmem_global_exit(1);
	}
	if (me == 0)
		printf("matmul: %d x %d on %d PEs, every cell is right\n", N, N, npes);
	shmem_free(b);
	free(block[1]);
	free(block[0]);
	free(c);
	free(a);
	shmem_finalize();
	return 0;
}
