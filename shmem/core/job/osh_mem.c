/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Collective allocation: all PEs make the same calls, so each finds the same offset by itself, and the
 * barrier that the specification asks for is all that they exchange, unless the heap has to grow.
 */
#include <string.h>

#include "osh_barrier.h"
#include "osh_blocks.h"
#include "osh_check.h"
#include "osh_env.h"
#include "osh_grow.h"
#include "osh_heap.h"
#include "osh_mem.h"

/* Ends the process unless it is in a job. */
static void check_open(const char *fn)
{
	if (!osh_blocks_are_open() || osh_pe.child)
		osh_not_in_job(fn);
}

/* PE 0 prints, the first time, how full the heap is. */
static OSH_COLD void exhausted(const char *fn, size_t n)
{
	size_t used, all, longest;
	static bool told;

	if (told || osh_pe.me != 0)
		return;
	told = true;
	osh_blocks_count(&used, &all, &longest);
	osh_warn(
		"%s: %zu byte%s not fit into the symmetric heap: %zu of its %zu are in use, the "
		"longest free block has %zu, and it may grow to %zu; raise SHMEM_SYMMETRIC_SIZE or "
		"SHMEM_VIADUCT_HEAP_MAX",
		fn, n, n == 1 ? " does" : "s do", used, all, longest, osh_env.heap_max);
}

/* Allocates n bytes, in a heap that grows if need be; it is a barrier only if it grows. NULL, at all PEs: no room. */
static void *find_room(const char *fn, size_t n, size_t alignment)
{
	void *p = osh_blocks_alloc(n, alignment);

	if (p == NULL && osh_grow(fn, n, alignment))
		p = osh_blocks_alloc(n, alignment);
	if (p == NULL)
		exhausted(fn, n);
	return p;
}

/* Allocates, and is a barrier, also where there is no room; n = 0 returns NULL without one. `zero`: clears it. */
static void *allocate(const char *fn, size_t alignment, size_t n, bool zero)
{
	void *p;

	check_open(fn);
	if (n == 0)
		return NULL;
	osh_check(fn, osh_world, NULL, n, 0);
	p = find_room(fn, n, alignment);
	if (p != NULL && zero)
		memset(p, 0, n);
	osh_barrier_all(fn);
	return p;
}

void *osh_malloc(const char *fn, size_t n, long hints)
{
	return allocate(fn, OSH_HEAP_UNIT, n, false);
}

void *osh_calloc(const char *fn, size_t count, size_t size)
{
	size_t n;

	if (__builtin_mul_overflow(count, size, &n))
		n = SIZE_MAX;
	return allocate(fn, OSH_HEAP_UNIT, n, true);
}

void *osh_align(const char *fn, size_t alignment, size_t n)
{
	check_open(fn);
	if (alignment == 0 || (alignment & (alignment - 1)) != 0 || alignment > OSH_ALIGN_MAX)
		return NULL;
	return allocate(fn, alignment, n, false);
}

/* The length of the block at p; if none begins there, the job ends. */
static size_t length_of(const char *fn, const void *p)
{
	size_t n = osh_blocks_length(p);

	if (n == 0)
		osh_fatal("%s: %p was not allocated in the symmetric heap, or is freed already", fn,
			  p);
	return n;
}

void osh_free(const char *fn, void *p)
{
	if (p == NULL)
		return;
	check_open(fn);
	length_of(fn, p);
	osh_check(fn, osh_world, p, 0, 0);
	osh_barrier_all(fn);
	osh_blocks_free(p);
}

/*
 * Moves the content to a new place, and frees the old one; a barrier only if the heap has to grow. NULL, at all PEs:
 * there is no room, and the old one stays.
 */
static void *move(const char *fn, void *p, size_t old, size_t n)
{
	void *to = find_room(fn, n, OSH_HEAP_UNIT);

	if (to == NULL)
		return NULL;
	memcpy(to, p, osh_min(old, n));
	osh_blocks_free(p);
	return to;
}

void *osh_realloc(const char *fn, void *p, size_t n)
{
	size_t old;

	if (p == NULL)
		return allocate(fn, OSH_HEAP_UNIT, n, false);
	check_open(fn);
	if (n == 0) {
		osh_free(fn, p);
		return NULL;
	}
	old = length_of(fn, p);
	osh_check(fn, osh_world, p, n, 0);
	osh_barrier_all(fn);
	if (!osh_blocks_resize(p, n))
		p = move(fn, p, old, n);
	osh_barrier_all(fn);
	return p;
}
