/* SPDX-License-Identifier: BSD-2-Clause */
/* The other machines of a job: a remote shell starts oshrun --serve on each. */
#ifndef RUN_FAR_H
#define RUN_FAR_H

#include "run_job.h"

/* Decides which PE is on which machine. 0 or -ENOMEM. */
int run_far_prepare(struct run_job *job);

/* Starts the remote shells; what fails ends the job. */
void run_far_start(struct run_job *job);

/* It has said HELLO: tells it what to start. */
void run_far_begin(struct run_job *job, struct run_far *far);

/* Is one still connected, or its remote shell running? */
bool run_far_any(const struct run_job *job);

/* It is no longer listened to, and its PEs count as ended. */
void run_far_close(struct run_job *job, struct run_far *far);

/* A child has ended; it may be a remote shell. */
void run_far_reaped(struct run_job *job, pid_t pid, int status);

/* The connection has ended before HELLO. */
void run_far_absent(struct run_job *job, struct run_far *far);

/* Ends the job if nothing has come from one for too long (--silence): its machine may have lost its power. */
void run_far_check(struct run_job *job);

/* Watches those again whose output nobody has read for a while. */
void run_far_resume(struct run_job *job);

/* Waits no longer for any: ends the job if one is connected, counts their PEs as ended, kills their remote shells. */
void run_far_kill(struct run_job *job);

void run_far_free(struct run_job *job);

#endif
