/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules of symmetric memory: heap, global and static variables, pointers. */
#include <errno.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rules.h"
#include "rules_library.h"

/* ---- Variables of the executable ------------------------------------------------------------- */

#define BIG (48UL << 20)

long exported_data = 5;
long exported_bss;
static long in_data[3] = { 1, 2, 3 };
static long in_bss[1000];
static char big_bss[BIG];
static const long in_rodata[3] = { 71, 72, 73 };
static char text[32];

/* Pages of the big variable that are in memory. */
static size_t pages_present(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = BIG / page - 2, there = 0;
	uintptr_t first = ((uintptr_t)big_bss + page) & ~(uintptr_t)(page - 1);
	unsigned char *seen = malloc(pages);

	CHECK(seen != NULL && mincore((void *)first, pages * page, seen) == 0);
	for (size_t i = 0; i < pages; i++)
		there += seen[i] & 1;
	free(seen);
	return there;
}

/* Runs first: pages that the program has not touched take no memory when they become symmetric. */
static void untouched_takes_no_memory(void)
{
	CHECK(pages_present() == 0);
}

/* Runs second: nor do they when memory is copied for a child, which gets the touched pages. */
static void untouched_takes_no_memory_for_a_child(void)
{
	int status = -1;
	pid_t child;

	shmem_char_p(&big_bss[BIG / 2], 77, next);
	in_bss[7] = 78;
	shmem_barrier_all();
	child = fork();
	if (child == 0)
		_exit(big_bss[BIG / 2] == 77 && big_bss[BIG / 4] == 0 && in_bss[7] == 78 &&
				      in_data[2] == 3
			      ? 0
			      : 1);
	CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
	CHECK(pages_present() == 1);
	in_bss[7] = 0;
	shmem_barrier_all();
	shmem_char_p(&big_bss[BIG / 2], 0, next);
	shmem_barrier_all();
}

static void data_and_bss(void)
{
	static long in_function = 9, in_function_bss;
	long *objects[] = { &exported_data, &exported_bss, &in_data[2],
			    &in_bss[999],   &in_function,  &in_function_bss };

	for (int i = 0; i < 6; i++) {
		CHECK(shmem_addr_accessible(objects[i], next) == 1);
		shmem_long_p(objects[i], 100 * me + i, next);
	}
	shmem_barrier_all();
	for (int i = 0; i < 6; i++) {
		CHECK(*objects[i] == 100 * prev + i);
		CHECK(shmem_long_g(objects[i], next) == 100 * me + i);
		CHECK(shmem_ptr(objects[i], me) == objects[i]);
	}
	CHECK(in_data[0] == 1 && in_data[1] == 2 && in_bss[998] == 0);
}

static void initial_values_stay(void)
{
	/* Values from before the start of the library are still there, also in a page that others write. */
	static int table[5000] = { [0] = 1, [2500] = 2, [4999] = 3 };

	CHECK(table[0] == 1 && table[1] == 0 && table[2500] == 2 && table[4999] == 3);
	shmem_barrier_all();
	shmem_int_p(&table[1], 8, next);
	shmem_barrier_all();
	CHECK(table[0] == 1 && table[1] == 8 && table[2500] == 2 && table[4999] == 3);
}

static void big_variable(void)
{
	for (size_t at = 0; at < BIG; at += BIG / 16 + 1)
		shmem_char_p(&big_bss[at], (char)(at / (BIG / 16) + 1), next);
	shmem_char_p(&big_bss[BIG - 1], 99, next);
	shmem_barrier_all();
	for (size_t at = 0; at < BIG; at += BIG / 16 + 1)
		CHECK(big_bss[at] == (char)(at / (BIG / 16) + 1));
	CHECK(big_bss[BIG - 1] == 99);
}

static void constant_source(void)
{
	shmem_long_put(in_data, in_rodata, 3, next);
	shmem_putmem(text, "a string literal", 17, next);
	shmem_barrier_all();
	CHECK(memcmp(in_data, in_rodata, sizeof(in_rodata)) == 0);
	CHECK(strcmp(text, "a string literal") == 0);
}

static void any_local_memory(void)
{
	static long target[64];
	long on_stack[64], *allocated = malloc(sizeof(on_stack));

	CHECK(allocated != NULL);
	for (int i = 0; i < 64; i++)
		on_stack[i] = me * 64 + i;
	shmem_long_put(target, on_stack, 64, next);
	shmem_barrier_all();
	shmem_long_get(allocated, target, 64, next);
	CHECK(memcmp(allocated, on_stack, sizeof(on_stack)) == 0);
	free(allocated);
}

/* ---- What is symmetric ----------------------------------------------------------------------- */

static _Thread_local int of_thread;

static void what_is_not_symmetric(void)
{
	int local;
	void *allocated = malloc(1 << 20);

	for (int pe = 0; pe < npes; pe++) {
		CHECK(shmem_addr_accessible(&local, pe) == 0);
		CHECK(shmem_addr_accessible(allocated, pe) == 0);
		CHECK(shmem_addr_accessible(&of_thread, pe) == 0);
		CHECK(shmem_addr_accessible(&errno, pe) == 0);
		CHECK(shmem_addr_accessible(NULL, pe) == 0);
		CHECK(shmem_ptr(&local, pe) == NULL && shmem_ptr(allocated, pe) == NULL);
	}
	CHECK(shmem_addr_accessible(in_bss, -1) == 0 && shmem_addr_accessible(in_bss, npes) == 0);
	CHECK(shmem_pe_accessible(-1) == 0 && shmem_pe_accessible(npes) == 0);
	free(allocated);
}

static void variables_of_libraries_are_not(void)
{
	for (int pe = 0; pe < npes; pe++) {
		CHECK(shmem_addr_accessible(library_data(), pe) == 0);
		CHECK(shmem_addr_accessible(library_bss(), pe) == 0);
		CHECK(shmem_ptr(library_data(), pe) == NULL);
	}
	/* But they are sources and destinations here as any other memory. */
	*library_data() = 100 + me;
	shmem_long_put(&exported_bss, library_data(), 1, next);
	shmem_barrier_all();
	shmem_long_get(library_bss(), &exported_bss, 1, next);
	CHECK(*library_bss() == 100 + me && exported_bss == 100 + prev);
}

static void pointers_of_a_team_count_by_the_team(void)
{
	shmem_team_t back;

	CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, npes - 1, -1, npes, NULL, 0, &back) == 0);
	for (int i = 0; i < npes; i++)
		CHECK(shmem_team_ptr(back, in_bss, i) == shmem_ptr(in_bss, npes - 1 - i));
	CHECK(shmem_team_ptr(back, in_bss, shmem_team_my_pe(back)) == in_bss);
	CHECK(shmem_team_ptr(back, in_bss, -1) == NULL);
	CHECK(shmem_team_ptr(back, in_bss, npes) == NULL);
	CHECK(shmem_team_ptr(SHMEM_TEAM_INVALID, in_bss, 0) == NULL);
	shmem_team_destroy(back);
}

static void pointers_are_the_shared_team(void)
{
	long *heap = shmem_calloc(1, sizeof(*heap));

	for (int pe = 0; pe < npes; pe++) {
		int shares = shmem_team_translate_pe(SHMEM_TEAM_WORLD, pe, SHMEM_TEAM_SHARED) >= 0;
		CHECK((shmem_ptr(heap, pe) != NULL) == shares);
		CHECK(shmem_team_ptr(SHMEM_TEAM_WORLD, heap, pe) == shmem_ptr(heap, pe));
	}
	for (int i = 0; i < shmem_team_n_pes(SHMEM_TEAM_SHARED); i++)
		__atomic_fetch_add((long *)shmem_team_ptr(SHMEM_TEAM_SHARED, heap, i), 1,
				   __ATOMIC_SEQ_CST);
	shmem_barrier_all();
	CHECK(*heap == shmem_team_n_pes(SHMEM_TEAM_SHARED));
	shmem_free(heap);
}

/* ---- The heap -------------------------------------------------------------------------------- */

static void nothing_is_no_action(void)
{
	/* These are no collective calls: one PE alone returns from them. */
	if (me == 0) {
		CHECK(shmem_malloc(0) == NULL);
		CHECK(shmem_calloc(0, 8) == NULL && shmem_calloc(8, 0) == NULL);
		CHECK(shmem_align(64, 0) == NULL);
		CHECK(shmem_malloc_with_hints(0, SHMEM_MALLOC_ATOMICS_REMOTE) == NULL);
		shmem_free(NULL);
	}
}

static void too_much(void)
{
	char *block = shmem_malloc(100);

	CHECK(block != NULL);
	memset(block, 3, 100);
	CHECK(shmem_malloc(SIZE_MAX) == NULL && shmem_malloc(SIZE_MAX - 100) == NULL);
	CHECK(shmem_malloc((size_t)1 << 50) == NULL);
	CHECK(shmem_calloc(SIZE_MAX / 2, 4) == NULL &&
	      shmem_calloc((size_t)1 << 33, (size_t)1 << 33) == NULL);
	CHECK(shmem_align((size_t)1 << 20, SIZE_MAX - 10) == NULL);
	CHECK(shmem_malloc_with_hints((size_t)1 << 50, 0) == NULL);
	CHECK(shmem_realloc(block, (size_t)1 << 50) == NULL);
	for (int i = 0; i < 100; i++)
		CHECK(block[i] == 3);
	shmem_free(block);
	block = shmem_malloc(100);
	CHECK(block != NULL);
	shmem_free(block);
}

static void alignments(void)
{
	void *blocks[32];
	int n = 0;

	for (size_t alignment = 1; alignment <= 1u << 20; alignment *= 2, n++) {
		blocks[n] = shmem_align(alignment, alignment + 24);
		CHECK(blocks[n] != NULL && (uintptr_t)blocks[n] % alignment == 0);
		memset(blocks[n], n + 1, alignment + 24);
	}
	for (size_t size = 1; size < 100; size += 7) {
		void *block = shmem_malloc(size);
		CHECK((uintptr_t)block % _Alignof(max_align_t) == 0);
		shmem_free(block);
	}
	for (int i = 0; i < n; i++) {
		CHECK(*(char *)blocks[i] == i + 1);
		shmem_free(blocks[i]);
	}
}

static void realloc_keeps(void)
{
	unsigned char *block = shmem_realloc(NULL, 1);
	size_t kept = 1;

	block[0] = 0;
	for (size_t size = 2; size <= 3u << 20; size = size * 7 / 2) {
		block = shmem_realloc(block, size);
		CHECK(block != NULL);
		for (size_t i = 0; i < kept; i++)
			CHECK(block[i] == (unsigned char)(i * 31));
		for (size_t i = kept; i < size; i++)
			block[i] = (unsigned char)(i * 31);
		kept = size;
	}
	for (; kept > 1; kept /= 5) {
		block = shmem_realloc(block, kept);
		CHECK(block != NULL);
		for (size_t i = 0; i < kept; i++)
			CHECK(block[i] == (unsigned char)(i * 31));
	}
	CHECK(shmem_realloc(block, 0) == NULL);
}

static void calls_are_barriers(void)
{
	static long flag;
	char *block;

	shmem_long_p(&flag, 1, next);
	block = shmem_malloc(10); /* a barrier, which completes the put */
	CHECK(flag == 1);
	shmem_barrier_all();
	shmem_long_p(&flag, 2, next);
	shmem_free(block);
	CHECK(flag == 2);
	shmem_barrier_all();
	shmem_long_p(&flag, 3, next);
	block = shmem_realloc(NULL, 10);
	CHECK(flag == 3);
	shmem_free(block);
}

/* Completes the put to this PE that came before. */
static void is_barrier(const long *flag, long value)
{
	CHECK(*flag == value);
	shmem_barrier_all();
}

static void every_allocation_is_a_barrier(void)
{
	static long flag;
	void *block[5];

	shmem_long_p(&flag, 1, next);
	block[0] = shmem_calloc(10, 10);
	is_barrier(&flag, 1);
	shmem_long_p(&flag, 2, next);
	block[1] = shmem_align(4096, 10);
	is_barrier(&flag, 2);
	shmem_long_p(&flag, 3, next);
	block[2] = shmem_malloc_with_hints(10, SHMEM_MALLOC_SIGNAL_REMOTE);
	is_barrier(&flag, 3);
	shmem_long_p(&flag, 4, next);
	block[3] = shmem_malloc(100);
	is_barrier(&flag, 4);
	shmem_long_p(&flag, 5, next);
	block[3] = shmem_realloc(block[3], 1000000);
	is_barrier(&flag, 5);
	for (int i = 0; i < 4; i++) {
		CHECK(block[i] != NULL);
		shmem_long_p(&flag, 10 + i, next);
		if (i % 2)
			shmem_free(block[i]);
		else
			CHECK(shmem_realloc(block[i], 0) == NULL);
		is_barrier(&flag, 10 + i);
	}
}

static void refused_alignments(void)
{
	const size_t wrong[] = { 0, 3, 6, 24, 100, (size_t)1 << 40 };

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		CHECK(shmem_align(wrong[i], 64) == NULL);
}

static void calloc_zeroes_used_memory(void)
{
	enum { SIZE = 100000 };
	unsigned char *block = shmem_malloc(SIZE);
	unsigned char *before = block;

	CHECK(block != NULL);
	memset(block, 0xFF, SIZE);
	shmem_free(block);
	block = shmem_calloc(SIZE / 4, 4);
	CHECK(block == before); /* else this shows nothing */
	for (int i = 0; i < SIZE; i++)
		CHECK(block[i] == 0);
	shmem_free(block);
}

static void same_offsets(void)
{
	static ptrdiff_t distance[2];
	char *first = shmem_malloc(123), *second = shmem_malloc(4567),
	     *third = shmem_align(4096, 8);

	CHECK(first != NULL && second != NULL && third != NULL);
	distance[0] = second - first;
	distance[1] = third - first;
	shmem_barrier_all();
	CHECK(shmem_ptrdiff_g(&distance[0], next) == distance[0]);
	CHECK(shmem_ptrdiff_g(&distance[1], next) == distance[1]);
	shmem_free(second);
	shmem_free(first);
	shmem_free(third);
}

static void blocks_do_not_overlap(void)
{
	enum { BLOCKS = 40 };
	unsigned char *block[BLOCKS] = { 0 };
	size_t size[BLOCKS] = { 0 };
	uint32_t random = 12345;

	for (int step = 0; step < 400; step++) {
		int i = (int)((random = random * 1664525 + 1013904223) >> 8) % BLOCKS;
		for (size_t k = 0; k < size[i]; k++)
			CHECK(block[i][k] == (unsigned char)(i + 1));
		shmem_free(block[i]);
		random = random * 1664525 + 1013904223;
		size[i] = random >> 16 << (random >> 8) % 3;
		size[i] = size[i] % 60000 + 1;
		block[i] = shmem_malloc(size[i]);
		CHECK(block[i] != NULL);
		memset(block[i], i + 1, size[i]);
	}
	for (int i = 0; i < BLOCKS; i++)
		shmem_free(block[i]);
}

static void whole_heap_again(void)
{
	size_t size = (size_t)1 << 46;
	void *parts[8], *whole = NULL;
	int n;

	/* All PEs fail and succeed alike: else they do not meet in the barriers. */
	while (size > 0 && (whole = shmem_malloc(size)) == NULL)
		size /= 2;
	CHECK(size >= 1u << 20);
	shmem_free(whole);
	for (int round = 0; round < 3; round++) {
		for (n = 0; n < 7 && (parts[n] = shmem_malloc(size / 8)) != NULL; n++)
			;
		CHECK(n == 7);
		for (int i = 0; i < 7; i++)
			shmem_free(parts[(i * 3 + round) % 7]);
		whole = shmem_malloc(size);
		CHECK(whole != NULL);
		shmem_free(whole);
	}
}

static const struct rule rules[] = {
	RULE(untouched_takes_no_memory),
	RULE(untouched_takes_no_memory_for_a_child),
	RULE(data_and_bss),
	RULE(initial_values_stay),
	RULE(big_variable),
	RULE(constant_source),
	RULE(any_local_memory),
	RULE(what_is_not_symmetric),
	RULE(variables_of_libraries_are_not),
	RULE(pointers_are_the_shared_team),
	RULE(pointers_of_a_team_count_by_the_team),
	RULE(nothing_is_no_action),
	RULE(too_much),
	RULE(alignments),
	RULE(realloc_keeps),
	RULE(calls_are_barriers),
	RULE(every_allocation_is_a_barrier),
	RULE(refused_alignments),
	RULE(calloc_zeroes_used_memory),
	RULE(same_offsets),
	RULE(blocks_do_not_overlap),
	RULE(whole_heap_again),
};

RULES_MAIN
