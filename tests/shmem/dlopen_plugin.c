/* SPDX-License-Identifier: BSD-2-Clause */
/* The library that dlopen.c loads: it joins the job, uses it, and leaves it if `leave` is not 0. */
#include <shmem.h>

__attribute__((visibility("default"))) int plugin_run(int leave);

int plugin_run(int leave)
{
	int me, n, bad;
	long *word;

	shmem_init();
	me = shmem_my_pe();
	n = shmem_n_pes();
	word = shmem_calloc(1, sizeof(*word));
	shmem_long_p(word, me + 1, (me + 1) % n);
	shmem_barrier_all();
	bad = *word != (me + n - 1) % n + 1;
	shmem_free(word);
	if (leave)
		shmem_finalize();
	return bad;
}
