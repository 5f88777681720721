/* SPDX-License-Identifier: BSD-2-Clause */
/* oshrun's side of boot_wire.h: what PEs send is checked, and what breaks the rules ends the job. */
#ifndef RUN_CONN_H
#define RUN_CONN_H

#include "run_job.h"

/* Takes what the PE has sent, and sends it what is left to send.  `which`: RUN_SOCK or RUN_CONTROL. */
void run_conn_serve(struct run_job *job, struct run_pe *pe, enum run_event which);

/* Can an exchange never be complete, because a PE has ended?  Then ends the job. */
void run_conn_check_ended(struct run_job *job);

void run_conn_close(struct run_pe *pe);

#endif
