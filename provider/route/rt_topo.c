/* SPDX-License-Identifier: BSD-2-Clause */
/* The hosts and ports of a topology. */
#include "rt_topo.h"

#include <stdio.h>
#include <stdlib.h>

#include "rt_priv.h"

static const char *const side_names[] = { "left", "right", "up", "down" };

struct rt_topo *rt_topo_create(enum rt_shape shape, unsigned int hosts, unsigned int width,
			       unsigned int height)
{
	struct rt_topo *t = calloc(1, sizeof(*t) + hosts * sizeof(t->host[0]));

	if (t == NULL)
		return NULL;
	t->shape = shape;
	t->hosts = (uint16_t)hosts;
	t->width = (uint16_t)width;
	t->height = (uint16_t)height;
	return t;
}

void rt_topo_free(struct rt_topo *t)
{
	if (t == NULL)
		return;
	free(t->spec);
	free(t);
}

/* Appends a port; its peer is that host's self until all hosts have their ports. */
static struct rt_port *port_add(struct rt_topo *t, unsigned int host, const char *name)
{
	struct rt_host *h = &t->host[host];
	struct rt_port *p = &h->port[h->ports++];

	p->peer = (struct rt_end){ (uint16_t)host, RT_PORT_SELF };
	snprintf(p->name, sizeof(p->name), "%s", name);
	return p;
}

/* Gives each host port 0, self. */
static void selves_add(struct rt_topo *t)
{
	unsigned int host;

	for (host = 0; host < t->hosts; host++)
		port_add(t, host, "self");
}

/*
 * Moves `at` to the next of n places in a line, forward or back; false at the end of a line that does not wrap, and
 * one of two places or fewer never does.
 */
static bool line_step(unsigned int n, bool wraps, bool forward, unsigned int *at)
{
	bool leaves = forward ? *at == n - 1 : *at == 0;

	if (leaves && (!wraps || n <= 2))
		return false;
	*at = (*at + (forward ? 1 : n - 1)) % n;
	return true;
}

/* Moves `host` to its neighbour on that side of a grid; false, and it stays, if there is none. */
static bool grid_step(const struct rt_topo *t, enum rt_side side, unsigned int *host)
{
	bool wraps = t->shape == RT_SHAPE_RING || t->shape == RT_SHAPE_TORUS;
	bool forward = side == RT_RIGHT || side == RT_DOWN;
	unsigned int x = *host % t->width, y = *host / t->width;
	bool moved;

	if (side == RT_LEFT || side == RT_RIGHT)
		moved = line_step(t->width, wraps, forward, &x);
	else
		moved = line_step(t->height, wraps, forward, &y);
	*host = y * t->width + x;
	return moved;
}

/* Returns the port of a host on that side; RT_PORT_SELF: it has none there. */
static uint8_t port_on(const struct rt_host *h, enum rt_side side)
{
	uint8_t port;

	for (port = 1; port < h->ports; port++) {
		if (h->port[port].side == side)
			return port;
	}
	return RT_PORT_SELF;
}

/* Sets the peers of a host's ports, once all hosts of the grid have their ports. */
static void host_connect(struct rt_topo *t, unsigned int host)
{
	unsigned int port, peer;
	struct rt_port *p;

	for (port = 1; port < t->host[host].ports; port++) {
		p = &t->host[host].port[port];
		peer = host;
		grid_step(t, p->side, &peer);
		p->peer = (struct rt_end){ (uint16_t)peer, port_on(&t->host[peer], p->side ^ 1) };
	}
}

void rt_grid_build(struct rt_topo *t)
{
	unsigned int host, there, side;
	struct rt_port *p;

	selves_add(t);
	for (host = 0; host < t->hosts; host++) {
		for (side = RT_LEFT; side < RT_SIDES; side++) {
			there = host;
			if (!grid_step(t, side, &there))
				continue;
			p = port_add(t, host, side_names[side]);
			p->side = (uint8_t)side;
			p->listens = side == RT_RIGHT || side == RT_DOWN;
		}
	}
	for (host = 0; host < t->hosts; host++)
		host_connect(t, host);
}

int rt_edge_order(const void *va, const void *vb)
{
	const struct rt_edge *a = va, *b = vb;

	return a->low != b->low ? (int)a->low - (int)b->low : (int)a->high - (int)b->high;
}

/* Adds the port of a host for a link of a graph; `twin` numbers parallel links.  The caller sets its peer. */
static void edge_port(struct rt_topo *t, unsigned int host, unsigned int to, unsigned int twin)
{
	char name[RT_NAME_MAX];
	struct rt_port *p;

	if (twin == 0)
		snprintf(name, sizeof(name), "to%u", to % RT_HOSTS_MAX);
	else
		snprintf(name, sizeof(name), "to%u.%u", to % RT_HOSTS_MAX, twin % RT_PORTS_MAX);
	p = port_add(t, host, name);
	p->twin = (uint8_t)twin;
	p->listens = host < to;
}

void rt_graph_build(struct rt_topo *t, const struct rt_edge *edges, unsigned int count)
{
	unsigned int i, twin = 0;

	selves_add(t);
	for (i = 0; i < count; i++) {
		const struct rt_edge *e = &edges[i];
		struct rt_host *low = &t->host[e->low], *high = &t->host[e->high];

		twin = i > 0 && rt_edge_order(e, e - 1) == 0 ? twin + 1 : 0;
		edge_port(t, e->low, e->high, twin);
		edge_port(t, e->high, e->low, twin);
		low->port[low->ports - 1].peer = (struct rt_end){ e->high, high->ports - 1 };
		high->port[high->ports - 1].peer = (struct rt_end){ e->low, low->ports - 1 };
	}
}

const char *rt_topo_spec(const struct rt_topo *t)
{
	return t->spec;
}

unsigned int rt_hosts(const struct rt_topo *t)
{
	return t->hosts;
}

unsigned int rt_topo_ports(const struct rt_topo *t, unsigned int host)
{
	return host < t->hosts ? t->host[host].ports : 0;
}

const char *rt_topo_port_name(const struct rt_topo *t, unsigned int host, unsigned int port)
{
	return port < rt_topo_ports(t, host) ? t->host[host].port[port].name : NULL;
}

struct rt_end rt_topo_peer(const struct rt_topo *t, unsigned int host, unsigned int port)
{
	if (port < rt_topo_ports(t, host))
		return t->host[host].port[port].peer;
	return (struct rt_end){ (uint16_t)host, RT_PORT_SELF };
}

bool rt_port_listens(const struct rt_topo *t, unsigned int host, unsigned int port)
{
	return port < rt_topo_ports(t, host) && t->host[host].port[port].listens;
}
