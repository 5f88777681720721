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

/* The same in RUN_LOST_MS, by the first that asks for it, unless there is another end before. */
void run_end_lost(struct run_job *job, int exit_status, const char *line);

/* Ends the job for that reason now: that time is over, or nothing else is to be expected. */
void run_end_lost_now(struct run_job *job);

/* Passes a signal on to the PEs; they have RUN_END_MS to leave.  The second time they are killed. */
void run_end_signalled(struct run_job *job, int number, bool pass);

/* Is it SIGUSR1 or SIGUSR2, which mean what the program makes of them? run_end_pass() passes one to all PEs. */
bool run_end_is_passed(int number);
void run_end_pass(struct run_job *job, int number);

/* Kills all PEs, also those of other machines. */
void run_end_kill(struct run_job *job);

/* --serve: what the oshrun that has the job has asked for; 0: kill. */
void run_end_told(struct run_job *job, int number);

/* "PE 3 on host1", or on a machine. */
struct run_name {
	char text[RUN_MACHINE_NAME + 32];
};
struct run_name run_name(const struct run_pe *pe);

#endif
