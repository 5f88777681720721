/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The topology as people give it: a spec (rt_topo.h), or file:PATH, a file of links.  Each line of
 * it holds one link between two hosts, "A-B" by their numbers; blank lines and text behind a # mean
 * nothing.
 */
#ifndef RT_LOAD_H
#define RT_LOAD_H

#include "rt_topo.h"

#define RT_FILE_MAX (1u << 20) /* bytes of the longest file */

/* Hosts of a fabric; `given` of rt_load(). */
struct rt_size {
	unsigned int given;	/* 0: as many as the text asks for */
	unsigned int otherwise; /* if it asks for no number */
	unsigned int most;
};

/*
 * Hosts that a spec asks for: those of a mesh or torus; of a graph, one more than the greatest number in
 * it.  0 when it is right with any number, or is no spec.
 */
unsigned int rt_spec_hosts(const char *spec);

/*
 * Turns the lines of a file into the spec of a graph.  `hosts` is their number, 0: any.  Returns 0 or
 * -EINVAL; then `why` holds one line for people that begins with the number of the bad one.
 */
int rt_lines_parse(const char *text, size_t len, unsigned int hosts, char spec[RT_SPEC_MAX],
		   char *why, size_t size);

/* Reads a file if there is one, and then as rt_topo_parse(). */
int rt_load(const char *text, struct rt_size hosts, struct rt_topo **out, char *why, size_t size);

#endif
