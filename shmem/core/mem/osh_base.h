/* SPDX-License-Identifier: BSD-2-Clause */
/* Small things that every unit of OpenSHMEM uses. */
#ifndef OSH_BASE_H
#define OSH_BASE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define osh_likely(x) __builtin_expect(!!(x), 1)
#define osh_unlikely(x) __builtin_expect(!!(x), 0)
#define OSH_COLD __attribute__((cold, noinline))
#define OSH_CACHE_LINE 64

static inline size_t osh_min(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* The sum, or SIZE_MAX, which is more than any memory has. */
static inline size_t osh_plus(size_t a, size_t b)
{
	size_t sum;

	return osh_unlikely(__builtin_add_overflow(a, b, &sum)) ? SIZE_MAX : sum;
}

/* The product, or SIZE_MAX. */
static inline size_t osh_times(size_t a, size_t b)
{
	size_t product;

	return osh_unlikely(__builtin_mul_overflow(a, b, &product)) ? SIZE_MAX : product;
}

/* A stride in bytes, saturated on overflow. */
static inline ptrdiff_t osh_stride(ptrdiff_t elements, size_t bytes)
{
	ptrdiff_t stride;

	if (osh_unlikely(__builtin_mul_overflow(elements, (ptrdiff_t)bytes, &stride)))
		return elements < 0 ? PTRDIFF_MIN : PTRDIFF_MAX;
	return stride;
}

/* `to` is a power of two. */
static inline size_t osh_align_up(size_t n, size_t to)
{
	return (n + to - 1) & ~(to - 1);
}

/* Prints one line on standard error: "shmem: PE N: ", then the text up to its first '\n'. */
void osh_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/*
 * Prints one line about this PE, and ends the job with status 1.  `lost`: another PE cannot be reached; the launcher
 * may know better.
 */
_Noreturn void osh_end(bool lost, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
#define osh_fatal(...) osh_end(false, __VA_ARGS__)
#define osh_fatal_lost(...) osh_end(true, __VA_ARGS__)

/* Ends the job if a source or destination in this process is NULL. */
void osh_check_local(const char *fn, const void *local);
/* Names this PE in the lines of osh_warn() and osh_fatal(); before that they name none. */
void osh_say_pe(int pe);

#endif
