/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls the oldest routines; like old programs, this one ends without finalizing. */
#include <mpp/shmem.h>
#include <stdio.h>
#include <string.h>

static long sync_array[_SHMEM_BARRIER_SYNC_SIZE], other_array[_SHMEM_BARRIER_SYNC_SIZE], count;
static int me, npes;

static void check(int condition, const char *name)
{
	if (!condition) {
		fprintf(stderr, "FAILED %s at PE %d of %d\n", name, me, npes);
		shmem_global_exit(1);
	}
	shmem_barrier_all();
	if (me == 0)
		printf("ok %s\n", name);
}

static int use(long *block, size_t n)
{
	int good = block != NULL;

	for (size_t i = 0; good && i < n; i++)
		shmem_long_p(&block[i], (long)i + 7, (me + 1) % npes);
	shmem_barrier_all();
	for (size_t i = 0; good && i < n; i++)
		good = block[i] == (long)i + 7;
	return good;
}

int main(void)
{
	long *block;

	start_pes(0);
	me = _my_pe();
	npes = _num_pes();
	start_pes(npes);
	check(me == shmem_my_pe(), "_my_pe");
	check(npes == shmem_n_pes(), "_num_pes");
	check(me >= 0 && me < npes, "start_pes");

	block = shmalloc(10 * sizeof(long));
	check(use(block, 10), "shmalloc");
	block = shrealloc(block, 100 * sizeof(long));
	check(block != NULL && block[9] == 16 && use(block, 100), "shrealloc");
	shfree(block);
	/* The heap would be used up if nothing were given back. */
	for (int i = 0; i < 40; i++) {
		block = shmalloc(64u << 20);
		check(block != NULL, "shfree");
		shfree(block);
	}
	block = shmemalign(4096, 10 * sizeof(long));
	check((uintptr_t)block % 4096 == 0 && use(block, 10), "shmemalign");
	shfree(block);

	for (int i = 0; i < _SHMEM_BARRIER_SYNC_SIZE; i++)
		sync_array[i] = other_array[i] = _SHMEM_SYNC_VALUE;
	shmem_barrier_all();
	for (int i = 1; i <= 20; i++) {
		shmem_long_inc(&count, (me + 1) % npes);
		shmem_barrier(0, 0, npes, sync_array);
		check(count == i, "shmem_barrier");
	}
	for (int i = 21; i <= 40; i++) {
		shmem_long_inc(&count, (me + 1) % npes);
		shmem_quiet();
		shmem_sync(0, 0, npes, other_array);
		check(count == i, "shmem_sync");
	}
	return 0;
}
