/* SPDX-License-Identifier: BSD-2-Clause */
#include "rt_ring.h"

#include <errno.h>
#include <stdio.h>

unsigned int rt_port_count(unsigned int hosts, unsigned int host)
{
	if (hosts <= 1)
		return 1;
	return hosts == 2 ? 2 : 3;
}

enum rt_side rt_port_side(unsigned int hosts, unsigned int host, unsigned int index)
{
	if (index == RT_PORT_SELF)
		return RT_SELF;
	if (hosts == 2)
		return host == 0 ? RT_RIGHT : RT_LEFT;
	return index == 1 ? RT_LEFT : RT_RIGHT;
}

const char *rt_port_name(unsigned int hosts, unsigned int host, unsigned int index)
{
	static const char *const names[] = { "self", "left", "right" };

	return names[rt_port_side(hosts, host, index)];
}

unsigned int rt_port_peer(unsigned int hosts, unsigned int host, unsigned int index)
{
	switch (rt_port_side(hosts, host, index)) {
	case RT_LEFT:
		return (host + hosts - 1) % hosts;
	case RT_RIGHT:
		return (host + 1) % hosts;
	default:
		return host;
	}
}

static unsigned int steps_right(unsigned int hosts, unsigned int from, unsigned int to)
{
	return (to + hosts - from) % hosts;
}

unsigned int rt_hops(unsigned int hosts, unsigned int from, unsigned int to)
{
	unsigned int right = steps_right(hosts, from, to);

	return right <= hosts - right ? right : hosts - right;
}

int rt_route(unsigned int hosts, unsigned int from, unsigned int to, struct rt_route *out)
{
	unsigned int right;
	bool rightward;

	if (hosts == 0 || hosts > RT_HOSTS_MAX || from >= hosts || to >= hosts)
		return -EINVAL;
	right = steps_right(hosts, from, to);
	rightward = right <= hosts - right;
	out->hops = rt_hops(hosts, from, to);
	if (out->hops == 0) {
		out->path = RT_PATH_SELF;
		out->next = from;
		out->port = RT_PORT_SELF;
		return 0;
	}
	out->path = out->hops == 1 ? RT_PATH_NEIGHBOUR : RT_PATH_RELAYED;
	out->next = (from + (rightward ? 1 : hosts - 1)) % hosts;
	out->port = hosts == 2 ? 1 : (rightward ? 2 : 1);
	return 0;
}

void rt_reason(unsigned int hosts, unsigned int from, unsigned int to, char *text, size_t size)
{
	unsigned int hops;

	if (from >= hosts || to >= hosts) {
		snprintf(text, size, "host %u is none of the %u hosts of the fabric", to, hosts);
		return;
	}
	hops = rt_hops(hosts, from, to);
	if (hops > 1)
		snprintf(text, size, "host %u is %u hops away and relaying is not available", to,
			 hops);
	else
		text[0] = '\0';
}
