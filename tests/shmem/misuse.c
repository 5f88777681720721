/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs that are wrong, one for each number; misuse_test.py knows what each has to print.
 *
 * usage: misuse NAME
 */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static long *block, *behind, variable;
static int me, npes;

static void no_such_pe(void)
{
	shmem_long_p(block, 1, npes);
}

static void negative_pe(void)
{
	shmem_long_g(block, -1);
}

static void pe_of_a_team(void)
{
	shmem_team_t team;
	shmem_ctx_t ctx;

	shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 1, NULL, 0, &team);
	if (team == SHMEM_TEAM_INVALID || shmem_team_create_ctx(team, 0, &ctx) != 0)
		pause();
	shmem_ctx_long_p(ctx, block, 1, 1);
}

static void private_address(void)
{
	long here = 0;

	shmem_long_p(&here, 1, 0);
}

static void past_the_heap(void)
{
	shmem_long_put(block, behind, (size_t)1 << 40, 0);
}

static void not_aligned(void)
{
	shmem_long_atomic_add((long *)((char *)block + 4), 1, 0);
}

static void lock_twice(void)
{
	if (me != 0)
		pause();
	shmem_set_lock(&variable);
	shmem_set_lock(&variable);
}

static void free_twice(void)
{
	shmem_free(block);
	shmem_free(block);
}

static void free_of_a_variable(void)
{
	shmem_free(&variable);
}

static void use_after_free(void)
{
	shmem_free(block);
	shmem_long_p(block, 1, 0);
}

static void past_a_block(void)
{
	shmem_long_put(block, behind, 1000, 0);
}

static void different_routines(void)
{
	if (me == 0)
		shmem_barrier_all();
	else
		shmem_long_sum_reduce(SHMEM_TEAM_WORLD, block, behind, 1);
}

static void different_lengths(void)
{
	shmem_long_sum_reduce(SHMEM_TEAM_WORLD, block, behind, (size_t)me + 1);
}

static void different_roots(void)
{
	shmem_long_broadcast(SHMEM_TEAM_WORLD, block, behind, 1, me);
}

static void different_sizes(void)
{
	shmem_malloc((size_t)me + 1);
}

static void session_bits(void)
{
	shmem_ctx_session_start(SHMEM_CTX_DEFAULT, 1l << 20, NULL, 0);
}

static void after_finalize(void)
{
	shmem_finalize();
	shmem_long_p(block, 1, 0);
}

static void too_much(void)
{
	if (shmem_malloc((size_t)1 << 40) != NULL)
		shmem_global_exit(9);
	shmem_finalize();
	exit(0);
}

static void killed(void)
{
	if (me == npes - 1)
		abort();
	pause();
}

#define NAMED(name)                                                                                \
	{                                                                                          \
#name, name                                                                        \
	}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} all[] = {
		NAMED(no_such_pe),
		NAMED(negative_pe),
		NAMED(pe_of_a_team),
		NAMED(private_address),
		NAMED(past_the_heap),
		NAMED(not_aligned),
		NAMED(lock_twice),
		NAMED(free_twice),
		NAMED(free_of_a_variable),
		NAMED(use_after_free),
		NAMED(past_a_block),
		NAMED(different_routines),
		NAMED(different_lengths),
		NAMED(different_roots),
		NAMED(different_sizes),
		NAMED(session_bits),
		NAMED(after_finalize),
		NAMED(too_much),
		NAMED(killed),
	};

	shmem_init();
	me = shmem_my_pe();
	npes = shmem_n_pes();
	block = shmem_malloc(100 * sizeof(*block));
	behind = shmem_calloc(2000, sizeof(*behind));
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		if (argc == 2 && strcmp(argv[1], all[i].name) == 0)
			all[i].run();
	}
	return 0;
}
