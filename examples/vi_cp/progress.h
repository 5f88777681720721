/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One line on the terminal that tells how far the copy is.  Silent when
 * standard error is no terminal.
 */
#ifndef VI_CP_PROGRESS_H
#define VI_CP_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
	bool shown;
	uint64_t total, done; /* bytes */
	double begin, last;   /* seconds */
};

void progress_begin(struct progress *p, uint64_t total, bool quiet);
void progress_add(struct progress *p, uint64_t bytes, const char *name);
void progress_clear(const struct progress *p); /* before another line is printed */
double progress_seconds(const struct progress *p);

/* "12.3 MiB" */
const char *progress_bytes(uint64_t bytes, char out[32]);

#endif
