/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Each PE puts its number to each PE, beginning with itself, and adds one there; each checks what
 * it received.
 */
#include <shmem.h>
#include <stdio.h>

static long count;

int main(void)
{
	int me, n, ok;
	int *from;

	shmem_init();
	me = shmem_my_pe();
	n = shmem_n_pes();
	from = shmem_calloc((size_t)n, sizeof(*from));
	if (from == NULL)
		shmem_global_exit(1);
	for (int i = 0; i < n; i++) {
		int pe = (me + i) % n;

		shmem_int_p(&from[me], me + 1, pe);
		shmem_long_atomic_inc(&count, pe);
	}
	shmem_barrier_all();
	ok = count == n;
	for (int pe = 0; pe < n; pe++)
		ok &= from[pe] == pe + 1;
	if (!ok)
		shmem_global_exit(2);
	puts("ok");
	shmem_finalize();
	return 0;
}
