/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The topology: hosts, their ports, the links between them, and the paths over links that are up.
 *
 * A spec is one of
 *
 *	ring			host i's right to host i+1's left, round to host 0
 *	chain			a ring without the last link
 *	mesh:WxH		host y*W+x at column x of row y: right to x+1, down to y+1
 *	torus:WxH		a mesh whose rows and columns are rings
 *	graph:0-1,1-2,2-0	any links; a link given twice is two links
 *
 * NULL and "" are ring.  Links of a graph stand in any order, with either end first, separated by commas or blanks,
 * so that the lines of a file are a graph, too.
 *
 * Port 0 of a host is `self`.  The others are numbered without gaps: left, right, up, down, those that exist; in a
 * graph by the number of the host to which they lead.  A ring of two hosts has one link, and so has a dimension of
 * two in a torus.
 *
 * A topology does not change once it is parsed: any number of threads may use it.  No function here
 * does input or output, or keeps anything between two calls; rt_topo_parse() and rt_draw() allocate.
 *
 * Masks of live links: up[host] has a bit for each port index that this host reports as up; a link is up when both
 * its ends report it.  NULL: all links are up.  Bit 0 is ignored.  A mask must not change during a call.
 */
#ifndef RT_TOPO_H
#define RT_TOPO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rt_types.h"

/*
 * Reads a spec for a fabric of `hosts` hosts.  Returns 0 with a topology for rt_topo_free(), -EINVAL or -ENOMEM; on
 * failure `out` is as before, and `why` holds one line for people: what was sought, what was found, what to do.
 */
int rt_topo_parse(const char *spec, unsigned int hosts, struct rt_topo **out, char *why,
		  size_t size);
/* Accepts NULL. */
void rt_topo_free(struct rt_topo *t);

/* The canonical text: all specs of one topology have the same text, and it parses to an equal topology. */
const char *rt_topo_spec(const struct rt_topo *t);

unsigned int rt_hosts(const struct rt_topo *t);

/* Returns the number of ports of `host`, self included; 0 when there is no such host. */
unsigned int rt_topo_ports(const struct rt_topo *t, unsigned int host);

/*
 * Returns the name of a port: "self"; "left", "right", "up", "down"; in a graph "to3", further
 * links to that host "to3.1", "to3.2" and so on.  NULL when there is no such port.
 */
const char *rt_topo_port_name(const struct rt_topo *t, unsigned int host, unsigned int port);

/* Returns the other end of a port's link; for self, and for a port that does not exist, port 0 of `host`. */
struct rt_end rt_topo_peer(const struct rt_topo *t, unsigned int host, unsigned int port);

/*
 * Does this end of the link wait for the cable?  Exactly one end does: `right` or `down`, in a
 * graph the lower host.
 */
bool rt_port_listens(const struct rt_topo *t, unsigned int host, unsigned int port);

/* Is the link of a port up?  Self always is, a port that does not exist never. */
bool rt_link_up(const struct rt_topo *t, const uint8_t *up, unsigned int host, unsigned int port);

/*
 * Returns the hops of a shortest path over live links; UINT_MAX when it would have more than
 * RT_PATH_MAX or does not exist, or when a host does not exist.
 */
unsigned int rt_distance(const struct rt_topo *t, const uint8_t *up, unsigned int from,
			 unsigned int to);

/*
 * Finds a shortest path over live links.  `flow` (any number) chooses among equally short paths,
 * always the same one while the links stay the same; many flows use all of them.  Returns 0,
 * -EHOSTUNREACH when there is no path of up to RT_PATH_MAX hops, or -EINVAL when a host does not
 * exist; then `out` is as before.  If `from` is `to`, the path has 0 hops.
 */
int rt_path_find(const struct rt_topo *t, const uint8_t *up, unsigned int from, unsigned int to,
		 uint32_t flow, struct rt_path *out);

/*
 * The functions below take paths that may be hostile: any bytes.  They return -EINVAL when a hop that they follow
 * leaves by a port that does not exist or by self, when the path has more than RT_PATH_MAX hops, when `step` is beyond
 * its end, or when there is no host `from`; then `out` is as before.  They do not ask whether links are up.
 */

/* Finds the host that the path has reached after `step` hops, and the port by which it came in (step 0: self). */
int rt_path_walk(const struct rt_topo *t, unsigned int from, const struct rt_path *path,
		 unsigned int step, struct rt_end *out);

/* Checks a path; also -EINVAL when it visits a host twice. */
int rt_path_check(const struct rt_topo *t, unsigned int from, const struct rt_path *path);

/*
 * Makes the path back over the same links: the ports out of each host from the end of the path to
 * `from`.
 */
int rt_path_reverse(const struct rt_topo *t, unsigned int from, const struct rt_path *path,
		    struct rt_path *out);

/*
 * Writes one text without a newline that says why `to` cannot be reached: with the down links that cut it off, that
 * it is too many hops away, or that a host does not exist; "" when it can be reached.
 */
void rt_topo_reason(const struct rt_topo *t, const uint8_t *up, unsigned int from, unsigned int to,
		    char *text, size_t size);

/*
 * Draws the topology for a terminal: as a picture, a graph as a list of neighbours.  Hosts have `names`, or their
 * numbers where names are NULL or do not fit; host `here` (RT_HOSTS_MAX: none) stands in angle brackets, links that
 * are down are marked with an x, and a line explains each mark that occurs.  Lines end with a newline and have at most
 * 100 columns where the topology permits.  Returns the length as snprintf does, or -ENOMEM.
 */
int rt_draw(const struct rt_topo *t, const uint8_t *up, const char *const *names, unsigned int here,
	    char *text, size_t size);

#endif
