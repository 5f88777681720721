/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The topology: a ring of n hosts.  Pure functions.
 *
 * Every host has the port `self` (index 0).  In a ring host i's `right` is
 * cabled to host i+1's `left`, host n-1's `right` to host 0's `left`:
 *
 *	n = 1	self only
 *	n = 2	one cable, host 0's right to host 1's left; the other two ports do not exist
 *	n >= 3	self, left (1), right (2) on every host
 *
 * Messages go the shorter way round; to the right when both are equally long.
 */
#ifndef RT_RING_H
#define RT_RING_H

#include <stdbool.h>
#include <stddef.h>

#define RT_HOSTS_MAX 64u
#define RT_PORT_SELF 0u

enum rt_side { RT_SELF, RT_LEFT, RT_RIGHT };

enum rt_path { RT_PATH_NONE, RT_PATH_SELF, RT_PATH_NEIGHBOUR, RT_PATH_RELAYED };

/* How `from` reaches `to`. */
struct rt_route {
	enum rt_path path;
	unsigned int hops; /* 0 within a host */
	unsigned int next; /* host on the way, `to` itself for neighbours */
	unsigned int port; /* index of the port towards it */
};

/* Ports of host `host` in a ring of `hosts`, self included. */
unsigned int rt_port_count(unsigned int hosts, unsigned int host);

/* Which side port `index` is, and its name. */
enum rt_side rt_port_side(unsigned int hosts, unsigned int host, unsigned int index);
const char *rt_port_name(unsigned int hosts, unsigned int host, unsigned int index);

/* The host at the other end of port `index` (`host` itself for self). */
unsigned int rt_port_peer(unsigned int hosts, unsigned int host, unsigned int index);

unsigned int rt_hops(unsigned int hosts, unsigned int from, unsigned int to);

/* 0, or -EINVAL when a host is not one of the ring's. */
int rt_route(unsigned int hosts, unsigned int from, unsigned int to, struct rt_route *out);

/* One line for people: why `to` cannot be used from `from` without relays; "" when it can. */
void rt_reason(unsigned int hosts, unsigned int from, unsigned int to, char *text, size_t size);

#endif
