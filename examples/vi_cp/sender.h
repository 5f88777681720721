/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VI_CP_SENDER_H
#define VI_CP_SENDER_H

#include <stdbool.h>
#include <sys/types.h>

struct sender_options {
	char *const *sources;
	int source_count;
	const char *host;
	const char *dir; /* below the receiver's directory; may be empty */
	const char *service;
	unsigned int wait_seconds; /* for a receiver that is not there yet or busy */
	bool quiet, verbose;
	pid_t receiver; /* the receiver started by this program, or 0 */
};

/* Copies everything; returns the exit code. */
int sender_run(const struct sender_options *options);

#endif
