/* SPDX-License-Identifier: BSD-2-Clause */
/* The other machines of a job: a remote shell starts oshrun --serve on each. */
#ifndef RUN_FAR_H
#define RUN_FAR_H

#include "run_job.h"

/* Decides which PE is on which machine, for run_far_free() also after an error. 0 or -ENOMEM. */
int run_far_prepare(struct run_job *job);

/* Starts the remote shells; what fails ends the job. */
void run_far_start(struct run_job *job);

/* Sends START to a machine that has said HELLO; what does not fit into it ends the job. */
void run_far_begin(struct run_job *job, struct run_far *far);

/* Is any machine still connected, or its remote shell running? */
bool run_far_any(const struct run_job *job);

/* Closes the connection of a machine, whose PEs count as ended, unjudged; does nothing the second time. */
void run_far_close(struct run_job *job, struct run_far *far);

/* Notes the status of a remote shell that has ended, which may end the job; does nothing for another child. */
void run_far_reaped(struct run_job *job, pid_t pid, int status);

/*
 * Ends the job, as a connection has ended before HELLO; waits up to RUN_LOST_MS for the status of a remote shell that
 * runs.
 */
void run_far_absent(struct run_job *job, struct run_far *far);

/* Ends the job if nothing has come from one for too long (--silence): its machine may have lost its power. */
void run_far_check(struct run_job *job);

/* Watches the connections again of which nothing was taken while nobody read the output here. */
void run_far_resume(struct run_job *job);

/* Waits no longer for any: ends the job if one is connected, counts their PEs as ended, kills their remote shells. */
void run_far_kill(struct run_job *job);

/* Frees what run_far_prepare() made; closes no connection. */
void run_far_free(struct run_job *job);

#endif
