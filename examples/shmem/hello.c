/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hello - each PE stores into the memory of the next: read this one first.
 *
 *	oshcc -o hello hello.c
 *	oshrun -np 4 ./hello
 */
#include <shmem.h>
#include <stdio.h>

/*
 * A global variable is symmetric: every PE has one, and its name, with the number of a PE, says
 * which is meant.
 */
static int from = -1;

int main(void)
{
	int me, npes, expected;

	shmem_init();
	me = shmem_my_pe();
	npes = shmem_n_pes();
	expected = (me + npes - 1) % npes;

	/* No other PE has a part in this call: neither does it receive, nor does it wait. */
	shmem_int_p(&from, me, (me + 1) % npes);

	/* After the barrier all stores of all PEs are complete. */
	shmem_barrier_all();
	if (from != expected) {
		fprintf(stderr, "hello: PE %d found %d, not %d\n", me, from, expected);
		shmem_global_exit(1);
	}
	printf("hello from PE %d of %d, which PE %d wrote to\n", me, npes, from);
	shmem_finalize();
	return 0;
}
