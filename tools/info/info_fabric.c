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

void info_put_text(json_object *o, const char *key, const char *text)
{
	json_object_object_add(o, key, json_object_new_string(text));
}

static void put_host_addr(json_object *o, const uint8_t *a)
{
	char text[32];

	snprintf(text, sizeof(text), "%02x:%02x:%02x:%02x:%02x:%02x", a[0], a[1], a[2], a[3], a[4],
		 a[5]);
	info_put_text(o, "address", text);
}

json_object *info_fabric(const struct cl_agent *agent)
{
	const struct w_welcome *w = &agent->welcome;
	json_object *o = json_object_new_object();

	info_put_text(o, "name", w->fabric);
	json_object_object_add(o, "owner_uid", json_object_new_int64(agent->owner));
	info_put_text(o, "host", w->host_name);
	json_object_object_add(o, "host_id", json_object_new_int(w->host_id));
	json_object_object_add(o, "hosts", json_object_new_int(w->host_count));
	json_object_object_add(o, "protocol_version", json_object_new_int(w->hdr.version));
	json_object_object_add(o, "slots_per_vi", json_object_new_int64(w->slots));
	json_object_object_add(o, "ring_bytes_per_vi", json_object_new_int64(w->payload_bytes));
	return o;
}

json_object *info_list(struct cl_agent *agent, enum w_list_what what)
{
	json_object *a = json_object_new_array(), *item;
	char text[400];
	bool told = agent->silent;
	uint32_t i;
	int rc = 0;

	for (i = 0; !rc; i++) {
		rc = cl_list(agent, what, i, text);
		item = rc ? NULL : json_tokener_parse(text);
		if (item)
			json_object_array_add(a, item);
	}
	if (rc != -ENOENT && !told)
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
	info_put_text(o, key, name.name);
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

int info_route(struct cl_agent *agent, uint16_t id, struct w_route *out)
{
	uint8_t addr[W_HOST_ADDR_LEN];

	w_host_addr(id, addr);
	return cl_route(agent, addr, out);
}

void info_put_route(json_object *o, const struct w_route *r)
{
	put_host_addr(o, r->host_addr);
	json_object_object_add(o, "reachable", json_object_new_boolean(r->reachable));
	info_put_text(o, "path", path_name(r->path));
	json_object_object_add(o, "hops", json_object_new_int64(r->hops));
	info_put_text(o, "port", r->port_name);
	info_put_text(o, "reason", r->reachable ? "" : r->reason);
}

json_object *info_hosts(struct cl_agent *agent)
{
	json_object *hosts = info_list(agent, W_LIST_HOSTS), *o;
	struct w_route route;
	size_t i;

	for (i = 0; i < json_object_array_length(hosts); i++) {
		o = json_object_array_get_idx(hosts, i);
		if (!info_route(agent, (uint16_t)info_int(o, "id"), &route))
			info_put_route(o, &route);
	}
	return hosts;
}

static int greet_host(void *arg, struct cl_greeted *g)
{
	json_object *o = json_object_array_get_idx(arg, g->host);

	if (!o)
		return 0;
	json_object_object_add(o, "answers", json_object_new_boolean(!g->rc));
	if (g->rc)
		info_put_text(o, "error", g->error);
	return 0;
}

void info_greet_hosts(const struct cl_agent *agent, json_object *hosts)
{
	cl_greet_all(agent->owner, agent->welcome.fabric,
		     (unsigned int)json_object_array_length(hosts), greet_host, hosts);
}
