/* SPDX-License-Identifier: BSD-2-Clause */
/* The options of oshrun. */
#ifndef RUN_OPTIONS_H
#define RUN_OPTIONS_H

#include <stdbool.h>

#include "run_machine.h"
#include "u_topo.h"

#define RUN_HOSTS_MAX 64
#define RUN_EXPORTS_MAX 256
#define RUN_APPS_MAX 64
#define RUN_APP_EXPORTS_MAX 64
#define RUN_IGNORED_MAX 8

struct u_option;
struct u_option_tool;

enum run_map { RUN_CYCLE, RUN_BLOCK, RUN_MAP_UNSAID };

/* A program of the job; most jobs have one. */
struct run_app {
	int np;	 /* 0: not given */
	int end; /* it has the PEs with lower numbers that no program before it has */
	const char *wdir;
	const char *exports[RUN_APP_EXPORTS_MAX]; /* VAR or VAR=VALUE, for it alone */
	char **words;				  /* of its part of the command line */
	char **program;				  /* with its arguments, up to NULL */
};

struct run_options {
	int np, per_host, hosts; /* 0: not given; run_command_parse() decides np, hosts and map */
	struct run_machines machines; /* of --host and --hostfile */
	bool far;		      /* one of them is not this machine */
	bool serve;		      /* be the launcher of another oshrun's PEs here */
	const char *rsh;	      /* the remote shell, with its options */
	enum run_map map;
	const char *topology, *window, *fabric;
	unsigned int bind; /* 0: none */
	const char *bind_word;
	enum u_topo_part bind_part,
		map_by; /* a PE has one of the former, of those in the latter in turn */
	bool mapped;	/* --map-by was given */
	bool tag, verbose, quiet;
	double timeout, hang_report, silence; /* s; 0: off */
	const char *exports[RUN_EXPORTS_MAX]; /* VAR or VAR=VALUE */
	const char *ignored[RUN_IGNORED_MAX]; /* options that were given and have no effect */
	struct run_app apps[RUN_APPS_MAX];
	int n_apps;
};

/* The program of PE `pe`. */
static inline const struct run_app *run_options_app(const struct run_options *o, int pe)
{
	int i = 0;

	while (i < o->n_apps - 1 && pe >= o->apps[i].end)
		i++;
	return &o->apps[i];
}

/*
 * Sets what another oshrun says of its --bind-to: the number of the word, 0 for none, and the part in which PEs take
 * turns.  0, or -EPROTO if there is no such word or part; then nothing is set.
 */
int run_options_bind(struct run_options *o, unsigned int bind, unsigned int map_by);

/* Sets what follows from --bind-to and --map-by: bind_part, bind_word, and map_by where that was not given. */
void run_options_bound(struct run_options *o);

/*
 * Sets a variable of one program, `into` a struct run_app: the option has two words, a name and a value, which is at
 * optind. 0; -EINVAL: no value, or no name; -ENOSPC: too many; -ENOMEM.
 */
int run_options_export_app(void *into, const struct u_option *o, const char *name);

extern const struct u_option_tool run_options_tool;

#endif
