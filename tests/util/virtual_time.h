/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Time that passes when the program says so, for programs that have virtual_time.c in place of u_time.c, u_poll.c and
 * u_futex.c of the library: all waits by the clock follow it.
 *
 * The clock stands still except for vt_pass(), naps, which pass at once, and polls with a deadline: such a poll offers
 * others their turns, and when they have nothing to do it moves the clock to its deadline.  A thread that sleeps on a
 * word of memory sleeps until it is woken: its time-out never passes.
 */
#ifndef VIRTUAL_TIME_H
#define VIRTUAL_TIME_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

void vt_pass(int64_t ns);

/* Sets the calendar, u_calendar_ns(), ahead of the time that passes (negative: back); time itself does not change. */
void vt_set_calendar(int64_t ahead_ns);

/*
 * Sets the function (NULL: none) that others run in the thread that polls, while a poll waits until `until`.  It
 * returns false when they have nothing to do before that time; it may let time pass itself, up to then.
 */
void vt_turns(bool (*take)(void *arg, int64_t until), void *arg);

#ifdef __cplusplus
}
#endif

#endif
