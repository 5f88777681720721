/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Trace points at the stages of a message.
 *
 *	point			arguments
 *	post_entered		VI, descriptor		VipPostSend was called
 *	payload_written		channel, slot		a slot's payload is written to the peer
 *	slot_published		channel, slot		its sequence is written as well
 *	bell_rung		channel, bits		the peer's doorbell is about to be rung
 *	slot_seen		channel, slot		the receiver found the sequence; once more
 *						when the slot is not a short message
 *	payload_copied		channel, bytes		its payload is in the receive buffer
 *	completion_written	descriptor, status	the descriptor carries its Status
 *	completion_taken	descriptor, status	the program gets the descriptor back
 *	sleep_begins		NIC, ticket		a thread goes to sleep
 *	sleep_ended		NIC, ticket		the thread is awake
 *
 * A slot is named by its number, which both ends count from 0 for each direction.  The
 * arguments are values that the code has anyway: nothing is computed for them.
 *
 * The build of the library chooses the code of a point:
 *   U_TRACE_PROBES	a static probe viaduct:POINT: one nop, and a note for perf, bpftrace and
 *			gdb where the arguments are
 *   U_TRACE_STAMPS	a stamp in the thread's buffer, for perf/stages
 *   neither		nothing
 */
#ifndef U_TRACE_H
#define U_TRACE_H

#if defined(U_TRACE_STAMPS)

#include <stdbool.h>
#include <stdint.h>

#include "u_time.h"

enum u_trace_point {
	U_TRACE_post_entered,
	U_TRACE_payload_written,
	U_TRACE_slot_published,
	U_TRACE_bell_rung,
	U_TRACE_slot_seen,
	U_TRACE_payload_copied,
	U_TRACE_completion_written,
	U_TRACE_completion_taken,
	U_TRACE_sleep_begins,
	U_TRACE_sleep_ended,
	U_TRACE_POINTS,
};

struct u_trace_stamp {
	uint64_t time; /* ticks of the time stamp counter, or nanoseconds */
	uint32_t word; /* the second argument, cut to 32 bits */
	uint32_t point;
};

struct u_trace_ring {
	bool tsc; /* the counter, not the clock */
	uint32_t count, room;
	struct u_trace_stamp *at;
};

/* The buffer for this thread's stamps, or NULL for none.  A full buffer takes no more. */
extern __thread struct u_trace_ring *u_trace_ring;

/*
 * Reads the time after all earlier loads and computations have finished: ticks if `tsc`, on x86-64; else nanoseconds.
 */
static inline uint64_t u_trace_now(bool tsc)
{
#if defined(__x86_64__)
	if (tsc) {
		__builtin_ia32_lfence();
		return __builtin_ia32_rdtsc();
	}
#endif
	return (uint64_t)u_now_ns();
}

/*
 * Adds a stamp with the time, and `word` cut to 32 bits, to this thread's buffer; does nothing if there is none or it
 * is full.
 */
static inline void u_trace_add(enum u_trace_point point, uint64_t word)
{
	struct u_trace_ring *r = u_trace_ring;

	if (r == 0 || r->count == r->room)
		return;
	r->at[r->count].time = u_trace_now(r->tsc);
	r->at[r->count].word = (uint32_t)word;
	r->at[r->count].point = point;
	r->count++;
}

#define U_TRACE(point, a, b) u_trace_add(U_TRACE_##point, (uint64_t)(uintptr_t)(b))

#elif defined(U_TRACE_PROBES)

/* The places allowed for an argument.  If memory is allowed, clang puts all on the stack. */
#if defined(__clang__)
#define U_TRACE_AT "nr"
#else
#define U_TRACE_AT "nor"
#endif

/*
 * The note equals that of <sys/sdt.h>.  That header is not used, because the compiler takes
 * the length of its text for the length of code, and no longer inlines functions that contain it.
 */
#define U_TRACE(point, a, b)                                                                       \
	__asm__ inline(                                                                            \
		"990:	nop\n"                                                                       \
		".pushsection .note.stapsdt, \"\", \"note\"\n"                                     \
		".balign 4\n"                                                                      \
		".4byte 992f - 991f, 994f - 993f, 3\n"                                             \
		"991:	.asciz \"stapsdt\"\n"                                                        \
		"992:	.balign 4\n"                                                                 \
		"993:	.8byte 990b, _.stapsdt.base, 0\n"                                            \
		".asciz \"viaduct\"\n"                                                             \
		".asciz \"" #point "\"\n"                                                          \
		".asciz \"%c[as]@%[ar] %c[bs]@%[br]\"\n"                                           \
		"994:	.balign 4\n"                                                                 \
		".popsection\n"                                                                    \
		".ifndef _.stapsdt.base\n"                                                         \
		".pushsection .stapsdt.base, \"aG\", \"progbits\", "                               \
		".stapsdt.base, comdat\n"                                                          \
		".weak _.stapsdt.base\n"                                                           \
		".hidden _.stapsdt.base\n"                                                         \
		"_.stapsdt.base:	.space 1\n"                                                       \
		".size _.stapsdt.base, 1\n"                                                        \
		".popsection\n"                                                                    \
		".endif\n"                                                                         \
		:                                                                                  \
		: [ar] U_TRACE_AT(a), [as] "n"(sizeof(a)), [br] U_TRACE_AT(b), [bs] "n"(sizeof(b)))

#else

#define U_TRACE(point, a, b) ((void)0)

#endif

#endif
