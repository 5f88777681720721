/* SPDX-License-Identifier: BSD-2-Clause */
/* oshrun --serve: has PEs of a job here for an oshrun on another machine. */
#ifndef RUN_SERVE_H
#define RUN_SERVE_H

#include "run_job.h"
#include "run_spawn.h"

/*
 * Greets the oshrun at standard input and output, which are /dev/null afterwards, and waits to learn from it what to
 * start.  0; else the exit status, after a line unless that oshrun has gone or a signal has come.
 */
int run_serve_begin(struct run_job *job, struct run_options *o, int signals);

/*
 * Takes what a START, the frame that *l has received, says. 0, -EPROTO: it says something impossible, or is none;
 * -ENOMEM: with either the caller ends the process. The data of the frame become job->start, into which options and
 * PEs point.
 */
int run_serve_start(struct run_job *job, struct run_options *o, struct run_link *l);

/* Starts the PEs, and tells what they do until all have ended and their output is sent, or the connection is lost. */
void run_serve(struct run_job *job, const struct run_heritage *h, int signals);

#endif
