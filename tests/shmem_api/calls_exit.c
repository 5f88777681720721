/* SPDX-License-Identifier: BSD-2-Clause */
/* One PE ends the job with status 7 while the others wait for it; its output arrives. */
#include <shmem.h>
#include <stdio.h>

int main(void)
{
	shmem_init();
	if (shmem_my_pe() == shmem_n_pes() - 1) {
		printf("ok shmem_global_exit\n");
		shmem_global_exit(7);
	}
	shmem_barrier_all();
	return 0;
}
