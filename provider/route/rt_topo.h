/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The topology: hosts, their ports, the links between them, and the paths over links that are up.
 *
 * A spec is one of
 *
 *	ring			host i's right to host i+1's left, round to host 0
 *	chain			the same without the last link
 *	mesh:WxH		host y*W+x at column x of row y: right to x+1, down to y+1
 *	torus:WxH		a mesh whose rows and columns are rings
 *	graph:0-1,1-2,2-0	any links; a link said twice is two links
 *
 * NULL and "" are ring.  Links of a graph stand in any order, either way round, apart by commas or
 * blanks, so that the lines of a file will do.
 *
 * Port 0 of a host is `self`.  The others are numbered without gaps: left, right, up, down as far
 * as they exist; in a graph by the number of the host that they lead to.  A ring of two hosts has
 * one link, and so has a dimension of two in a torus.
 *
 * A topology does not change once it is parsed: any number of threads may use it.  No function here
 * does input or output, or keeps anything between two calls; rt_topo_parse() and rt_draw() allocate.
 *
 * Masks of live links: up[host] has the bit of each port index that is up as that host says; a link
 * is up when both its ends say so.  NULL: all links are up.  Bit 0 means nothing.  A mask must not
 * change during a call.
 */
#ifndef RT_TOPO_H
#define RT_TOPO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rt_types.h"

/*
 * Reads a spec for a fabric of `hosts` hosts.  Returns 0, -EINVAL or -ENOMEM; on failure `why`
 * holds one line for people: what was sought, what was found, what to do.
 */
int rt_topo_parse(const char *spec, unsigned int hosts, struct rt_topo **out, char *why,
		  size_t size);
void rt_topo_free(struct rt_topo *t);

/* The canonical text: two specs of one topology have the same, and it parses to an equal one. */
const char *rt_topo_spec(const struct rt_topo *t);

unsigned int rt_hosts(const struct rt_topo *t);

/* Ports of `host`, self included; 0 when there is no such host. */
unsigned int rt_topo_ports(const struct rt_topo *t, unsigned int host);

/*
 * "self"; "left", "right", "up", "down"; in a graph "to3", parallel links "to3.1", "to3.2" and so
 * on.  NULL when there is no such port.
 */
const char *rt_topo_port_name(const struct rt_topo *t, unsigned int host, unsigned int port);

/* The other end of a port's link; of self, and of a port that does not exist: host, port 0. */
struct rt_end rt_topo_peer(const struct rt_topo *t, unsigned int host, unsigned int port);

/* Exactly one end of each link waits for its cable: `right` and `down`, in a graph the lower host. */
bool rt_port_listens(const struct rt_topo *t, unsigned int host, unsigned int port);

/* Self is always up, a port that does not exist never. */
bool rt_link_up(const struct rt_topo *t, const uint8_t *up, unsigned int host, unsigned int port);

/*
 * Hops of a shortest path over live links; UINT_MAX when there is none of up to RT_PATH_MAX hops.
 */
unsigned int rt_distance(const struct rt_topo *t, const uint8_t *up, unsigned int from,
			 unsigned int to);

/*
 * A shortest path over live links.  Of equally short paths `flow` (any number) chooses one, always
 * the same for the same links; many flows share them all.  Returns 0, -EHOSTUNREACH when there is
 * no path of up to RT_PATH_MAX hops, or -EINVAL when a host does not exist.
 */
int rt_path_find(const struct rt_topo *t, const uint8_t *up, unsigned int from, unsigned int to,
		 uint32_t flow, struct rt_path *out);

/*
 * The functions below take paths that may be hostile: any bytes.  They return -EINVAL when a hop
 * that they look at leaves by a port that does not exist or by self, or when a path, or a step of it,
 * is longer than it may be.
 */

/* Where the path is after `step` hops: the host, and the port that it came in by (step 0: self). */
int rt_path_walk(const struct rt_topo *t, unsigned int from, const struct rt_path *path,
		 unsigned int step, struct rt_end *out);

/* Also -EINVAL when the path meets a host twice. */
int rt_path_check(const struct rt_topo *t, unsigned int from, const struct rt_path *path);

/*
 * The path back: the ports out of each host from the end of the path to `from`, over the same
 * links.
 */
int rt_path_reverse(const struct rt_topo *t, unsigned int from, const struct rt_path *path,
		    struct rt_path *out);

/* One line: why `to` cannot be reached, with the down links that cut it off; "" when it can. */
void rt_topo_reason(const struct rt_topo *t, const uint8_t *up, unsigned int from, unsigned int to,
		    char *text, size_t size);

/*
 * Draws the topology for a terminal: a picture, a graph as a list of neighbours.  Hosts bear
 * `names`, or their numbers where names are NULL or do not fit; host `here` (RT_HOSTS_MAX: none) stands
 * in angle brackets, links that are down are marked with an x.  Lines end with a newline and
 * are of up to 100 columns where the topology permits.  Returns the length as snprintf does, or -ENOMEM.
 */
int rt_draw(const struct rt_topo *t, const uint8_t *up, const char *const *names, unsigned int here,
	    char *text, size_t size);

#endif
