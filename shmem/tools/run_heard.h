/* SPDX-License-Identifier: BSD-2-Clause */
/* What the oshrun on another machine sends is checked, and what breaks the rules ends the job. */
#ifndef RUN_HEARD_H
#define RUN_HEARD_H

#include "run_job.h"

/* Takes what a machine has sent, unless nobody reads the output here, and sends it what is left to send. */
void run_heard(struct run_job *job, struct run_far *far);

#endif
