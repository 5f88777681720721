/* SPDX-License-Identifier: BSD-2-Clause */
/* --tag-output: lines of the PEs, whole, each with the number of its PE. */
#ifndef RUN_OUTPUT_H
#define RUN_OUTPUT_H

#include "run_job.h"

/*
 * Writes the lines that have arrived; at the end of the stream also what has no end of line.  True
 * when there may be more.  Ends the job when they cannot be written, as on a full disk.
 */
bool run_output_read(struct run_job *job, struct run_pe *pe, unsigned int stream);

/* The same for what another machine has sent; without --tag-output it is written as it comes. */
void run_output_take(struct run_job *job, struct run_pe *pe, unsigned int stream, const char *data,
		     size_t bytes);

/* Writes what has arrived and what has no end of line, and closes the streams. */
void run_output_drain(struct run_job *job, struct run_pe *pe);

/* The PEs have ended: writes what is left.  A child of theirs may still have the streams open. */
void run_output_end(struct run_job *job);

#endif
