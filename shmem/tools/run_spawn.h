/* SPDX-License-Identifier: BSD-2-Clause */
/* Starting the PEs. */
#ifndef RUN_SPAWN_H
#define RUN_SPAWN_H

#include <signal.h>
#include <sys/resource.h>

#include "run_job.h"

/* What oshrun had before it changed it, for the PEs. */
struct run_heritage {
	sigset_t mask;
	struct rlimit files;
	const char *fabric; /* NULL: what the environment says */
};

/* Starts the PEs of this machine, and does not wait for their programs: run_spawn_check(). What fails ends the job. */
void run_spawn(struct run_job *job, const struct run_heritage *h);

/* Ends the job if a PE is known to have failed to execute its program; does not wait. */
void run_spawn_check(struct run_job *job);

#endif
