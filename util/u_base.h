/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Helpers that every layer uses: branch hints, sizes, alignment, container_of.
 */
#ifndef U_BASE_H
#define U_BASE_H

#include <stddef.h>
#include <stdint.h>

#define u_likely(x) __builtin_expect(!!(x), 1)
#define u_unlikely(x) __builtin_expect(!!(x), 0)

/* Marks a function for the rare branches of a hot function. */
#define U_COLD __attribute__((noinline, cold))
#define U_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

/*
 * Marks a function whose accesses to memory are ordered by a message of another process, or by the
 * kernel.  The thread sanitizer sees neither, so the accesses are hidden from it.  A suppression is not
 * enough: it needs the stacks of both accesses, and the sanitizer may have forgotten that of the older one.
 */
#if defined(__SANITIZE_THREAD__)
#define U_ORDERED_OUTSIDE __attribute__((noinline, no_sanitize_thread))
#else
#define U_ORDERED_OUTSIDE
#endif

/* The distance of words with different writers: a line and its prefetched neighbour. */
#define U_LINE 64u
#define U_LINE_PAIR 128u

#define U_ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#define u_container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

static inline uint64_t u_align_up(uint64_t v, uint64_t power_of_two)
{
	return (v + power_of_two - 1) & ~(power_of_two - 1);
}

static inline uint64_t u_min64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Fetches a line that will be written.  x86: a no-op if the processor does not know the instruction. */
static inline void u_prefetch_write(const void *at)
{
#if defined(__x86_64__) || defined(__i386__)
	__asm__ volatile("prefetchw %0" : : "m"(*(const char *)at));
#else
	__builtin_prefetch(at, 1);
#endif
}

/* Does [off, off + len) lie within [0, size)?  Never overflows. */
static inline int u_range_ok(uint64_t off, uint64_t len, uint64_t size)
{
	return off <= size && len <= size - off;
}

#endif
