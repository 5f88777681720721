/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What PEs leave behind - shells, daemons, programs in the background - ends with the job.  It is found by a
 * variable that every PE gets and its children inherit, whatever group, session or parent they have by then.  What
 * has emptied its environment, or is of another user, is not found.
 */
#ifndef RUN_LEFT_H
#define RUN_LEFT_H

/* In a PE, before it executes its program: makes it and its children known as those of the job.  0; or -1 and errno. */
int run_left_mark(void);

/* Before the first PE is started: draws the name of the job.  0 or -errno. */
int run_left_begin(void);

/*
 * The PEs of this machine have ended: tells others of theirs to end, waits, and kills them if they do not in
 * a second, or when a signal comes at `signals`; a second later it gives up.  Agents on demand stay, since other
 * programs may use them.
 */
void run_left_end(int signals);

#endif
