/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * PEs that never end: puts, gets, atomic operations, signals, locks and collectives, at random,
 * until a process is killed.  PE 0 writes a line when all are under way.
 *
 * usage: busy SEED
 */
#include "rules.h"

#define LENGTH 20000

static char box[LENGTH], from[LENGTH];
static long counter, sums[512], out[512], lock;
static uint64_t sig;

static uint32_t next_random(uint32_t *state)
{
	return (*state = *state * 1664525u + 1013904223u) >> 8;
}

static void one(uint32_t *random)
{
	int pe = (int)(next_random(random) % (unsigned)npes);
	size_t n = next_random(random) % LENGTH;

	switch (next_random(random) % 8) {
	case 0:
		shmem_putmem(box, from, n, pe);
		break;
	case 1:
		shmem_putmem_nbi(box, from, n, pe);
		break;
	case 2:
		shmem_getmem(from, box, n, pe);
		break;
	case 3:
		shmem_long_atomic_fetch_inc(&counter, pe);
		break;
	case 4:
		shmem_long_atomic_add(&counter, 1, pe);
		break;
	case 5:
		shmem_putmem_signal(box, from, n % 100, &sig, 1, SHMEM_SIGNAL_ADD, pe);
		break;
	case 6:
		shmem_quiet();
		break;
	default:
		shmem_set_lock(&lock);
		shmem_clear_lock(&lock);
		break;
	}
}

int main(int argc, char **argv)
{
	uint32_t random = argc == 2 ? (uint32_t)strtoul(argv[1], NULL, 10) : 1;
	int said = 0;

	shmem_init();
	learn_who();
	for (;;) {
		uint32_t common = random, own = random + (uint32_t)me;
		uint32_t what = next_random(&common) % 4;

		for (int i = 0; i < 30; i++)
			one(&own);
		if (what == 0)
			shmem_barrier_all();
		else if (what == 1)
			shmem_long_sum_reduce(SHMEM_TEAM_WORLD, out, sums, 1 + random % 512);
		else if (what == 2)
			shmem_broadcastmem(SHMEM_TEAM_WORLD, box, from, random % LENGTH, 0);
		else
			shmem_sync_all();
		if (me == 0 && !said++) {
			puts("under way");
			fflush(stdout);
		}
		random = common;
	}
}
