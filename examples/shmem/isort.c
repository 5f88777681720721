/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * isort - sorts integers that are spread over all PEs.
 *
 *	oshcc -o isort isort.c
 *	oshrun -np 4 ./isort
 *
 * The range of keys is cut into as many parts as there are PEs.  Each PE counts how many of its keys
 * belong to which PE, they tell each other (alltoall), each says where the keys of the others
 * shall lie in its memory (alltoall again), and then all put their keys there at once.
 */
#include <shmem.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define KEYS 20000 /* of each PE */
#define RANGE (1 << 24)

static _Noreturn void fail(const char *what)
{
	fprintf(stderr, "isort: PE %d: %s\n", shmem_my_pe(), what);
	shmem_global_exit(1);
}

static void *room(size_t count, size_t size)
{
	void *memory = shmem_calloc(count, size);

	if (!memory)
		fail("the symmetric heap is too small");
	return memory;
}

static int home_of(int key)
{
	return (int)((int64_t)key * shmem_n_pes() / RANGE);
}

static int by_value(const void *a, const void *b)
{
	return (*(const int *)a > *(const int *)b) - (*(const int *)a < *(const int *)b);
}

/* Keys of which small ones are more frequent, so that the PEs get different numbers of them. */
static void draw(int *keys)
{
	unsigned short seed[3] = { 1, 2, (unsigned short)shmem_my_pe() };
	int i;

	for (i = 0; i < KEYS; i++)
		keys[i] = (int)(RANGE * erand48(seed) * erand48(seed));
}

/* Puts each key where its PE wants it; places[pe] is the first free place for keys of this PE. */
static void send_keys(int *inbox, const int *keys, const int *counts, const int *places)
{
	int npes = shmem_n_pes(), *sorted = malloc(KEYS * sizeof(*sorted)), pe, i, n = 0;

	if (!sorted)
		fail("no memory");
	for (pe = 0; pe < npes; pe++) {
		int first = n;

		for (i = 0; i < KEYS; i++)
			if (home_of(keys[i]) == pe)
				sorted[n++] = keys[i];
		shmem_int_put(inbox + places[pe], sorted + first, (size_t)counts[pe], pe);
	}
	free(sorted);
}

/* All keys are here that were drawn, each at its PE, in order. */
static void check(const int *inbox, int count, const int *keys)
{
	static int64_t mine[2], all[2]; /* keys that are gone, as a number and as a sum */
	int i;

	mine[0] = KEYS - count;
	for (i = 0; i < KEYS; i++)
		mine[1] += keys[i];
	for (i = 0; i < count; i++) {
		mine[1] -= inbox[i];
		if (home_of(inbox[i]) != shmem_my_pe())
			fail("a key is at the wrong PE");
		if (i && inbox[i - 1] > inbox[i])
			fail("the keys are not in order");
	}
	shmem_int64_sum_reduce(SHMEM_TEAM_WORLD, all, mine, 2);
	if (all[0] || all[1])
		fail("keys were lost or changed");
}

int main(void)
{
	int *keys, *counts, *incoming, *starts, *places, *inbox, npes, pe, i;
	static int count, most;

	shmem_init();
	npes = shmem_n_pes();
	keys = malloc(KEYS * sizeof(*keys));
	if (!keys)
		fail("no memory");
	draw(keys);

	/* How many keys go to each PE, and how many come from each. */
	counts = room((size_t)npes, sizeof(int));
	incoming = room((size_t)npes, sizeof(int));
	for (i = 0; i < KEYS; i++)
		counts[home_of(keys[i])]++;
	shmem_int_alltoall(SHMEM_TEAM_WORLD, incoming, counts, 1);

	/* Where those of each PE begin here; and where ours begin at each. */
	starts = room((size_t)npes, sizeof(int));
	places = room((size_t)npes, sizeof(int));
	for (pe = 0; pe < npes; pe++) {
		starts[pe] = count;
		count += incoming[pe];
	}
	shmem_int_alltoall(SHMEM_TEAM_WORLD, places, starts, 1);

	/* The inboxes are symmetric, so they are as large as the PE needs that gets most. */
	shmem_int_max_reduce(SHMEM_TEAM_WORLD, &most, &count, 1);
	inbox = room((size_t)most, sizeof(int));
	send_keys(inbox, keys, counts, places);
	shmem_barrier_all();

	qsort(inbox, (size_t)count, sizeof(int), by_value);
	check(inbox, count, keys);
	if (shmem_my_pe() == 0)
		printf("isort: %d keys on %d PEs, at most %d on one\n", KEYS * npes, npes, most);
	free(keys);
	shmem_finalize();
	return 0;
}
