/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For programs that call each routine once or more: numbers of PEs, memory for each test, checks.  They
 * run with 1 to 8 PEs.  The output of PE 0 has a line «ok NAME» for each routine that passed.
 */
#ifndef CALLS_H
#define CALLS_H

#include <complex.h>
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_PES 8
#define SLOTS_BYTES (2u << 20)

static int me, npes, next, prev;
static shmem_ctx_t ctx;
static const char *testing = "the start";

/* Symmetric memory for tests: half of it in the heap, half in static variables. */
static char *slots_heap;
static _Alignas(64) char slots_static[SLOTS_BYTES];
static size_t slots_used;

static inline void fail(const char *what, int line)
{
	fprintf(stderr, "FAILED %s at PE %d of %d, line %d: %s\n", testing, me, npes, line, what);
	shmem_global_exit(1);
}

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition))                                                                  \
			fail(#condition, __LINE__);                                                \
	} while (0)

/* Zeroed symmetric memory that no other test uses; all PEs make the same calls. */
static inline void *slot(size_t bytes)
{
	static int turn;
	char *base = turn++ % 2 ? slots_static : slots_heap;
	size_t start = slots_used;

	slots_used += (bytes + 63) / 64 * 64;
	CHECK(slots_used <= SLOTS_BYTES);
	return base + start;
}

/* Byte `i` of a buffer that `pe` fills; never 0. */
static inline unsigned char byte_of(int pe, size_t i)
{
	return (unsigned char)((size_t)pe * 29 + i * 7 % 200 + 1);
}

static inline void fill(void *p, size_t bytes, int pe)
{
	for (size_t i = 0; i < bytes; i++)
		((unsigned char *)p)[i] = byte_of(pe, i);
}

static inline int filled(const void *p, size_t bytes, int pe)
{
	for (size_t i = 0; i < bytes; i++)
		if (((const unsigned char *)p)[i] != byte_of(pe, i))
			return 0;
	return 1;
}

/*
 * Does `dest` hold what a strided copy of blocks from a buffer that `pe` has filled must give?
 * Counts and strides are in elements of `elem` bytes.
 */
static inline int strided(const void *dest, size_t dst, size_t sst, size_t block, size_t blocks,
			  size_t elem, int pe)
{
	for (size_t i = 0; i < ((blocks - 1) * dst + block) * elem; i++) {
		size_t stride = dst * elem, at = i % stride;
		unsigned char want = at >= block * elem ? 0
							: byte_of(pe, i / stride * sst * elem + at);
		if (((const unsigned char *)dest)[i] != want)
			return 0;
	}
	return 1;
}

static inline void begin_calls(void)
{
	shmem_init();
	me = shmem_my_pe();
	npes = shmem_n_pes();
	next = (me + 1) % npes;
	prev = (me + npes - 1) % npes;
	if (npes > MAX_PES) {
		fprintf(stderr, "run this with %d PEs at most\n", MAX_PES);
		shmem_global_exit(2);
	}
	slots_heap = shmem_calloc(1, SLOTS_BYTES);
	CHECK(slots_heap != NULL);
	if (shmem_ctx_create(0, &ctx) != 0)
		ctx = SHMEM_CTX_DEFAULT;
}

static inline void passed(const char *name)
{
	shmem_barrier_all();
	if (me == 0)
		printf("ok %s\n", name);
}

struct call {
	const char *name;
	void (*run)(void);
};

static inline void run_calls(const struct call *calls, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		testing = calls[i].name;
		calls[i].run();
		passed(calls[i].name);
	}
}

static inline void end_calls(void)
{
	if (ctx != SHMEM_CTX_DEFAULT)
		shmem_ctx_destroy(ctx);
	shmem_free(slots_heap);
	shmem_finalize();
}

#endif
