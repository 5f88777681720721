/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VI_CP_CLIENT_H
#define VI_CP_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

struct client_options {
	bool pull; /* from the server to here */
	char *const *sources;
	int source_count;
	const char *host;
	const char *dest;
	uint32_t flags; /* of the HELLO; CP_PULL and CP_DIRECTORY are added as needed */
	const char *service;
	unsigned int wait_seconds; /* for a server that is not there yet or busy */
	bool spawn;		   /* start the server */
	bool quiet, verbose, progress, stats;
};

/* Copies everything; returns the exit code. */
int client_run(const struct client_options *options);

#endif
