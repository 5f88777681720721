/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How far the copy is: a bar on the terminal, or a line a second where standard error is none.
 */
#ifndef VI_CP_PROGRESS_H
#define VI_CP_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

enum progress_mode {
	PROGRESS_NONE,
	PROGRESS_TERMINAL, /* a bar if standard error is a terminal */
	PROGRESS_ALWAYS,   /* and else lines */
};

struct progress {
	bool bar, lines;
	uint64_t total, done; /* bytes */
	double begin, last;   /* seconds */
};

void progress_begin(struct progress *p, enum progress_mode mode);
void progress_add(struct progress *p, uint64_t bytes, const char *name);
void progress_clear(const struct progress *p); /* before another line is printed */
double progress_seconds(const struct progress *p);

/* "12.3 MiB" */
const char *progress_bytes(uint64_t bytes, char out[32]);

#endif
