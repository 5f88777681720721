/* SPDX-License-Identifier: BSD-2-Clause */
/* --tag-output: lines of the PEs, whole, each with the number of its PE. */
#ifndef RUN_OUTPUT_H
#define RUN_OUTPUT_H

#include "run_job.h"

/*
 * Writes the lines that have arrived; at the end of the stream also what has no end of line.  True
 * when there may be more.
 */
bool run_output_read(struct run_pe *pe, unsigned int stream);

/* The PEs have ended: writes what is left.  A child of theirs may still have the streams open. */
void run_output_end(struct run_job *job);

#endif
