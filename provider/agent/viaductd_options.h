/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The options of viaductd, each with the variable that gives its default, and the complaint about a
 * wrong one.
 */
#ifndef VIADUCTD_OPTIONS_H
#define VIADUCTD_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "ag_cfg.h"
#include "u_base.h"

#define VD_ALIASES_MAX 256u
#define VD_COMPLAINT_MAX 320

struct rt_topo;

struct vd_options {
	struct ag_cfg cfg;
	char fabric[64];
	char *names_text; /* the text into which `names` points */
	char *names[AG_HOSTS_MAX];
	unsigned int name_count;
	struct ag_alias aliases[VD_ALIASES_MAX], devices[VD_ALIASES_MAX];
	const char *alias_text[VD_ALIASES_MAX], *device_text[VD_ALIASES_MAX]; /* NULL after them */
	const char *topology_text, *relay_cpus_text;
	uint32_t hosts, relay_threads; /* from the command line; 0: not given there */
	struct rt_topo *topology;
	int relay_cpus[AG_RELAY_CPUS_MAX];
	int ready_fd; /* descriptor for the line that says that the agent listens, or why not; -1: none */
	bool check; /* the options and variables are only to be checked */
	bool no_passrights;
	bool bad_variable; /* the value that was refused came from a variable, not from an option */
};

/* Writes a complaint to stderr, and keeps it for vd_complaint(). */
void U_PRINTF(1, 2) vd_complain(const char *fmt, ...);

/*
 * The last complaint, as one line for the ready descriptor.  If there was none: a general text
 * about the variables.
 */
const char *vd_complaint(void);

/*
 * Sets the fabric, if it is one of the caller's own.  0; or -EINVAL without a complaint, after which o->fabric
 * may have changed.
 */
int vd_set_fabric(struct vd_options *o, const char *arg);

/*
 * Overwrites all options by defaults and the variables.  0, or -EINVAL, and then u_cfg has logged which one is
 * wrong.
 */
int vd_options_defaults(struct vd_options *o);

/*
 * Sets options from the command line, which override the variables.  Returns U_OPTION_GO_ON; or the
 * exit status, after --help or --version, or after a complaint.
 */
int vd_options_parse(int argc, char **argv, struct vd_options *o);

#endif
