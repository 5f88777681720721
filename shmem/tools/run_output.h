/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What PEs write, where oshrun has it: with --tag-output lines, whole, each with the number of its PE, and what comes
 * from other machines or goes to one (--serve).
 */
#ifndef RUN_OUTPUT_H
#define RUN_OUTPUT_H

#include "run_job.h"

/*
 * Writes the lines that one read of the stream (0: output, 1: error) gives; at its end also what has no end of line,
 * and closes it.  While nobody reads what oshrun writes nothing is taken, and the stream is not watched until
 * run_output_resume().  --serve passes the bytes on as they come.
 */
void run_output_read(struct run_job *job, struct run_pe *pe, unsigned int stream);

/* As run_output_read() for what another machine has sent; without --tag-output it is written as it comes. */
void run_output_take(struct run_job *job, struct run_pe *pe, unsigned int stream, const char *data,
		     size_t bytes);

/* Shall nothing more be taken from PEs and machines, as nobody reads it?  Not at the end of the job. */
bool run_output_full(const struct run_job *job);

/* Watches the streams of PEs again that were not read while nobody read the output here. */
void run_output_resume(struct run_job *job);

/*
 * Ends the job when output cannot be written, as on a full disk, or closes streams that nobody reads any more; looks
 * only where oshrun writes for PEs (--tag-output, other machines).  --serve notes that the connection is lost.
 */
void run_output_check(struct run_job *job);

/* Writes what has arrived from the PE and what has no end of line, and closes both its streams; waits for nothing. */
void run_output_drain(struct run_job *job, struct run_pe *pe);

/* The PEs have ended: run_output_drain() of all.  A child of theirs may still have the streams open. */
void run_output_end(struct run_job *job);

#endif
