/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VI_CP_SERVER_H
#define VI_CP_SERVER_H

#include <stdbool.h>

struct server_options {
	const char *dir;     /* everything is below it */
	const char *service; /* name clients ask for */
	bool once;	     /* leave after one client */
	bool quiet;
	bool no_pull, no_push;
	bool anywhere;	      /* for --spawn: clients may name any path */
	unsigned int idle_ms; /* a client silent for longer is dropped */
};

/* Serves until SIGINT or SIGTERM; returns the exit code. */
int server_run(const struct server_options *options);

#endif
