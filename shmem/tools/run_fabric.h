/* SPDX-License-Identifier: BSD-2-Clause */
/* The hosts that are started for one job: a child, vi_fabric, has them and ends them when it ends. */
#ifndef RUN_FABRIC_H
#define RUN_FABRIC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "run_options.h"

struct run_fabric {
	char name[64]; /* ends with a secret: other users cannot foresee the addresses of its hosts */
	bool up;
	int hosts;
	pid_t pid; /* of vi_fabric; 0: it has ended */
	int out;
	int signals;	  /* a signalfd of those that end what oshrun waits for */
	int64_t limit_at; /* of --timeout, or 0 */
	char program[4096];
};

/*
 * Starts the hosts, and waits until all links are up. *f has `signals` and `limit_at`, all else 0. 0; or the exit
 * status of oshrun, after a line (none for a signal), and then the hosts have ended or are about to.
 */
int run_fabric_up(struct run_fabric *f, const struct run_options *o);

/*
 * Does the fabric of that name run?  *f as for run_fabric_up().  0; or the exit status of oshrun: that of
 * «vi_fabric status», which has said why, or without a line EXIT_LATE, or 128 plus the signal that has come.
 */
int run_fabric_check(struct run_fabric *f, const char *name);

/* Ends the hosts and waits for that, until a signal comes. Does nothing where none was started. */
void run_fabric_down(struct run_fabric *f);

#endif
