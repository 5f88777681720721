/* SPDX-License-Identifier: BSD-2-Clause */
/* --serve: what the oshrun that has the job sends, once the PEs are started. */
#ifndef RUN_TOLD_H
#define RUN_TOLD_H

#include "run_job.h"

/*
 * Takes all that the oshrun that has the job has sent so far. When that is gone, or breaks the rules, the PEs are
 * killed and it is listened to no more.
 */
void run_told(struct run_job *job);

#endif
