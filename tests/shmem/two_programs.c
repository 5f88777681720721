/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Compiled twice, with other variables (OTHER): a job of different programs.  The heap is symmetric
 * among all PEs, variables only among those of one program.
 *
 * usage: two_programs WHAT, one of: work put atomic lock
 *
 * Even PEs run the one, odd PEs the other; the last three use a variable of a PE that runs the other.
 */
#include "rules.h"

#ifdef OTHER
static char more[100000] = { 1 };
#endif
static long variable, lock;

/* Does this PE run the same program? */
static int same(int pe)
{
	return (pe - me) % 2 == 0;
}

static void variables_are_symmetric_in_one_program(void)
{
	for (int pe = 0; pe < npes; pe++) {
		CHECK(shmem_pe_accessible(pe) == 1);
		CHECK(shmem_addr_accessible(&variable, pe) == same(pe));
		CHECK(same(pe) || shmem_ptr(&variable, pe) == NULL);
		CHECK(same(pe) || shmem_team_ptr(SHMEM_TEAM_WORLD, &variable, pe) == NULL);
	}
	CHECK(shmem_ptr(&variable, me) == &variable);
	variable = 0;
	shmem_barrier_all();
	for (int pe = 0; pe < npes; pe++)
		if (same(pe))
			shmem_long_atomic_add(&variable, 1 + me, pe);
	shmem_barrier_all();
	for (int pe = 0; pe < npes; pe++)
		variable -= same(pe) ? 1 + pe : 0;
	CHECK(variable == 0);
}

static void the_heap_is_symmetric_in_all(void)
{
	long *heap = shmem_calloc(4, sizeof(*heap)), *from = shmem_calloc(2000, sizeof(*from)),
	     *into = shmem_calloc(2000, sizeof(*into));

	CHECK(heap != NULL && from != NULL && into != NULL);
	for (int pe = 0; pe < npes; pe++) {
		int near = shmem_team_translate_pe(SHMEM_TEAM_WORLD, pe, SHMEM_TEAM_SHARED) >= 0;
		CHECK(shmem_addr_accessible(heap, pe) == 1);
		CHECK((shmem_ptr(heap, pe) != NULL) == near);
	}
	shmem_long_p(&heap[0], 10 + me, next);
	shmem_long_atomic_inc(&heap[1], next);
	shmem_barrier_all();
	CHECK(heap[0] == 10 + prev && heap[1] == 1);
	CHECK(shmem_long_g(&heap[0], next) == 10 + me);
	for (int i = 0; i < 2000; i++)
		from[i] = me + i;
	CHECK(shmem_long_sum_reduce(SHMEM_TEAM_WORLD, into, from, 2000) == 0);
	for (int i = 0; i < 2000; i++)
		CHECK(into[i] == (long)npes * i + npes * (npes - 1) / 2);
	shmem_barrier_all();
	CHECK(shmem_long_broadcast(SHMEM_TEAM_WORLD, into, from, 2000, npes - 1) == 0);
	CHECK(into[1999] == npes - 1 + 1999);
	for (int i = 0; i < 20; i++) {
		shmem_set_lock(&heap[2]);
		shmem_long_p(&heap[3], shmem_long_g(&heap[3], 0) + 1, 0);
		shmem_clear_lock(&heap[2]);
	}
	shmem_barrier_all();
	CHECK(shmem_long_g(&heap[3], 0) == 20L * npes);
	shmem_free(into);
	shmem_free(from);
	shmem_free(heap);
}

static const struct rule rules[] = {
	RULE(variables_are_symmetric_in_one_program),
	RULE(the_heap_is_symmetric_in_all),
};

int main(int argc, char **argv)
{
	const char *what = argc == 2 ? argv[1] : "work";

#ifdef OTHER
	variable = more[0];
#endif
	shmem_init();
	learn_who();
	run_rules(rules, sizeof(rules) / sizeof(rules[0]));
	if (strcmp(what, "put") == 0)
		shmem_long_p(&variable, 1, next);
	else if (strcmp(what, "atomic") == 0)
		shmem_long_atomic_inc(&variable, next);
	/* PE 0 would keep it, and others of its program wait. */
	else if (strcmp(what, "lock") == 0 && !same(0))
		shmem_set_lock(&lock);
	shmem_finalize();
	return 0;
}
