/* SPDX-License-Identifier: BSD-2-Clause */
/* Begins and ends, and so starts the agent of its host where there is none. */
#include <shmem.h>

int main(void)
{
	shmem_init();
	shmem_finalize();
	return 0;
}
