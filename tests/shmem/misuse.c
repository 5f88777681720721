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
#include <sys/wait.h>
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

static void lock_of_another(void)
{
	static long lock;

	if (me == 0)
		shmem_set_lock(&lock);
	shmem_barrier_all();
	if (me == 1)
		shmem_clear_lock(&lock);
	pause();
}

static void lock_not_aligned(void)
{
	shmem_set_lock((long *)((char *)block + 4));
}

static void team_destroyed_twice(void)
{
	shmem_team_t team;

	if (shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, npes, NULL, 0, &team) != 0)
		pause();
	shmem_team_destroy(team);
	shmem_team_destroy(team);
}

/* The content of the lock names no PE, also if it is read as a signed number. */
static void lock_overwritten(void)
{
	static long lock = (long)0x8000000000000000u;

	if (me == 0)
		shmem_set_lock(&lock);
	pause();
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

static void different_sources(void)
{
	shmem_long_sum_reduce(SHMEM_TEAM_WORLD, block, behind + me, 10);
}

static void private_source(void)
{
	long here[10] = { 0 };

	shmem_long_sum_reduce(SHMEM_TEAM_WORLD, block, here, 10);
}

/* Counts whose bytes, as a size_t, are few. */
#define WRAPS ((size_t)1 << 61 | 1)

static void count_of_a_put(void)
{
	shmem_long_put(block, behind, WRAPS, 0);
}

static void stride_of_an_iput(void)
{
	shmem_long_iput(block, behind, (ptrdiff_t)WRAPS, 1, 2, 0);
}

static void count_of_a_reduction(void)
{
	shmem_long_sum_reduce(SHMEM_TEAM_WORLD, block, behind, WRAPS);
}

static void count_of_a_broadcast(void)
{
	shmem_long_broadcast(SHMEM_TEAM_WORLD, block, behind, WRAPS, 0);
}

static void count_of_an_alltoalls(void)
{
	shmem_long_alltoalls(SHMEM_TEAM_WORLD, block, behind, 1, 1, WRAPS);
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

/* PE 1 has more to give than there is room for. */
static void collect_of_too_much(void)
{
	shmem_long_collect(SHMEM_TEAM_WORLD, block, behind, me == 0 ? 1 : SIZE_MAX / 64);
}

/* PE 1 stores a message into the memory of PE 0 that announces a block outside of the heap. */
static void forged_offset(void)
{
	const uint64_t start = 0, stride = 1, size = 2, seed = 0x9e3779b97f4a7c15u;
	const uint64_t count = UINT64_MAX >> 8, split = (uint64_t)10 << 56; /* OSH_KIND_TEAM */
	uint64_t what = (start ^ stride) * seed + (start >> 29), cell[8] = { 0 }, at;
	/* The library's part of the heap, 80 MiB here, begins with the mailboxes of the team, of 576 bytes. */
	char *mailbox = (char *)block - (80 << 20) + 576;
	shmem_team_t team;

	if (me == 0)
		shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 2, NULL, 0, &team);
	what = (what ^ size) * seed + (what >> 29);
	/* The next cell is the one after the last. */
	for (int i = 0; i < 8; i++) {
		uint64_t seq;

		shmem_getmem(&seq, mailbox + i * 64 + 56, 8, 0);
		seq &= count;
		if (seq > cell[7])
			cell[7] = seq;
	}
	cell[0] = (uint64_t)1 << 40;
	cell[1] = what;
	shmem_putmem(mailbox + cell[7] % 8 * 64, cell, 56, 0);
	at = cell[7] % 8 * 64 + 56;
	cell[7] = (cell[7] + 1) | split;
	shmem_fence();
	shmem_putmem(mailbox + at, &cell[7], 8, 0);
	pause();
}

/* PE 1 stores over the messages that PE 0 has from it. */
static void messages_overwritten(void)
{
	char *mailbox = (char *)block - (80 << 20) + 576, garbage[8 * 64];

	if (me == 0)
		shmem_barrier_all();
	memset(garbage, 0x5a, sizeof(garbage));
	shmem_putmem(mailbox, garbage, sizeof(garbage), 0);
	pause();
}

/* Writes zeros, like a program that clears memory, also before the first message of a team. */
static void zeros_over(char *mailbox, shmem_team_t team)
{
	const char zeros[9 * 64] = { 0 };

	shmem_barrier_all();
	if (me != 0) {
		shmem_putmem(mailbox, zeros, sizeof(zeros), 0);
		shmem_quiet();
		shmem_long_p(block, 1, 0);
		pause();
	}
	shmem_long_wait_until(block, SHMEM_CMP_EQ, 1);
	shmem_team_sync(team);
}

static void messages_of_zeros(void)
{
	*block = 0;
	zeros_over((char *)block - (80 << 20) + 576, SHMEM_TEAM_WORLD);
}

/* The first team that a program makes has the block after those of the three teams that the library makes. */
static void zeros_before_the_first(void)
{
	const size_t mailbox = 576, shared = (size_t)shmem_team_n_pes(SHMEM_TEAM_SHARED);
	size_t behind_three = (2 * (size_t)npes + shared) * mailbox + 3 * 2 * 8192;
	shmem_team_t team;

	*block = 0;
	shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, npes, NULL, 0, &team);
	zeros_over((char *)block - (80 << 20) + behind_three + mailbox, team);
}

static void after_finalize(void)
{
	shmem_finalize();
	shmem_long_p(block, 1, 0);
}

static void barrier_after_finalize(void)
{
	shmem_finalize();
	shmem_barrier_all();
}

static void set_after_finalize(void)
{
	static long sync[SHMEM_SYNC_SIZE];

	shmem_finalize();
	shmem_sync(0, 0, npes, sync);
}

/* PE 1 starts a child that calls it, and checks how the child ends. */
static void in_child(void (*what)(void))
{
	int status = 0;
	pid_t child;

	shmem_barrier_all();
	if (me == 1) {
		child = fork();
		if (child == 0) {
			what();
			_exit(0);
		}
		waitpid(child, &status, 0);
		if (!WIFEXITED(status) || WEXITSTATUS(status) != 1)
			shmem_global_exit(3);
	}
	shmem_barrier_all();
	shmem_finalize();
	exit(0);
}

static void put(void)
{
	if (shmem_my_pe() == me && shmem_n_pes() == npes)
		shmem_long_p(block, 1, 0);
}

static void add_in_child(void)
{
	static long counter;

	shmem_long_atomic_inc(&counter, me);
}

static void allocate_in_child(void)
{
	shmem_malloc(8);
}

static void reduce_in_child(void)
{
	shmem_long_sum_reduce(SHMEM_TEAM_WORLD, block, block, 1);
}

static void child_puts(void)
{
	in_child(put);
}

static void child_adds(void)
{
	in_child(add_in_child);
}

static void child_allocates(void)
{
	in_child(allocate_in_child);
}

static void child_reduces(void)
{
	in_child(reduce_in_child);
}

static void child_waits(void)
{
	in_child(shmem_barrier_all);
}

static void child_finalizes(void)
{
	in_child(shmem_finalize);
}

static void get_to_null(void)
{
	if (me == 0)
		shmem_get64(NULL, block, 1, 1);
	pause();
}

static void get_of_blocks_to_null(void)
{
	if (me == 0)
		shmem_iget64(NULL, block, 1, 2, 3, 1);
	pause();
}

static void put_from_null(void)
{
	if (me == 0)
		shmem_put64(block, NULL, 1, 1);
	pause();
}

static void long_put_from_null(void)
{
	if (me == 0)
		shmem_put64(behind, NULL, 1000, 1);
	pause();
}

static void fetch_to_null(void)
{
	if (me == 0)
		shmem_long_atomic_fetch_inc_nbi(NULL, block, 1);
	pause();
}

static void put_without_context(void)
{
	shmem_ctx_long_put(SHMEM_CTX_INVALID, block, behind, 1, me);
}

static void strided_put_without_context(void)
{
	shmem_ctx_long_iput(SHMEM_CTX_INVALID, block, behind, 1, 1, 2, me);
}

static void get_without_context(void)
{
	shmem_ctx_long_g(SHMEM_CTX_INVALID, block, me);
}

static void add_without_context(void)
{
	shmem_ctx_long_atomic_add(SHMEM_CTX_INVALID, block, 1, me);
}

static void signal_without_context(void)
{
	static uint64_t signal;

	shmem_ctx_long_put_signal(SHMEM_CTX_INVALID, block, behind, 0, &signal, 1, SHMEM_SIGNAL_SET,
				  me);
}

/* PE 0 ends after the first barrier. */
static void exit_in_the_middle(void)
{
	if (me == 0)
		exit(0);
	shmem_barrier_all();
	shmem_barrier_all();
}

static void exit_with_a_lock(void)
{
	static long lock;

	if (me == 0)
		shmem_set_lock(&lock);
	shmem_barrier_all();
	if (me == 0)
		exit(0);
	shmem_set_lock(&lock);
}

/* In teams of their own, through whose cells PE 0 sends nothing. */
static void exit_before_a_team_sync(void)
{
	shmem_team_t team;

	shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, npes, NULL, 0, &team);
	if (me == 0)
		exit(0);
	shmem_team_sync(team);
}

static void exit_before_reductions(void)
{
	if (me == 0)
		exit(0);
	for (int i = 0; i < 1000; i++)
		shmem_long_sum_reduce(SHMEM_TEAM_WORLD, block, behind, 4);
}

/* The calls of PE 1 return at once, and it goes on to its end. */
static void finalize_before_a_broadcast(void)
{
	if (me == 1)
		shmem_long_broadcast(SHMEM_TEAM_WORLD, block, behind, 4, 1);
	shmem_finalize();
}

static void finalize_in_the_middle(void)
{
	if (me == 0) {
		shmem_finalize();
		exit(0);
	}
	shmem_sync_all();
	shmem_long_sum_reduce(SHMEM_TEAM_WORLD, block, behind, 1);
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
		NAMED(lock_of_another),
		NAMED(lock_overwritten),
		NAMED(lock_not_aligned),
		NAMED(team_destroyed_twice),
		NAMED(free_twice),
		NAMED(free_of_a_variable),
		NAMED(use_after_free),
		NAMED(past_a_block),
		NAMED(different_routines),
		NAMED(different_lengths),
		NAMED(different_roots),
		NAMED(different_sizes),
		NAMED(session_bits),
		NAMED(collect_of_too_much),
		NAMED(forged_offset),
		NAMED(messages_overwritten),
		NAMED(different_sources),
		NAMED(private_source),
		NAMED(count_of_a_put),
		NAMED(stride_of_an_iput),
		NAMED(count_of_a_reduction),
		NAMED(count_of_a_broadcast),
		NAMED(count_of_an_alltoalls),
		NAMED(after_finalize),
		NAMED(barrier_after_finalize),
		NAMED(set_after_finalize),
		NAMED(child_puts),
		NAMED(child_adds),
		NAMED(child_allocates),
		NAMED(child_reduces),
		NAMED(child_waits),
		NAMED(child_finalizes),
		NAMED(get_to_null),
		NAMED(get_of_blocks_to_null),
		NAMED(put_from_null),
		NAMED(long_put_from_null),
		NAMED(fetch_to_null),
		NAMED(put_without_context),
		NAMED(strided_put_without_context),
		NAMED(get_without_context),
		NAMED(add_without_context),
		NAMED(signal_without_context),
		NAMED(exit_in_the_middle),
		NAMED(exit_with_a_lock),
		NAMED(exit_before_a_team_sync),
		NAMED(exit_before_reductions),
		NAMED(finalize_before_a_broadcast),
		NAMED(messages_of_zeros),
		NAMED(zeros_before_the_first),
		NAMED(finalize_in_the_middle),
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
