/* SPDX-License-Identifier: BSD-2-Clause */
/* What the end of a PE means for the job. */
#ifndef RUN_JUDGE_H
#define RUN_JUDGE_H

#include "run_job.h"

/*
 * The process of a PE has ended; `status` is that of wait(). What the PE had sent is taken first. May end the job, or
 * give it its exit status; --serve tells the oshrun that has it.
 */
void run_judge_ended(struct run_job *job, struct run_pe *pe, int status);

/*
 * The last PE has ended: had some left the job, and some not? Then the job has failed. So it has where an end by
 * run_end_lost() is to come: it comes now.
 */
void run_judge_all(struct run_job *job);

#endif
