/* SPDX-License-Identifier: BSD-2-Clause */
/* The generic names as programs use them: in C11, and in C++, where they are overloaded functions. */
#include <shmem.h>

static int array[8], row[2][4];
static long counter, lock, pSync[SHMEM_BARRIER_SYNC_SIZE];
static double reals[4];
static uint64_t word;
static const float constant = 1.0f;
static float real;

static size_t uses(shmem_ctx_t ctx, shmem_team_t team, const int *source, int pe)
{
	const shmem_ctx_t same = ctx;
	size_t index[8];

	shmem_put(array, source, 8, pe); /* an array is a pointer to its first element */
	shmem_put(same, row[1], source, 4, pe);
	shmem_put(&array[2], &row[0][0], 2, pe + 1);
	shmem_get(ctx, reals, reals, 4, pe);
	shmem_p(&real, 1, pe); /* the literal is converted */
	shmem_p(ctx, &real, shmem_g(&constant, pe), pe);
	shmem_put_signal(array, source, 8, &word, 1, SHMEM_SIGNAL_ADD, pe);
	shmem_put_signal_nbi(ctx, array, source, 8, &word, 1, SHMEM_SIGNAL_SET, pe);
	shmem_signal_add(&word, 1, pe);
	shmem_signal_set(ctx, &word, 1, pe);
	shmem_iput(reals, reals, 2, 1, 2, pe);
	shmem_ibget(ctx, reals, reals, 2, 2, 1, 2, pe);
	counter = shmem_atomic_fetch(&counter, pe) + shmem_atomic_fetch(ctx, &counter, pe);
	shmem_atomic_add(&word, 1, pe);
	shmem_atomic_fetch_and_nbi(ctx, &word, &word, 7, pe);
	real = shmem_atomic_swap(&real, 2, pe) + shmem_swap(&real, 3, pe);
	shmem_add(&counter, 1, pe);
	if (shmem_broadcast(team, array, source, 8, 0) || shmem_sum_reduce(team, reals, reals, 4) ||
	    shmem_sum_exscan(team, reals, reals, 4) || shmem_sync(team))
		return 0;
	shmem_sync(0, 0, 1, pSync);
	shmem_wait_until(&counter, SHMEM_CMP_GE, 1);
	shmem_wait_until(&word, SHMEM_CMP_GE, 1);
	if (shmem_test(&array[0], SHMEM_CMP_EQ, 0))
		shmem_set_lock(&lock);
	return shmem_wait_until_some(array, 8, index, NULL, SHMEM_CMP_NE, 0) +
	       shmem_test_any_vector(array, 8, NULL, SHMEM_CMP_NE, source);
}

int main(void)
{
	return (int)uses(SHMEM_CTX_DEFAULT, SHMEM_TEAM_WORLD, array, 0);
}
