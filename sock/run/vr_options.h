/* SPDX-License-Identifier: BSD-2-Clause */
/* The command line of vi_run, and the environment that it makes from it. */
#ifndef VR_OPTIONS_H
#define VR_OPTIONS_H

#include <stdbool.h>

#include "vs_env.h"

struct vr_options {
	const char *host, *fabric, *promote, *rules, *map, *service, *place;
	const char *stats; /* NULL: none; "": to standard error; else the file for JSON */
	bool loopback, explain, no_uring, all;
	char **program; /* with its arguments, ended by NULL; [0] may be NULL with explain */
};

/* U_OPTION_GO_ON, or the exit status, after --help, --version or an error line. */
int vr_options_parse(struct vr_options *o, int argc, char **argv);

/*
 * Sets the variables for the program and reads them as the library will.  0, or 1 or 2, the exit
 * status, after an error line.
 */
int vr_options_apply(const struct vr_options *o, struct vs_env *env);

#endif
