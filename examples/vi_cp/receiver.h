/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VI_CP_RECEIVER_H
#define VI_CP_RECEIVER_H

#include <stdbool.h>

struct receiver_options {
	const char *dir;     /* everything arrives below it */
	const char *service; /* name senders ask for */
	bool once;	     /* leave after one sender */
	bool quiet;
	unsigned int idle_ms; /* a sender silent for longer is dropped */
};

/* Serves until SIGINT or SIGTERM; returns the exit code. */
int receiver_run(const struct receiver_options *options);

#endif
