/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

#define UNSEEN UINT16_MAX

static unsigned int ports_of(const struct sim_net *net, unsigned int host)
{
	return rt_topo_ports(net->topo, host) - 1;
}

static unsigned int peer_of(const struct sim_net *net, unsigned int dir)
{
	return net->dirs[dir].to;
}

/*
 * Makes the directions of the links, two for each, and the entries for the work of hosts.  0 or
 * -ENOMEM; the caller frees a partly made net.
 */
static int dirs_make(struct sim_net *net)
{
	net->first = calloc(net->hosts + 1, sizeof(*net->first));
	if (net->first == NULL)
		return -ENOMEM;
	for (unsigned int h = 0; h < net->hosts; h++)
		net->first[h + 1] = net->first[h] + ports_of(net, h);
	net->dir_count = net->first[net->hosts];
	net->dirs = calloc(net->dir_count + 1, sizeof(*net->dirs));
	net->duties = calloc((size_t)net->hosts * SIM_DUTIES, sizeof(*net->duties));
	if (net->dirs == NULL || net->duties == NULL)
		return -ENOMEM;
	for (unsigned int h = 0; h < net->hosts; h++) {
		for (unsigned int port = 1; port <= ports_of(net, h); port++) {
			struct sim_dir *dir = &net->dirs[net->first[h] + port - 1];
			struct rt_end peer = rt_topo_peer(net->topo, h, port);

			dir->from = h;
			dir->to = peer.host;
			dir->back = net->first[peer.host] + peer.port - 1;
		}
	}
	return 0;
}

unsigned int sim_net_distance(const struct sim_net *net, unsigned int from, unsigned int to)
{
	return net->distance[(size_t)to * net->hosts + from];
}

/* Hops of all hosts to `to`, breadth first. */
static void distances_to(const struct sim_net *net, unsigned int to, uint16_t *queue)
{
	uint16_t *distance = net->distance + (size_t)to * net->hosts;
	unsigned int head = 0, tail = 0;

	for (unsigned int h = 0; h < net->hosts; h++)
		distance[h] = UNSEEN;
	distance[to] = 0;
	queue[tail++] = (uint16_t)to;
	while (head < tail) {
		unsigned int h = queue[head++];

		for (unsigned int d = net->first[h]; d < net->first[h + 1]; d++) {
			unsigned int peer = peer_of(net, d);

			if (distance[peer] != UNSEEN)
				continue;
			distance[peer] = (uint16_t)(distance[h] + 1);
			queue[tail++] = (uint16_t)peer;
		}
	}
}

static void pairs_count(struct sim_net *net)
{
	for (unsigned int to = 0; to < net->hosts; to++) {
		for (unsigned int from = 0; from < net->hosts; from++) {
			unsigned int hops = sim_net_distance(net, from, to);

			if (hops > net->diameter) {
				net->diameter = hops;
				net->centre_from = from;
			}
			net->pairs_at[hops]++;
			net->beyond += hops > RT_PATH_MAX;
		}
	}
}

static int distances_make(struct sim_net *net)
{
	uint16_t *queue = calloc(net->hosts, sizeof(*queue));

	net->distance = calloc((size_t)net->hosts * net->hosts, sizeof(*net->distance));
	net->pairs_at = calloc((size_t)net->hosts + 1, sizeof(*net->pairs_at));
	if (queue == NULL || net->distance == NULL || net->pairs_at == NULL) {
		free(queue);
		return -ENOMEM;
	}
	for (unsigned int to = 0; to < net->hosts; to++)
		distances_to(net, to, queue);
	free(queue);
	pairs_count(net);
	return 0;
}

/*
 * Two halves, by the number of the host; of a mesh or torus by the longer side,
 * which cuts the fewest links.
 */
static int halves_make(struct sim_net *net)
{
	unsigned int width = net->hosts, height = 1;

	net->half = calloc(net->hosts, sizeof(*net->half));
	if (net->half == NULL)
		return -ENOMEM;
	if (sscanf(rt_topo_spec(net->topo), "mesh:%ux%u", &width, &height) != 2 &&
	    sscanf(rt_topo_spec(net->topo), "torus:%ux%u", &width, &height) != 2) {
		width = net->hosts;
		height = 1;
	}
	for (unsigned int h = 0; h < net->hosts; h++)
		net->half[h] = width >= height ? h % width >= width / 2 : h / width >= height / 2;
	for (unsigned int d = 0; d < net->dir_count; d++)
		net->cut_links += !net->half[net->dirs[d].from] && net->half[net->dirs[d].to];
	return 0;
}

int sim_net_open(const struct sim_options *o, struct sim_net *net, char *why, size_t size)
{
	int err;

	memset(net, 0, sizeof(*net));
	net->hosts = o->hosts;
	err = rt_topo_parse(o->topology, o->hosts, &net->topo, why, size);
	if (err != 0)
		return err;
	err = dirs_make(net);
	if (err == 0)
		err = distances_make(net);
	if (err == 0)
		err = halves_make(net);
	if (err != 0) {
		snprintf(why, size, "%u hosts: %s", o->hosts, strerror(-err));
		sim_net_close(net);
	}
	return err;
}

void sim_net_close(struct sim_net *net)
{
	rt_topo_free(net->topo);
	free(net->first);
	free(net->dirs);
	free(net->duties);
	free(net->distance);
	free(net->pairs_at);
	free(net->half);
	memset(net, 0, sizeof(*net));
}

static void path_of_path(const struct sim_net *net, struct sim_flow *flow,
			 const struct rt_path *path)
{
	unsigned int host = flow->from;

	for (unsigned int i = 0; i < flow->hops; i++) {
		flow->path[i] = net->first[host] + path->port[i] - 1;
		host = peer_of(net, flow->path[i]);
	}
}

/* Beyond the product's longest path: a shortest path, each step chosen by the flow. */
static void path_beyond(const struct sim_net *net, struct sim_flow *flow)
{
	unsigned int host = flow->from;
	uint64_t state = flow->hash;

	for (unsigned int i = 0; i < flow->hops; i++) {
		unsigned int count = net->first[host + 1] - net->first[host], left = flow->hops - i;
		unsigned int turn = (unsigned int)(sim_random(&state) % count);
		unsigned int d = net->first[host] + turn;

		while (sim_net_distance(net, peer_of(net, d), flow->to) != left - 1) {
			turn = (turn + 1) % count;
			d = net->first[host] + turn;
		}
		flow->path[i] = d;
		host = peer_of(net, d);
	}
}

int sim_net_path(const struct sim_net *net, struct sim_flow *flow)
{
	struct rt_path path;
	int err;

	flow->hops = sim_net_distance(net, flow->from, flow->to);
	flow->path = calloc((size_t)flow->hops + 1, sizeof(*flow->path));
	if (flow->path == NULL)
		return -ENOMEM;
	if (flow->hops > RT_PATH_MAX) {
		path_beyond(net, flow);
		return 0;
	}
	err = rt_path_find(net->topo, NULL, flow->from, flow->to, flow->hash, &path);
	if (err == 0 && path.hops != flow->hops)
		err = -EPROTO; /* not a shortest path */
	if (err == 0)
		path_of_path(net, flow, &path);
	return err;
}
