/* SPDX-License-Identifier: BSD-2-Clause */
/* The command line of oshrun. */
#ifndef RUN_OPTIONS_H
#define RUN_OPTIONS_H

#include <stdbool.h>

#include "run_machine.h"
#include "u_topo.h"

#define RUN_HOSTS_MAX 64
#define RUN_EXPORTS_MAX 256

enum run_map { RUN_CYCLE, RUN_BLOCK, RUN_MAP_UNSAID };

struct run_options {
	int np, per_host, hosts; /* 0: not given; run_options_parse() decides np, hosts and map */
	struct run_machines machines; /* of --host and --hostfile */
	bool far;		      /* one of them is not this machine */
	bool serve;		      /* be the launcher of another oshrun's PEs here */
	const char *rsh;	      /* the remote shell, with its options */
	char **words;		      /* of the command line */
	enum run_map map;
	const char *topology, *window, *fabric;
	unsigned int bind; /* 0: none */
	const char *bind_word;
	enum u_topo_part bind_part,
		map_by; /* a PE has one of the former, of those in the latter in turn */
	bool mapped;	/* --map-by was given */
	bool tag, verbose;
	double timeout, hang_report, silence; /* s; 0: off */
	const char *wdir;
	const char *exports[RUN_EXPORTS_MAX]; /* VAR or VAR=VALUE */
	char **program;			      /* with its arguments, up to NULL */
};

/*
 * Has --bind-to from another oshrun: the number of its word, 0 for none, and the part in which PEs take turns.
 * 0 or -EPROTO: there is no such word or part.
 */
int run_options_bind(struct run_options *o, unsigned int bind, unsigned int map_by);

/* U_OPTION_GO_ON, or the exit status. */
int run_options_parse(int argc, char **argv, struct run_options *out);

#endif
