/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A tool for profiling: this program defines routines of OpenSHMEM itself and calls the library by
 * the profiling names.  Calls by the ordinary and by the generic names come to it.
 */
#include <pshmem.h>

#include "rules.h"

static int puts_seen, barriers_seen, adds_seen, mallocs_seen;

void shmem_long_put(long *dest, const long *source, size_t n, int pe)
{
	puts_seen++;
	pshmem_long_put(dest, source, n, pe);
}

void shmem_barrier_all(void)
{
	barriers_seen++;
	pshmem_barrier_all();
}

int shmem_int_atomic_fetch_add(int *dest, int value, int pe)
{
	adds_seen++;
	return pshmem_int_atomic_fetch_add(dest, value, pe);
}

void *shmem_malloc(size_t size)
{
	mallocs_seen++;
	return pshmem_malloc(size);
}

static void a_tool_sees_each_call_once(void)
{
	static int counter;
	long *block = shmem_malloc(2 * sizeof(*block));
	int barriers = barriers_seen;

	CHECK(mallocs_seen == 1 && block != NULL);
	shmem_long_put(&block[0], &(long){ 5 + me }, 1, next);
	shmem_put(&block[1], &(long){ 6 + me }, 1, next);
	CHECK(puts_seen == 2);
	CHECK(shmem_atomic_fetch_add(&counter, 3, next) == 0);
	CHECK(adds_seen == 1);
	shmem_barrier_all();
	CHECK(barriers_seen == barriers + 1);
	CHECK(block[0] == 5 + prev && block[1] == 6 + prev && counter == 3);
	shmem_free(block); /* has a barrier in it, which is not the program's call */
	CHECK(barriers_seen == barriers + 1);
	shmem_pcontrol(1);
	pshmem_pcontrol(2, "any", 3);
}

static const struct rule rules[] = {
	RULE(a_tool_sees_each_call_once),
};

RULES_MAIN
