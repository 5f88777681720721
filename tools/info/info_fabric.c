/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "info.h"

const char *info_text(json_object *o, const char *key)
{
	const char *text = json_object_get_string(json_object_object_get(o, key));

	return text ? text : "";
}

int64_t info_int(json_object *o, const char *key)
{
	return json_object_get_int64(json_object_object_get(o, key));
}

bool info_bool(json_object *o, const char *key)
{
	return json_object_get_boolean(json_object_object_get(o, key));
}

json_object *info_array(json_object *o, const char *key)
{
	json_object *a = json_object_object_get(o, key);

	return json_object_is_type(a, json_type_array) ? a : NULL;
}

static void put_text(json_object *o, const char *key, const char *text)
{
	json_object_object_add(o, key, json_object_new_string(text));
}

static void put_host_addr(json_object *o, const uint8_t *a)
{
	char text[32];

	snprintf(text, sizeof(text), "%02x:%02x:%02x:%02x:%02x:%02x", a[0], a[1], a[2], a[3], a[4],
		 a[5]);
	put_text(o, "address", text);
}

json_object *info_fabric(const struct cl_agent *agent)
{
	const struct w_welcome *w = &agent->welcome;
	json_object *o = json_object_new_object();

	put_text(o, "name", w->fabric);
	json_object_object_add(o, "owner_uid", json_object_new_int64(agent->owner));
	put_text(o, "host", w->host_name);
	json_object_object_add(o, "host_id", json_object_new_int(w->host_id));
	json_object_object_add(o, "hosts", json_object_new_int(w->host_count));
	json_object_object_add(o, "protocol_version", json_object_new_int(w->hdr.version));
	json_object_object_add(o, "slots_per_vi", json_object_new_int64(w->slots));
	json_object_object_add(o, "ring_bytes_per_vi", json_object_new_int64(w->ring_bytes));
	return o;
}

json_object *info_list(struct cl_agent *agent, enum w_list_what what)
{
	json_object *a = json_object_new_array(), *item;
	char text[400];
	uint32_t i;
	int rc = 0;

	for (i = 0; !rc; i++) {
		rc = cl_list(agent, what, i, text);
		item = rc ? NULL : json_tokener_parse(text);
		if (item)
			json_object_array_add(a, item);
	}
	if (rc != -ENOENT)
		fprintf(stderr, "vi_info: asking the agent of %s: %s\n", agent->welcome.host_name,
			strerror(-rc));
	return a;
}

/* The host that a number in a list means, by name. */
static void name_host(struct cl_agent *agent, json_object *o, const char *key, const char *id_key)
{
	int64_t id = info_int(o, key);
	uint8_t addr[W_HOST_ADDR_LEN];
	struct w_name name;

	w_host_addr((uint16_t)id, addr);
	if (cl_addr_name(agent, addr, &name))
		return;
	put_text(o, key, name.name);
	json_object_object_add(o, id_key, json_object_new_int64(id));
}

static json_object *named_list(struct cl_agent *agent, enum w_list_what what, const char *key,
			       const char *id_key)
{
	json_object *a = info_list(agent, what);
	size_t i;

	for (i = 0; i < json_object_array_length(a); i++)
		name_host(agent, json_object_array_get_idx(a, i), key, id_key);
	return a;
}

json_object *info_ports(struct cl_agent *agent)
{
	return named_list(agent, W_LIST_PORTS, "peer", "peer_id");
}

json_object *info_aliases(struct cl_agent *agent)
{
	return named_list(agent, W_LIST_ALIASES, "host", "host_id");
}

static const char *path_name(uint32_t path)
{
	static const char *const names[] = { "none", "self", "neighbour", "relayed" };

	return path < 4 ? names[path] : "unknown";
}

/* 0 or -errno of the agent's answer. */
static int route_of(struct cl_agent *agent, uint16_t id, struct w_route *out)
{
	uint8_t addr[W_HOST_ADDR_LEN];

	w_host_addr(id, addr);
	return cl_route(agent, addr, out);
}

/* A reason is given for what cannot be reached. */
static void put_route(json_object *o, const struct w_route *r)
{
	put_host_addr(o, r->host_addr);
	json_object_object_add(o, "reachable", json_object_new_boolean(r->reachable));
	put_text(o, "path", path_name(r->path));
	json_object_object_add(o, "hops", json_object_new_int64(r->hops));
	put_text(o, "port", r->port_name);
	put_text(o, "reason", r->reachable ? "" : r->reason);
}

json_object *info_hosts(struct cl_agent *agent)
{
	json_object *hosts = info_list(agent, W_LIST_HOSTS), *o;
	struct w_route route;
	size_t i;

	for (i = 0; i < json_object_array_length(hosts); i++) {
		o = json_object_array_get_idx(hosts, i);
		if (!route_of(agent, (uint16_t)info_int(o, "id"), &route))
			put_route(o, &route);
	}
	return hosts;
}

/* ---- explain ---- */

/* Why the packets to the host of `r` do not leave by this port. */
static void reject_reason(json_object *port, const struct w_route *r, char *out, size_t size)
{
	const char *name = info_text(port, "name"), *peer = info_text(port, "peer");
	const char *link = info_text(port, "link");
	bool self = !strcmp(name, "self");

	if (r->path == 1)
		snprintf(out, size, "%s is this host itself: its processes are joined by self",
			 r->host);
	else if (self)
		snprintf(out, size, "joins the processes of this host only");
	else if (strcmp(link, "up"))
		snprintf(out, size, "leads to %s; its link is %s", peer, link);
	else if (strcmp(peer, r->host))
		snprintf(out, size, "leads to %s; %s", peer,
			 r->reachable ? "the chosen port is nearer" : r->reason);
	else
		snprintf(out, size, "%s", r->reachable ? "another port is chosen" : r->reason);
}

static json_object *judge_port(json_object *port, const struct w_route *r)
{
	bool chosen = r->reachable && !strcmp(info_text(port, "name"), r->port_name);
	json_object *o = json_object_new_object();
	char why[240];

	put_text(o, "port", info_text(port, "name"));
	json_object_object_add(o, "chosen", json_object_new_boolean(chosen));
	if (chosen)
		snprintf(why, sizeof(why), "%s", r->path == 1 ? "same host" : "shortest way");
	else
		reject_reason(port, r, why, sizeof(why));
	put_text(o, "reason", why);
	return o;
}

static json_object *explain_host(json_object *ports, const struct w_route *r)
{
	json_object *o = json_object_new_object(), *a = json_object_new_array();
	size_t i;

	put_text(o, "host", r->host);
	put_route(o, r);
	for (i = 0; i < json_object_array_length(ports); i++)
		json_object_array_add(a, judge_port(json_object_array_get_idx(ports, i), r));
	json_object_object_add(o, "candidates", a);
	return o;
}

static int explain_one(struct cl_agent *agent, json_object *ports, const char *host,
		       json_object *out)
{
	struct w_name name;
	struct w_route route;
	int rc = cl_name(agent, host, 0, &name);

	if (!rc)
		rc = cl_route(agent, name.host_addr, &route);
	if (!rc)
		json_object_array_add(out, explain_host(ports, &route));
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
	json_object *ports = info_ports(agent), *out = json_object_new_array();
	struct w_route route;
	uint16_t id;
	int rc = 0;

	if (host)
		rc = explain_one(agent, ports, host, out);
	for (id = 0; !host && id < agent->welcome.host_count; id++) {
		if (!route_of(agent, id, &route))
			json_object_array_add(out, explain_host(ports, &route));
	}
	json_object_put(ports);
	if (!rc)
		return out;
	json_object_put(out);
	return NULL;
}

/* ---- topology ---- */

static json_object *topology_host(const struct cl_agent *agent, uint16_t id)
{
	json_object *o = json_object_new_object();
	char error[CL_ERROR_MAX];
	struct cl_agent there;

	json_object_object_add(o, "id", json_object_new_int(id));
	if (cl_open_host(agent->owner, agent->welcome.fabric, id, W_KIND_TOOL, &there, error)) {
		json_object_object_add(o, "answers", json_object_new_boolean(0));
		put_text(o, "error", error);
		return o;
	}
	json_object_object_add(o, "answers", json_object_new_boolean(1));
	put_text(o, "name", there.welcome.host_name);
	json_object_object_add(o, "ports", info_ports(&there));
	cl_close(&there);
	return o;
}

json_object *info_topology(const struct cl_agent *agent)
{
	json_object *o = json_object_new_object(), *a = json_object_new_array();
	uint16_t id;

	put_text(o, "shape",
		 agent->welcome.host_count > 2	  ? "ring"
		 : agent->welcome.host_count == 2 ? "pair"
						  : "single host");
	for (id = 0; id < agent->welcome.host_count; id++)
		json_object_array_add(a, topology_host(agent, id));
	json_object_object_add(o, "hosts", a);
	return o;
}
