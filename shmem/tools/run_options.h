/* SPDX-License-Identifier: BSD-2-Clause */
/* The command line of oshrun. */
#ifndef RUN_OPTIONS_H
#define RUN_OPTIONS_H

#include <stdbool.h>

#define RUN_HOSTS_MAX 64
#define RUN_EXPORTS_MAX 256

enum run_map { RUN_CYCLE, RUN_BLOCK };

struct run_options {
	int np, per_host, hosts; /* 0: not given; run_options_parse() decides np and hosts */
	enum run_map map;
	const char *topology, *window, *fabric;
	unsigned int bind; /* index of none, core */
	bool tag, verbose;
	double timeout, hang_report; /* s; 0: off */
	const char *wdir;
	const char *exports[RUN_EXPORTS_MAX]; /* VAR or VAR=VALUE */
	char **program;			      /* with its arguments, up to NULL */
};

/* U_OPTION_GO_ON, or the exit status. */
int run_options_parse(int argc, char **argv, struct run_options *out);

#endif
