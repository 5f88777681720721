/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Time, deadlines, and the pause of a polling loop.  Only u_time.c reads clocks, naps and yields; a program that is
 * built with another u_time.c has another time (docs/architecture.md, section 4).
 */
#ifndef U_TIME_H
#define U_TIME_H

#include <stdbool.h>
#include <stdint.h>

/* Monotonic nanoseconds. */
int64_t u_now_ns(void);

/* Nanoseconds since 1970: it differs between hosts, and may jump. */
int64_t u_calendar_ns(void);

/* Sleeps for `ns`, or until a signal is handled.  No cancellation point. */
void u_nap_ns(int64_t ns);

/* Sleeps until `at`, a time of u_now_ns().  No cancellation point. */
void u_nap_until(int64_t at);

/* Offers the processor to other threads. */
void u_yield(void);

/* Tells the processor that a loop polls; the thread does not give it up. */
static inline void u_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield" ::: "memory");
#endif
}

/*
 * Call it after a poll of memory that found nothing: it keeps the processor from executing later polls
 * speculatively.  x86 discards all work since such a poll when another processor writes the line.
 */
static inline void u_poll_empty(void)
{
#if defined(__x86_64__)
	__asm__ volatile("lfence" ::: "memory");
#endif
}

/* A deadline: absolute monotonic nanoseconds; U_NEVER for none. */
#define U_NEVER INT64_MAX

/* The deadline `ms` milliseconds from now; infinite when `ms` is 0xFFFFFFFF or ~0UL, or too large to count. */
static inline int64_t u_deadline_ms(unsigned long ms)
{
	if (ms == 0xFFFFFFFFUL || ms == ~0UL)
		return U_NEVER;
	if (ms > (unsigned long)(INT64_MAX / 4000000))
		return U_NEVER;
	return u_now_ns() + (int64_t)ms * 1000000;
}

/* Nanoseconds left, 0 when passed, -1 when there is no deadline. */
static inline int64_t u_time_left(int64_t deadline)
{
	int64_t left;

	if (deadline == U_NEVER)
		return -1;
	left = deadline - u_now_ns();
	return left > 0 ? left : 0;
}

#endif
