/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every PE puts to, adds at and signals every other, round after round, and all contents are checked.
 * PE 0 writes a line now and then, and ends the job when its standard input ends.
 */
#include <poll.h>
#include <unistd.h>

#include "rules.h"

#define LENGTH 3000
#define SAY_EVERY 10

static long boxes[MAX_PES][LENGTH], from[LENGTH], small[MAX_PES], copy[LENGTH];
static long sum, stop, lock, turns;
static uint64_t signals;

static long value(int pe, long round, size_t i)
{
	return (pe * 1000 + round) * 10000 + (long)i;
}

static size_t length(int pe, long round)
{
	return (size_t)(pe * 701 + round * 97) % LENGTH + 1;
}

/* By a context of this round, so connections are made while links are lost. */
static void send_all(long round)
{
	size_t n = length(me, round);
	shmem_ctx_t ctx;

	CHECK(shmem_ctx_create(0, &ctx) == 0);
	for (size_t i = 0; i < n; i++)
		from[i] = value(me, round, i);
	for (int i = 0; i < npes; i++) {
		int pe = (me + i) % npes;
		shmem_long_put_nbi(boxes[me], from, n, pe);
		shmem_ctx_long_p(ctx, &small[me], value(me, round, 0), pe);
		shmem_long_atomic_add(&sum, round, pe);
		CHECK(shmem_long_atomic_fetch_inc(&turns, me) == round * npes - npes + i);
		shmem_long_put_signal(&boxes[me][n - 1], &from[n - 1], 1, &signals, 1,
				      SHMEM_SIGNAL_ADD, pe);
	}
	shmem_ctx_destroy(ctx);
}

static void check_all(long round)
{
	CHECK(signals == (uint64_t)(round * npes));
	CHECK(sum == round * (round + 1) / 2 * npes);
	for (int pe = 0; pe < npes; pe++) {
		size_t n = length(pe, round);
		CHECK(small[pe] == value(pe, round, 0));
		for (size_t i = 0; i < n; i++)
			CHECK(boxes[pe][i] == value(pe, round, i));
	}
	for (int i = 1; i < npes; i++) {
		int pe = (me + i) % npes;
		size_t n = length(me, round);
		shmem_long_get(copy, boxes[me], n, pe);
		CHECK(memcmp(copy, from, n * sizeof(long)) == 0);
	}
}

static int has_ended(int fd)
{
	struct pollfd p = { fd, POLLIN, 0 };
	char byte;

	return poll(&p, 1, 0) == 1 && read(fd, &byte, 1) <= 0;
}

int main(void)
{
	long round = 0;

	shmem_init();
	learn_who();
	rule_name = "what was sent arrives once";
	while (!stop) {
		round++;
		send_all(round);
		shmem_barrier_all();
		check_all(round);
		shmem_set_lock(&lock);
		shmem_clear_lock(&lock);
		if (me == 0 && round % SAY_EVERY == 0) {
			printf("round %ld\n", round);
			fflush(stdout);
			stop = has_ended(STDIN_FILENO);
		}
		shmem_barrier_all(); /* also: all have read */
		shmem_long_broadcast(SHMEM_TEAM_WORLD, &stop, &stop, 1, 0);
	}
	if (me == 0)
		printf("all %ld rounds are right\n", round);
	shmem_finalize();
	return 0;
}
