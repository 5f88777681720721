/* SPDX-License-Identifier: BSD-2-Clause */
/* The answers of a fabric's agents, as JSON and as lines. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "fab.h"

#define SCHEMA "viaduct.fabric"
#define SCHEMA_VERSION 1 /* raised when a key changes its meaning or is removed */

struct json_object *fab_list(struct cl_agent *agent, enum w_list_what what)
{
	struct json_object *array = json_object_new_array(), *item;
	char text[400];
	uint32_t i;

	for (i = 0; cl_list(agent, what, i, text) == 0; i++) {
		item = json_tokener_parse(text);
		if (item != NULL)
			json_object_array_add(array, item);
	}
	return array;
}

const char *fab_text(struct json_object *o, const char *key)
{
	struct json_object *v;

	return json_object_object_get_ex(o, key, &v) ? json_object_get_string(v) : "-";
}

void fab_not_up(const struct fabric *f, char *error)
{
	snprintf(error, CL_ERROR_MAX,
		 "fabric %s is not up: no agent answers; start it with vi_fabric up --name %s",
		 f->name, f->name);
}

/* ---- collect ---- */

/* The answers, collected while the agents are asked. */
struct gathering {
	struct json_object *hosts[CL_HOSTS_MAX]; /* NULL: the host has no agent */
	struct json_object *names, *aliases;	 /* from the first agent that answered */
	unsigned int host_count;		 /* 0: none answered */
	char *error;
};

/* Gets the state of an agent's relay; NULL from an agent without this list. */
static struct json_object *relay_json(struct cl_agent *agent)
{
	char text[400];

	return cl_list(agent, W_LIST_RELAY, 0, text) == 0 ? json_tokener_parse(text) : NULL;
}

static struct json_object *host_json(unsigned int host, const char *agent, pid_t pid)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "id", json_object_new_int((int)host));
	json_object_object_add(o, "name", json_object_new_string("?"));
	json_object_object_add(o, "agent", json_object_new_string(agent));
	if (pid > 0)
		json_object_object_add(o, "pid", json_object_new_int(pid));
	return o;
}

/* Collects the answers of an agent, which may become silent between two of them. */
static struct json_object *answering_json(struct cl_greeted *g)
{
	struct json_object *o = host_json(g->host, "up", g->pid);

	json_object_object_add(o, "ports", fab_list(&g->agent, W_LIST_PORTS));
	json_object_object_add(o, "clients", fab_list(&g->agent, W_LIST_CLIENTS));
	json_object_object_add(o, "relay", relay_json(&g->agent));
	if (g->agent.silent)
		json_object_object_add(o, "agent", json_object_new_string("silent"));
	return o;
}

static void network_take(struct gathering *all, struct cl_agent *agent)
{
	struct json_object *names = fab_list(agent, W_LIST_HOSTS);
	struct json_object *aliases = fab_list(agent, W_LIST_ALIASES);

	if (!agent->silent && all->host_count == 0) {
		all->host_count = agent->welcome.host_count;
		all->names = json_object_get(names);
		all->aliases = json_object_get(aliases);
	}
	json_object_put(names);
	json_object_put(aliases);
}

static int gather(void *arg, struct cl_greeted *g)
{
	struct gathering *all = arg;

	if (g->rc == -ENODEV || g->rc == -EPIPE)
		return 0; /* there is no agent, or it is leaving */
	if (g->rc == 0) {
		all->hosts[g->host] = answering_json(g);
		if (all->host_count == 0)
			network_take(all, &g->agent);
		return 0;
	}
	if (all->error[0] == '\0')
		snprintf(all->error, CL_ERROR_MAX, "%s", g->error);
	all->hosts[g->host] =
		host_json(g->host, g->rc == -ETIMEDOUT ? "silent" : "refuses", g->pid);
	json_object_object_add(all->hosts[g->host], "error", json_object_new_string(g->error));
	return 0;
}

/* Makes a list of the hosts in their order, with their names; leaves out values that no agent reported. */
static struct json_object *hosts_json(struct gathering *all)
{
	struct json_object *hosts = json_object_new_array(), *o;
	const char *name;
	unsigned int host;

	for (host = 0; host < all->host_count; host++) {
		o = all->hosts[host];
		all->hosts[host] = NULL;
		if (o == NULL)
			o = host_json(host, "down", -1);
		name = fab_text(json_object_array_get_idx(all->names, host), "name");
		json_object_object_add(o, "name", json_object_new_string(name));
		json_object_array_add(hosts, o);
	}
	return hosts;
}

static struct json_object *whole_json(const struct fabric *f, struct gathering *all)
{
	struct json_object *root = json_object_new_object();

	json_object_object_add(root, "schema", json_object_new_string(SCHEMA));
	json_object_object_add(root, "schema_version", json_object_new_int(SCHEMA_VERSION));
	json_object_object_add(root, "fabric", json_object_new_string(f->name));
	json_object_object_add(root, "owner", json_object_new_int64(f->owner));
	json_object_object_add(root, "host_count", json_object_new_int((int)all->host_count));
	json_object_object_add(root, "hosts", hosts_json(all));
	json_object_object_add(root, "aliases", json_object_get(all->aliases));
	return root;
}

/* Writes an error that names the hosts whose agents are silent, if there are several. */
static void silent_error(struct gathering *all)
{
	char first[CL_ERROR_MAX], hosts[100] = "";
	unsigned int host, n = 0;
	size_t at = 0;

	for (host = 0; host < CL_HOSTS_MAX; host++) {
		if (all->hosts[host] == NULL ||
		    strcmp(fab_text(all->hosts[host], "agent"), "silent") != 0)
			continue;
		n++;
		if (at + 8 < sizeof(hosts))
			at += (size_t)snprintf(hosts + at, sizeof(hosts) - at, " %u", host);
	}
	if (n <= 1)
		return;
	snprintf(first, sizeof(first), "%s", all->error);
	snprintf(all->error, CL_ERROR_MAX, "hosts%s are silent: %.130s", hosts, first);
}

struct json_object *fab_status(const struct fabric *f, char *error)
{
	struct gathering all = { .error = error };
	struct json_object *root = NULL;
	unsigned int host;

	error[0] = '\0';
	cl_greet_all(f->owner, f->name, CL_HOSTS_MAX, gather, &all);
	if (all.host_count > 0)
		root = whole_json(f, &all);
	else if (error[0] != '\0')
		silent_error(&all);
	else
		fab_not_up(f, error);
	for (host = 0; host < CL_HOSTS_MAX; host++)
		json_object_put(all.hosts[host]);
	json_object_put(all.names);
	json_object_put(all.aliases);
	return root;
}

/* ---- print ---- */

static struct json_object *array_of(struct json_object *o, const char *key, size_t *count_out)
{
	struct json_object *v = NULL;

	json_object_object_get_ex(o, key, &v);
	*count_out = v != NULL ? json_object_array_length(v) : 0;
	return v;
}

/* Prints the transfer threads of a host; one with a single link has none. */
static void print_relay(struct json_object *host)
{
	struct json_object *relay = NULL;

	if (!json_object_object_get_ex(host, "relay", &relay) || relay == NULL ||
	    strcmp(fab_text(relay, "threads"), "0") == 0)
		return;
	printf("  relay threads %s circuits %s slots %s bytes %s dropped %s refused %s\n",
	       fab_text(relay, "threads"), fab_text(relay, "circuits"), fab_text(relay, "slots"),
	       fab_text(relay, "bytes"), fab_text(relay, "dropped"), fab_text(relay, "refused"));
}

/* Prints which adapter the model of a port imitates, as in the kind of ports; nothing for one without a model. */
static void print_profile(struct json_object *port)
{
	const char *dilation = fab_text(port, "dilation");

	if (!json_object_object_get_ex(port, "profile", NULL))
		return;
	printf(" profile %s", fab_text(port, "profile"));
	if (strcmp(dilation, "1") != 0)
		printf(":%s", dilation);
}

/* Prints a host.  Returns true if its agent answers and all its links are up. */
static bool print_host(struct json_object *host)
{
	struct json_object *ports, *port, *clients, *client;
	bool up = strcmp(fab_text(host, "agent"), "up") == 0;
	size_t i, n;

	printf("host %s %s: agent %s\n", fab_text(host, "id"), fab_text(host, "name"),
	       fab_text(host, "agent"));
	if (json_object_object_get_ex(host, "error", NULL))
		printf("  %s\n", fab_text(host, "error"));
	ports = array_of(host, "ports", &n);
	for (i = 0; i < n; i++) {
		port = json_object_array_get_idx(ports, i);
		up = up && strcmp(fab_text(port, "link"), "up") == 0;
		printf("  port %-6s %-12s link %-4s peer %-3s window %s of %s bytes used",
		       fab_text(port, "name"), fab_text(port, "kind"), fab_text(port, "link"),
		       fab_text(port, "peer"), fab_text(port, "window_used"),
		       fab_text(port, "window_bytes"));
		print_profile(port);
		putchar('\n');
	}
	clients = array_of(host, "clients", &n);
	for (i = 0; i < n; i++) {
		client = json_object_array_get_idx(clients, i);
		printf("  process %s %s: %s connections\n", fab_text(client, "pid"),
		       fab_text(client, "program"), fab_text(client, "conns"));
	}
	print_relay(host);
	return up;
}

static bool host_up(struct json_object *host)
{
	struct json_object *ports;
	bool up = strcmp(fab_text(host, "agent"), "up") == 0;
	size_t i, n;

	ports = array_of(host, "ports", &n);
	for (i = 0; i < n; i++)
		up = up && strcmp(fab_text(json_object_array_get_idx(ports, i), "link"), "up") == 0;
	return up;
}

bool fab_status_print(struct json_object *root, bool json)
{
	struct json_object *hosts;
	bool up = true;
	size_t i, n;

	hosts = array_of(root, "hosts", &n);
	if (json)
		puts(json_object_to_json_string_ext(root, JSON_C_TO_STRING_PRETTY));
	else
		printf("fabric %s: %zu host%s\n", fab_text(root, "fabric"), n, n == 1 ? "" : "s");
	for (i = 0; i < n; i++) {
		if (json)
			up = host_up(json_object_array_get_idx(hosts, i)) && up;
		else
			up = print_host(json_object_array_get_idx(hosts, i)) && up;
	}
	return up;
}
