/* SPDX-License-Identifier: BSD-2-Clause */
/* The shortest paths to a host, why there is none, and which losses connections to it survive. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "info.h"

#define PATHS_SHOWN 8u /* of those that are equally short */

/* Hops of each host to one target. */
struct search {
	const struct info_net *net;
	unsigned int hops[RT_HOSTS_MAX];
	uint64_t paths[RT_HOSTS_MAX];
};

/* Is the port on a shortest path from its host? */
static bool is_on_path(const struct search *s, unsigned int host, unsigned int port)
{
	struct rt_end peer = rt_topo_peer(s->net->topo, host, port);

	return rt_link_up(s->net->topo, s->net->up, host, port) && s->hops[host] <= RT_PATH_MAX &&
	       s->hops[peer.host] + 1 == s->hops[host];
}

static void paths_count_from(struct search *s, unsigned int host)
{
	unsigned int port;

	for (port = 1; port < rt_topo_ports(s->net->topo, host); port++) {
		if (is_on_path(s, host, port))
			s->paths[host] += s->paths[rt_topo_peer(s->net->topo, host, port).host];
	}
}

/* Hosts in the order of their distance: paths of those that are nearer are known. */
static void search_init(struct search *s, const struct info_net *net, unsigned int to)
{
	unsigned int host, hops;

	s->net = net;
	for (host = 0; host < net->hosts; host++) {
		s->hops[host] = rt_distance(net->topo, net->up, host, to);
		s->paths[host] = host == to;
	}
	for (hops = 1; hops <= RT_PATH_MAX; hops++) {
		for (host = 0; host < net->hosts; host++) {
			if (s->hops[host] == hops)
				paths_count_from(s, host);
		}
	}
}

static json_object *path_json(const struct info_net *net, const struct rt_path *path)
{
	json_object *a = json_object_new_array(), *o;
	struct rt_end at, next;
	unsigned int i;

	for (i = 0; i < path->hops; i++) {
		rt_path_walk(net->topo, net->here, path, i, &at);
		next = rt_topo_peer(net->topo, at.host, path->port[i]);
		o = json_object_new_object();
		info_put_text(o, "host", net->name[at.host]);
		info_put_text(o, "out", rt_topo_port_name(net->topo, at.host, path->port[i]));
		info_put_text(o, "in", rt_topo_port_name(net->topo, next.host, next.port));
		info_put_text(o, "to", net->name[next.host]);
		json_object_array_add(a, o);
	}
	return a;
}

/* Extends `path`, which leads to `host`; adds up to PATHS_SHOWN paths, by ascending ports. */
static void paths_add(const struct search *s, unsigned int host, struct rt_path *path,
		      json_object *out)
{
	unsigned int port;

	if (s->hops[host] == 0 && json_object_array_length(out) < PATHS_SHOWN)
		json_object_array_add(out, path_json(s->net, path));
	for (port = 1; port < rt_topo_ports(s->net->topo, host); port++) {
		if (json_object_array_length(out) == PATHS_SHOWN || !is_on_path(s, host, port))
			continue;
		path->port[path->hops++] = (uint8_t)port;
		paths_add(s, rt_topo_peer(s->net->topo, host, port).host, path, out);
		path->hops--;
	}
}

/* ---- losses that reliable connections survive ---- */

/* Does the loss of the link leave no path to `to`, with the links that are up now? */
static bool stands_alone(const struct info_net *net, struct rt_end end, unsigned int to)
{
	bool alone;

	net->up[end.host] &= (uint8_t) ~(1u << end.port);
	alone = rt_distance(net->topo, net->up, net->here, to) > RT_PATH_MAX;
	net->up[end.host] |= (uint8_t)(1u << end.port);
	return alone;
}

/*
 * Links of the path without a replacement: bridges of the topology, or of the links that are up.
 * All paths to one host have the same ones.
 */
static json_object *alone_links(const struct info_net *net, const struct rt_path *path,
				unsigned int to, bool bridges)
{
	json_object *a = json_object_new_array();
	struct rt_end end;
	unsigned int i;
	bool alone;

	for (i = 0; i < path->hops; i++) {
		rt_path_walk(net->topo, net->here, path, i, &end);
		end.port = path->port[i];
		alone = bridges ? net->bridges[end.host] >> end.port & 1
				: stands_alone(net, end, to);
		if (alone)
			json_object_array_add(a, info_link(net, end.host, end.port));
	}
	return a;
}

static void put_outlives(json_object *o, const struct info_net *net, unsigned int to)
{
	struct rt_path path = { 0 };
	json_object *alone;
	const char *outlives = "yes";

	if (rt_path_find(net->topo, net->up, net->here, to, 0, &path))
		return;
	alone = alone_links(net, &path, to, true);
	if (json_object_array_length(alone)) {
		outlives = "no";
	} else {
		json_object_put(alone);
		alone = alone_links(net, &path, to, false);
		if (json_object_array_length(alone))
			outlives = "not now";
	}
	info_put_text(o, "outlives_link_loss", outlives);
	json_object_object_add(o, "alone", alone);
}

/* ---- ports ---- */

/* Why packets to the host of `r` do, or do not, leave by this port. */
static void judge(const struct search *s, unsigned int port, const struct w_route *r, char *out,
		  size_t size)
{
	const struct info_net *net = s->net;
	unsigned int here = net->here;
	struct rt_end peer = rt_topo_peer(net->topo, here, port);

	if (r->path == 1)
		snprintf(out, size, "%s",
			 port == RT_PORT_SELF ? "same host"
					      : "the host itself: self joins its processes");
	else if (port == RT_PORT_SELF)
		snprintf(out, size, "joins the processes of this host only");
	else if (is_on_path(s, here, port))
		snprintf(out, size, "%s",
			 s->paths[here] == s->paths[peer.host] ? "shortest path"
							       : "one of equally short paths");
	else if (!rt_link_up(net->topo, net->up, here, port))
		snprintf(out, size, "leads to %s; its link is down", net->name[peer.host]);
	else if (r->reachable)
		snprintf(out, size, "leads to %s, which is no nearer", net->name[peer.host]);
	else
		snprintf(out, size, "leads to %s; %s", net->name[peer.host], r->reason);
}

static json_object *candidates(const struct search *s, const struct w_route *r)
{
	json_object *a = json_object_new_array(), *o;
	unsigned int port, here = s->net->here;
	char why[240];
	bool chosen;

	for (port = 0; port < rt_topo_ports(s->net->topo, here); port++) {
		chosen = r->path == 1 ? port == RT_PORT_SELF
				      : port != RT_PORT_SELF && is_on_path(s, here, port);
		o = json_object_new_object();
		info_put_text(o, "port", rt_topo_port_name(s->net->topo, here, port));
		json_object_object_add(o, "chosen", json_object_new_boolean(chosen));
		judge(s, port, r, why, sizeof(why));
		info_put_text(o, "reason", why);
		json_object_array_add(a, o);
	}
	return a;
}

/* ---- hosts ---- */

static json_object *explain_host(const struct info_net *net, unsigned int id,
				 const struct w_route *r)
{
	json_object *o = json_object_new_object(), *paths = json_object_new_array();
	struct rt_path path = { 0 };
	struct search s;

	search_init(&s, net, id);
	info_put_text(o, "host", r->host);
	info_put_route(o, r);
	if (s.hops[net->here] > 0 && s.hops[net->here] <= RT_PATH_MAX)
		paths_add(&s, net->here, &path, paths);
	json_object_object_add(o, "way_count", json_object_new_uint64(s.paths[net->here]));
	json_object_object_add(o, "ways", paths);
	put_outlives(o, net, id);
	json_object_object_add(o, "candidates", candidates(&s, r));
	return o;
}

static int explain_one(struct cl_agent *agent, const struct info_net *net, const char *host,
		       json_object *out)
{
	struct w_name name;
	struct w_route route;
	unsigned int id = 0;
	int rc = cl_name(agent, host, 0, &name);

	if (!rc)
		id = (unsigned int)name.host_addr[4] << 8 | name.host_addr[5];
	if (!rc)
		rc = id < net->hosts ? cl_route(agent, name.host_addr, &route) : -EPROTO;
	if (!rc)
		json_object_array_add(out, explain_host(net, id, &route));
	else if (rc == -ENOENT)
		fprintf(stderr, "vi_info: no host '%s' in fabric %s; vi_info -l lists them\n", host,
			agent->welcome.fabric);
	else
		fprintf(stderr, "vi_info: asking the agent of %s: %s\n", agent->welcome.host_name,
			strerror(-rc));
	return rc;
}

json_object *info_explain(struct cl_agent *agent, const char *host)
{
	json_object *out;
	struct info_net net;
	struct w_route route;
	uint16_t id;
	int rc = 0;

	if (info_net_open(agent, &net))
		return NULL;
	out = json_object_new_array();
	if (host)
		rc = explain_one(agent, &net, host, out);
	for (id = 0; !host && id < net.hosts; id++) {
		if (!info_route(agent, id, &route))
			json_object_array_add(out, explain_host(&net, id, &route));
	}
	info_net_close(&net);
	if (!rc)
		return out;
	json_object_put(out);
	return NULL;
}
