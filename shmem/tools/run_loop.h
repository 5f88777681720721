/* SPDX-License-Identifier: BSD-2-Clause */
/* What happens in a job, until all its PEs have ended. */
#ifndef RUN_LOOP_H
#define RUN_LOOP_H

#include "run_fabric.h"
#include "run_job.h"

/*
 * Handles what happens until all PEs and remote shells have ended, and judges then. `signals`: a signalfd of SIGCHLD
 * and those that are for the PEs.
 */
void run_loop(struct run_job *job, struct run_fabric *fabric, int signals);

/*
 * The PEs have ended: waits until somebody has read what oshrun writes; once a signal or a limit has ended the job, for
 * RUN_END_MS. What is not written then is lost, and so is all that is put to a sink later.
 */
void run_loop_flush(struct run_job *job, struct run_fabric *fabric, int signals);

#endif
