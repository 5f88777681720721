/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Output.  The table goes to standard output line by line; with --out the chosen format goes to a
 * file that gets its name only when it is complete, or directly to a target that is no plain file.
 * JSON is built by json-c and written once.
 */
#ifndef PF_REPORT_H
#define PF_REPORT_H

#include <stdio.h>

#include "pf_env.h"
#include "pf_result.h"

#define PF_SCHEMA "viaduct.perf"
#define PF_SCHEMA_VERSION 1

/* The hosts of the two ends, and the path between them. */
struct pf_place {
	char client_host[64], server_host[64];
	int client_pid, server_pid;
	int client_cpu, server_cpu; /* -1: not pinned */
	const char *path;	    /* self, neighbour, relayed */
	unsigned long hops;
	char port[16];
	uint32_t window; /* in effect */
};

struct json_object;

struct pf_report {
	const struct pf_config *cfg;
	FILE *file;   /* of --out */
	char *target; /* its final path, links resolved */
	char *part;   /* its name until it is complete; NULL: the target is written directly */
	struct json_object *results;
	int rows;
};

/* Opens the target of --out.  Returns 0, or -errno after a line on standard error. */
int pf_report_open(struct pf_report *rep, const struct pf_config *cfg);
/* Headings. */
void pf_report_begin(struct pf_report *rep, const struct pf_place *place);
void pf_report_add(struct pf_report *rep, const struct pf_result *r);
/* Writes the rest and gives a file its name.  `missed` expectations.  0 or -errno, after a line. */
int pf_report_end(struct pf_report *rep, const struct pf_place *place, const struct pf_env *env,
		  unsigned int missed);
/* Frees the report; removes a file that is not complete. */
void pf_report_close(struct pf_report *rep);

#endif
