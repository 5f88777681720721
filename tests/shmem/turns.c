/* SPDX-License-Identifier: BSD-2-Clause */
/* Starts and finalizes OpenSHMEM, and so starts the agent of its host if there is none. */
#include <shmem.h>

int main(void)
{
	shmem_init();
	shmem_finalize();
	return 0;
}
