/* SPDX-License-Identifier: BSD-2-Clause */
/* The end of a job: who decides its exit status, and how the PEs are made to leave. */
#ifndef RUN_END_H
#define RUN_END_H

#include "run_job.h"

/*
 * Tells all PEs to leave, and decides the exit status, unless that is done already; --serve tells the oshrun that has
 * the job instead, which decides. `fmt`: the line that says why, or NULL.
 */
void run_end(struct run_job *job, int exit_status, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* As run_end() in RUN_LOST_MS, by the first that asks for it, unless there is another end before. Returns at once. */
void run_end_lost(struct run_job *job, int exit_status, const char *line);

/* Ends the job for the reason that run_end_lost() was given: that time is over, or nothing else is to be expected. */
void run_end_lost_now(struct run_job *job);

/*
 * Ends the job with 128 plus the signal, which is passed on to the PEs of other machines, and with `pass` to those of
 * this one; they have RUN_END_MS to leave. The second time they are killed. --serve tells the oshrun that has the job
 * instead.
 */
void run_end_signalled(struct run_job *job, int number, bool pass);

/* Is it SIGUSR1 or SIGUSR2, which mean what the program makes of them? */
bool run_end_is_passed(int number);
/* Passes SIGUSR1 or SIGUSR2 to all PEs, also of other machines, unless the job is ending. */
void run_end_pass(struct run_job *job, int number);

/*
 * Kills all PEs, also those of other machines, and closes their control sockets. Decides no exit status. Other machines
 * have RUN_END_MS to say that all has ended.
 */
void run_end_kill(struct run_job *job);

/*
 * --serve: signals the PEs, which have RUN_END_MS to leave, as the oshrun that has the job asks; 0, and the second
 * time: kills them.
 */
void run_end_told(struct run_job *job, int number);

/* "PE 3 on host1", or on a machine. */
struct run_name {
	char text[RUN_MACHINE_NAME + 32];
};
struct run_name run_name(const struct run_pe *pe);

#endif
