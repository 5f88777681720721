/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Topologies in the form that users write: a spec (rt_topo.h), or file:PATH, a file of links.  Each
 * line of the file holds one link between two hosts, "A-B" by their numbers; blank lines and text
 * after a # are ignored.
 */
#ifndef RT_LOAD_H
#define RT_LOAD_H

#include "rt_topo.h"

#define RT_FILE_MAX (1u << 20) /* bytes of the longest file */

/* The number of hosts of a fabric, for rt_load(). */
struct rt_size {
	unsigned int given;	/* 0: as many as the text asks for */
	unsigned int otherwise; /* used if the text asks for no number */
	unsigned int most;
};

/*
 * Returns the number of hosts that a spec asks for: that of a mesh or torus; for a graph, one more than the greatest
 * number in it.  0 when the spec is right with any number, or is not a spec.
 */
unsigned int rt_spec_hosts(const char *spec);

/*
 * Turns the lines of a file into the spec of a graph.  `hosts` is their number, 0: any; a host of that number or more
 * is refused.  Whether all hosts are joined is not checked.  Returns 0 or -EINVAL; then `why` holds one line for
 * people that begins with "line N: ", the number of the bad line of the file.
 */
int rt_lines_parse(const char *text, size_t len, unsigned int hosts, char spec[RT_SPEC_MAX],
		   char *why, size_t size);

/*
 * Parses a text, a spec or file:PATH, into a topology.  Returns as rt_topo_parse() does; -EINVAL
 * also when the file cannot be read.
 */
int rt_load(const char *text, struct rt_size hosts, struct rt_topo **out, char *why, size_t size);

#endif
