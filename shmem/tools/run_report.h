/* SPDX-License-Identifier: BSD-2-Clause */
/* What each PE waits for. */
#ifndef RUN_REPORT_H
#define RUN_REPORT_H

#include "run_job.h"

#define RUN_SAMPLE_NS INT64_C(1000000000)

/*
 * Once in RUN_SAMPLE_NS: sees which PEs have made steps, and reports a standstill (--hang-report), once until there is
 * a step. --serve instead tells the oshrun that has the job that it lives, and which statuses have changed.
 */
void run_report_sample(struct run_job *job);

/* Writes a table of what each PE does, or waits for, to standard error. Ends nothing. */
void run_report(struct run_job *job);

#endif
