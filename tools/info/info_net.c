/* SPDX-License-Identifier: BSD-2-Clause */
/* The network as an agent knows it: its topology, the links that are up, the relays. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "info.h"

/* The spec, put together from its pieces; the caller frees it. */
static int spec_get(struct cl_agent *agent, char **out)
{
	json_object *pieces = info_list(agent, W_LIST_TOPOLOGY);
	char *spec = calloc(1, RT_SPEC_MAX);
	size_t i, len = 0;
	const char *piece;

	for (i = 0; spec && i < json_object_array_length(pieces); i++) {
		piece = info_text(json_object_array_get_idx(pieces, i), "spec");
		if (len + strlen(piece) >= RT_SPEC_MAX)
			break;
		len += (size_t)snprintf(spec + len, RT_SPEC_MAX - len, "%s", piece);
	}
	json_object_put(pieces);
	*out = spec;
	return !spec ? -ENOMEM : len ? 0 : -EPROTO;
}

static void names_take(struct info_net *net, json_object *hosts)
{
	unsigned int i;

	for (i = 0; i < net->hosts; i++)
		snprintf(net->name[i], W_NAME_MAX, "%s",
			 info_text(json_object_array_get_idx(hosts, i), "name"));
}

static void links_take(struct info_net *net, json_object *links)
{
	json_object *o;
	unsigned int i;

	for (i = 0; i < net->hosts; i++) {
		o = json_object_array_get_idx(links, i);
		net->up[i] = (uint8_t)info_int(o, "up");
		net->bridges[i] = (uint8_t)info_int(o, "bridges");
		net->heard[i] = info_bool(o, "heard");
	}
}

static int lists_take(struct cl_agent *agent, struct info_net *net)
{
	json_object *hosts = info_list(agent, W_LIST_HOSTS), *links;
	int rc = -EPROTO;

	links = info_list(agent, W_LIST_LINKS);
	if (json_object_array_length(hosts) == net->hosts &&
	    json_object_array_length(links) == net->hosts) {
		names_take(net, hosts);
		links_take(net, links);
		rc = 0;
	}
	json_object_put(hosts);
	json_object_put(links);
	return rc;
}

static int net_alloc(struct info_net *net)
{
	net->name = calloc(net->hosts, sizeof(*net->name));
	net->up = calloc(net->hosts, sizeof(*net->up));
	net->bridges = calloc(net->hosts, sizeof(*net->bridges));
	net->heard = calloc(net->hosts, sizeof(*net->heard));
	return net->name && net->up && net->bridges && net->heard ? 0 : -ENOMEM;
}

int info_net_open(struct cl_agent *agent, struct info_net *out)
{
	struct info_net net = { .here = agent->welcome.host_id,
				.hosts = agent->welcome.host_count };
	char why[200] = "it does not tell its topology", *spec = NULL;
	int rc = spec_get(agent, &spec);

	if (!rc)
		rc = rt_topo_parse(spec, net.hosts, &net.topo, why, sizeof(why));
	if (!rc)
		rc = net_alloc(&net);
	if (!rc)
		rc = lists_take(agent, &net);
	free(spec);
	*out = net;
	if (!rc)
		return 0;
	fprintf(stderr, "vi_info: asking the agent of %s for the network: %s\n",
		agent->welcome.host_name, rc == -ENOMEM ? strerror(ENOMEM) : why);
	info_net_close(out);
	return rc;
}

void info_net_close(struct info_net *net)
{
	rt_topo_free(net->topo);
	free(net->name);
	free(net->up);
	free(net->bridges);
	free(net->heard);
	memset(net, 0, sizeof(*net));
}

static json_object *end_of(const struct info_net *net, unsigned int host, unsigned int port)
{
	json_object *o = json_object_new_object();

	info_put_text(o, "host", net->name[host]);
	json_object_object_add(o, "host_id", json_object_new_int((int)host));
	info_put_text(o, "port", rt_topo_port_name(net->topo, host, port));
	json_object_object_add(o, "up", json_object_new_boolean(net->up[host] >> port & 1));
	return o;
}

json_object *info_link(const struct info_net *net, unsigned int host, unsigned int port)
{
	json_object *o = json_object_new_object(), *ends = json_object_new_array();
	struct rt_end peer = rt_topo_peer(net->topo, host, port);

	json_object_array_add(ends, end_of(net, host, port));
	json_object_array_add(ends, end_of(net, peer.host, peer.port));
	json_object_object_add(o, "ends", ends);
	json_object_object_add(o, "up",
			       json_object_new_boolean(rt_link_up(net->topo, net->up, host, port)));
	json_object_object_add(o, "bridge",
			       json_object_new_boolean(net->bridges[host] >> port & 1));
	return o;
}

/* ---- topology ---- */

static json_object *links_of(const struct info_net *net)
{
	json_object *a = json_object_new_array();
	unsigned int host, port;

	for (host = 0; host < net->hosts; host++) {
		for (port = 1; port < rt_topo_ports(net->topo, host); port++) {
			if (rt_port_listens(net->topo, host, port))
				json_object_array_add(a, info_link(net, host, port));
		}
	}
	return a;
}

/* Line by line. */
static json_object *picture_of(const struct info_net *net)
{
	json_object *a = json_object_new_array();
	const char *names[RT_HOSTS_MAX], *line, *end;
	unsigned int i;
	char *text;
	int len;

	for (i = 0; i < net->hosts; i++)
		names[i] = net->name[i];
	len = rt_draw(net->topo, net->up, names, net->here, NULL, 0);
	text = len > 0 ? malloc((size_t)len + 1) : NULL;
	if (!text)
		return a;
	rt_draw(net->topo, net->up, names, net->here, text, (size_t)len + 1);
	for (line = text; *line; line = end + 1) {
		end = strchr(line, '\n');
		json_object_array_add(a, json_object_new_string_len(line, (int)(end - line)));
	}
	free(text);
	return a;
}

/* A host as this agent knows it. */
static json_object *host_of(const struct info_net *net, unsigned int id)
{
	unsigned int hops = rt_distance(net->topo, net->up, net->here, id);
	json_object *o = json_object_new_object();

	json_object_object_add(o, "id", json_object_new_int((int)id));
	info_put_text(o, "name", net->name[id]);
	json_object_object_add(o, "hops",
			       hops <= RT_PATH_MAX ? json_object_new_int((int)hops) : NULL);
	json_object_object_add(o, "heard", json_object_new_boolean(net->heard[id]));
	return o;
}

/* The values of its own agent, if that answers. */
static int ask_host(void *arg, struct cl_greeted *g)
{
	json_object *o = json_object_array_get_idx(arg, g->host);

	json_object_object_add(o, "answers", json_object_new_boolean(!g->rc));
	if (g->rc)
		info_put_text(o, "error", g->error);
	else
		json_object_object_add(o, "ports", info_ports(&g->agent));
	return 0;
}

static void put_shape(json_object *o, const struct info_net *net)
{
	const char *spec = rt_topo_spec(net->topo);

	json_object_object_add(o, "shape",
			       json_object_new_string_len(spec, (int)strcspn(spec, ":")));
	info_put_text(o, "spec", spec);
	info_put_text(o, "seen_from", net->name[net->here]);
}

/* The agent's one item about its transfer threads. */
static json_object *relay_of(struct cl_agent *agent)
{
	json_object *list = info_list(agent, W_LIST_RELAY), *one;

	one = json_object_get(json_object_array_get_idx(list, 0));
	json_object_put(list);
	return one;
}

json_object *info_topology(struct cl_agent *agent)
{
	json_object *o, *hosts = json_object_new_array();
	struct info_net net;
	unsigned int id;

	if (info_net_open(agent, &net)) {
		json_object_put(hosts);
		return NULL;
	}
	o = json_object_new_object();
	put_shape(o, &net);
	for (id = 0; id < net.hosts; id++)
		json_object_array_add(hosts, host_of(&net, id));
	cl_greet_all(agent->owner, agent->welcome.fabric, net.hosts, ask_host, hosts);
	json_object_object_add(o, "hosts", hosts);
	json_object_object_add(o, "links", links_of(&net));
	json_object_object_add(o, "relay", relay_of(agent));
	json_object_object_add(o, "picture", picture_of(&net));
	info_net_close(&net);
	return o;
}
