/* SPDX-License-Identifier: BSD-2-Clause */
/* Standard output of a tool, which fails if it cannot write there. */
#ifndef TOOL_OUT_H
#define TOOL_OUT_H

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int tool_out_error; /* the first error of writing, told by tool_out_end() */

/*
 * Before anything is opened: a standard stream that the caller has closed is taken by a
 * descriptor that refuses to be written, so that no socket gets its number.
 */
static inline void tool_out_begin(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDONLY);
	} while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

/* Writes buffered text.  Returns 0, or -errno of the first failure so far. */
static inline int tool_out_flush(void)
{
	if (fflush(stdout) != 0 && tool_out_error == 0)
		tool_out_error = errno;
	if (ferror(stdout) && tool_out_error == 0)
		tool_out_error = EIO;
	return -tool_out_error;
}

/* The exit status: `status`, or failure after one line when output was lost. */
static inline int tool_out_end(const char *tool, int status)
{
	if (tool_out_flush() == 0)
		return status;
	fprintf(stderr, "%s: writing to standard output: %s; the output is incomplete\n", tool,
		strerror(tool_out_error));
	return EXIT_FAILURE;
}

#endif
