/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ring - a token goes round all PEs, several times, and each adds to it.
 *
 *	oshcc -o ring ring.c
 *	oshrun -np 4 ./ring
 *	oshrun -np 3 --hosts 3 ./ring		(on three emulated hosts)
 *
 * shmem_put_signal() stores data and then a signal: a PE that sees the signal sees the data.  So
 * the receiver waits for the signal, and no barrier is needed.
 */
#include <shmem.h>
#include <stdint.h>
#include <stdio.h>

#define LAPS 100

/* Where the PE before this one puts the token; the signal says which lap it is in. */
static struct token {
	long laps, sum;
} token;
static uint64_t arrived;

static void pass(int to, const struct token *out, uint64_t lap)
{
	shmem_putmem_signal(&token, out, sizeof(token), &arrived, lap, SHMEM_SIGNAL_SET, to);
}

static struct token wait_for(uint64_t lap)
{
	shmem_signal_wait_until(&arrived, SHMEM_CMP_EQ, lap);
	return token;
}

int main(void)
{
	struct token mine = { 0, 0 };
	uint64_t lap;
	int me, npes, next;
	long expected;

	shmem_init();
	me = shmem_my_pe();
	npes = shmem_n_pes();
	next = (me + 1) % npes;
	expected = (long)LAPS * npes * (npes - 1) / 2;

	/* PE 0 begins each lap, and the token ends it there. */
	for (lap = 1; lap <= LAPS; lap++) {
		if (me != 0)
			mine = wait_for(lap);
		else
			mine.laps++;
		mine.sum += me;
		pass(next, &mine, lap);
		if (me == 0)
			mine = wait_for(lap);
	}

	if (me == 0) {
		if (mine.laps != LAPS || mine.sum != expected) {
			fprintf(stderr, "ring: %ld laps and a sum of %ld, not %d and %ld\n",
				mine.laps, mine.sum, LAPS, expected);
			shmem_global_exit(1);
		}
		printf("ring: %d laps over %d PEs, the sum is %ld\n", LAPS, npes, mine.sum);
	}
	shmem_finalize();
	return 0;
}
