/* SPDX-License-Identifier: BSD-2-Clause */
/* Paths over live links. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "rt_priv.h"
#include "rt_topo.h"

#define NAMED 6u /* down links that a reason names */

/* Both ends must have announced the link as up; `up` NULL: all links are up. */
bool rt_link_up(const struct rt_topo *t, const uint8_t *up, unsigned int host, unsigned int port)
{
	if (port >= rt_topo_ports(t, host))
		return false;
	return port == RT_PORT_SELF || rt_link_live(t, up, host, port);
}

unsigned int rt_distance(const struct rt_topo *t, const uint8_t *up, unsigned int from,
			 unsigned int to)
{
	uint16_t dist[RT_HOSTS_MAX];

	if (from >= t->hosts || to >= t->hosts)
		return UINT_MAX;
	rt_sweep(t, up, to, from, dist);
	return dist[from] <= RT_PATH_MAX ? dist[from] : UINT_MAX;
}

/* Lists the ports of `host` that lead over live links to hosts with a smaller distance, in order; returns how many. */
static unsigned int nearer_ports(const struct rt_topo *t, const uint8_t *up, const uint16_t *dist,
				 unsigned int host, uint8_t out[RT_PORTS_MAX])
{
	unsigned int port, n = 0, peer;

	for (port = 1; port < t->host[host].ports; port++) {
		peer = t->host[host].port[port].peer.host;
		if (dist[peer] < dist[host] && rt_link_live(t, up, host, port))
			out[n++] = (uint8_t)port;
	}
	return n;
}

/*
 * Turns the flow into a fraction of 1; flows that differ only in low bits are spread evenly.  At
 * each host the fraction, times the number of ports to choose from, gives the port and the fraction
 * for the next host: flows share all combinations of ports.
 */
static uint32_t flow_fraction(uint32_t flow)
{
	return flow * 0x9e3779b9u;
}

/* Returns one of `choices`, from 0, and leaves in `fraction` what decides the next choice. */
static unsigned int flow_choice(uint32_t *fraction, unsigned int choices)
{
	uint64_t scaled = (uint64_t)*fraction * choices;

	*fraction = (uint32_t)scaled;
	return (unsigned int)(scaled >> 32);
}

int rt_path_find(const struct rt_topo *t, const uint8_t *up, unsigned int from, unsigned int to,
		 uint32_t flow, struct rt_path *out)
{
	uint16_t dist[RT_HOSTS_MAX];
	uint8_t ports[RT_PORTS_MAX];
	uint32_t fraction = flow_fraction(flow);
	unsigned int host, step, n;

	if (from >= t->hosts || to >= t->hosts)
		return -EINVAL;
	rt_sweep(t, up, to, from, dist);
	if (dist[from] > RT_PATH_MAX)
		return -EHOSTUNREACH;
	memset(out, 0, sizeof(*out));
	out->hops = (uint8_t)dist[from];
	for (host = from, step = 0; host != to; step++) {
		n = nearer_ports(t, up, dist, host, ports);
		out->port[step] = ports[flow_choice(&fraction, n)];
		host = t->host[host].port[out->port[step]].peer.host;
	}
	return 0;
}

/*
 * Takes one hop of a path that may be hostile: `at` becomes the port by which the hop comes in.  False, and `at` stays:
 * there is no such port, or it is self.
 */
static bool hop(const struct rt_topo *t, const struct rt_path *path, unsigned int step,
		struct rt_end *at)
{
	uint8_t port = path->port[step];

	if (port == RT_PORT_SELF || port >= rt_topo_ports(t, at->host))
		return false;
	*at = t->host[at->host].port[port].peer;
	return true;
}

int rt_path_walk(const struct rt_topo *t, unsigned int from, const struct rt_path *path,
		 unsigned int step, struct rt_end *out)
{
	struct rt_end at = { (uint16_t)from, RT_PORT_SELF };
	unsigned int i;

	if (from >= t->hosts || path->hops > RT_PATH_MAX || step > path->hops)
		return -EINVAL;
	for (i = 0; i < step; i++) {
		if (!hop(t, path, i, &at))
			return -EINVAL;
	}
	*out = at;
	return 0;
}

int rt_path_check(const struct rt_topo *t, unsigned int from, const struct rt_path *path)
{
	struct rt_end at = { (uint16_t)from, RT_PORT_SELF };
	bool met[RT_HOSTS_MAX] = { false };
	unsigned int i;

	if (from >= t->hosts || path->hops > RT_PATH_MAX)
		return -EINVAL;
	for (i = 0; i < path->hops; i++) {
		met[at.host] = true;
		if (!hop(t, path, i, &at) || met[at.host])
			return -EINVAL;
	}
	return 0;
}

int rt_path_reverse(const struct rt_topo *t, unsigned int from, const struct rt_path *path,
		    struct rt_path *out)
{
	struct rt_end at = { (uint16_t)from, RT_PORT_SELF };
	struct rt_path back = { .hops = path->hops };
	unsigned int i;

	if (from >= t->hosts || path->hops > RT_PATH_MAX)
		return -EINVAL;
	for (i = 0; i < path->hops; i++) {
		if (!hop(t, path, i, &at))
			return -EINVAL;
		back.port[path->hops - 1 - i] = at.port;
	}
	*out = back;
	return 0;
}

/*
 * Is the link of a port down, with one end among the hosts joined to `from` or to `to`, and the other end elsewhere?
 * True only for the port of its lower host, so that each link counts once.
 */
static bool cuts(const struct rt_topo *t, const uint8_t *up, const uint16_t *from_dist,
		 const uint16_t *to_dist, unsigned int host, unsigned int port)
{
	struct rt_end peer = t->host[host].port[port].peer;
	bool from_edge = (from_dist[host] == RT_FAR) != (from_dist[peer.host] == RT_FAR);
	bool to_edge = (to_dist[host] == RT_FAR) != (to_dist[peer.host] == RT_FAR);

	return (from_edge || to_edge) && host < peer.host && !rt_link_live(t, up, host, port);
}

/* Writes the name of a link, as 0-1, further parallel ones as 0-1.1, and returns its length as snprintf() does. */
static int link_name(const struct rt_topo *t, unsigned int host, unsigned int port, char *text,
		     size_t size)
{
	const struct rt_port *p = &t->host[host].port[port];

	if (p->twin == 0)
		return snprintf(text, size, "%u-%u", host, p->peer.host);
	return snprintf(text, size, "%u-%u.%u", host, p->peer.host, p->twin);
}

/*
 * Names up to NAMED of the links for which cuts() is true, as "0-1, 2-3 and 4-5", then " and N more".  Returns how many
 * there are, those not named included.  `text` has room for all that.
 */
static unsigned int cut_list(const struct rt_topo *t, const uint8_t *up, const uint16_t *from_dist,
			     const uint16_t *to_dist, char *text, size_t size)
{
	struct rt_end cut[NAMED];
	unsigned int host, port, i, n = 0, named;
	size_t len = 0;

	for (host = 0; host < t->hosts; host++) {
		for (port = 1; port < t->host[host].ports; port++) {
			if (!cuts(t, up, from_dist, to_dist, host, port))
				continue;
			if (n < NAMED)
				cut[n] = (struct rt_end){ (uint16_t)host, (uint8_t)port };
			n++;
		}
	}
	named = n < NAMED ? n : NAMED;
	for (i = 0; i < named; i++) {
		if (i > 0)
			len += (size_t)snprintf(text + len, size - len, "%s",
						i + 1 == n ? " and " : ", ");
		len += (size_t)link_name(t, cut[i].host, cut[i].port, text + len, size - len);
	}
	if (n > named)
		snprintf(text + len, size - len, " and %u more", n - named);
	return n;
}

void rt_topo_reason(const struct rt_topo *t, const uint8_t *up, unsigned int from, unsigned int to,
		    char *text, size_t size)
{
	uint16_t from_dist[RT_HOSTS_MAX], to_dist[RT_HOSTS_MAX];
	char links[NAMED * 16 + 32];
	unsigned int n;

	if (from >= t->hosts || to >= t->hosts) {
		snprintf(text, size, "no host %u in a fabric of %u host%s",
			 to >= t->hosts ? to : from, t->hosts, t->hosts == 1 ? "" : "s");
		return;
	}
	rt_sweep(t, up, to, RT_HOSTS_MAX, to_dist);
	if (to_dist[from] <= RT_PATH_MAX) {
		snprintf(text, size, "%s", "");
		return;
	}
	if (to_dist[from] != RT_FAR) {
		snprintf(text, size, "host %u is %u hops away, and messages go up to %u", to,
			 to_dist[from], RT_PATH_MAX);
		return;
	}
	rt_sweep(t, up, from, RT_HOSTS_MAX, from_dist);
	n = cut_list(t, up, from_dist, to_dist, links, sizeof(links));
	snprintf(text, size, "host %u cannot be reached while link%s %s %s down", to,
		 n > 1 ? "s" : "", links, n > 1 ? "are" : "is");
}
