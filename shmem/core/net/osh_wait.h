/* SPDX-License-Identifier: BSD-2-Clause */
/* Waiting for memory that another PE or thread changes, and what the launcher can see of it. */
#ifndef OSH_WAIT_H
#define OSH_WAIT_H

#include <stdbool.h>
#include <stdint.h>

/*
 * One wait of a routine: a loop calls osh_wait() as long as its condition does not hold, and
 * osh_wait_end() afterwards.
 *
 *	struct osh_wait w = OSH_WAIT(fn, addr);
 *	while (!condition())
 *		osh_wait(&w);
 *	osh_wait_end(&w);
 */
struct osh_wait {
	const char *fn;
	const volatile void *addr; /* what is waited for, or NULL */
	int pe;			   /* the PE that is waited for, or -1 */
	uint32_t rounds;
	bool in_vain; /* that PE has left the job: this look is the last */
	bool at_end;  /* in the barrier at the end, in which PEs at their end still take part */
};
#define OSH_WAIT_PE(fn, addr, pe) ((struct osh_wait){ (fn), (addr), (pe), 0, false, false })
#define OSH_WAIT(fn, addr) OSH_WAIT_PE(fn, addr, -1)

/*
 * Spins, yields or sleeps, longer with each call, and moves packets; a long wait is noted for the launcher. Ends the
 * job if w->pe has left it for good, at a call after the condition was looked at once more.
 */
void osh_wait(struct osh_wait *w);
/* Tells the launcher that the wait is over, if it was so long that osh_wait() has noted it. */
void osh_wait_end(struct osh_wait *w);

/*
 * Notes for the launcher that this PE waits in `fn`, for an address or a PE (NULL, -1: none); does not wait. While one
 * thread is noted, others are not; the same thread replaces its note.
 */
void osh_wait_show(const char *fn, const volatile void *addr, int pe);
/* Ends the note of osh_wait_show(), if it is that of this thread, and counts a step of the PE. */
void osh_wait_shown_end(void);
/* Ends the job: what `fn` waits for will not come, as that PE is at its end. */
_Noreturn void osh_wait_in_vain(const char *fn, int pe);

#endif
