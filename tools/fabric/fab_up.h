/* SPDX-License-Identifier: BSD-2-Clause */
/* The command up: starts the agents of a fabric, and waits for their links. */
#ifndef FAB_UP_H
#define FAB_UP_H

#include <stdbool.h>

#include "fab.h"

#define FAB_ARGS_MAX 480

/* The options that every viaductd gets. */
struct fab_up_args {
	const char *v[FAB_ARGS_MAX];
	unsigned int count;
	unsigned int hosts; /* 0: the number that the topology asks for, or a default */
	const char *topology;
	bool foreground;
};

/* Starts the fabric.  This and the next function return the exit status, and print an error. */
int fab_up(const struct fabric *f, const struct fab_up_args *asked);

/* In the foreground, after fab_up(), which blocked the signals: waits for one, and takes the fabric down. */
int fab_stay(const struct fabric *f);

#endif
