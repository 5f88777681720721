/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of hosts and devices, and the questions of processes about names and routes. */
#include "ag_name.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ag_addr.h"
#include "ag_cfg.h"
#include "ag_client.h"
#include "ag_link.h"
#include "ag_route.h"
#include "ag_state.h"
#include "rt_topo.h"
#include "u_log.h"
#include "w_addr.h"
#include "w_ctl.h"

#define ALIASES_MAX 1024u

/* Returns the index of the entry of that name, or -ENOENT. */
static int alias_find(const struct ag_alias *table, uint32_t count, const char *name)
{
	uint32_t i;

	for (i = 0; i < count; i++) {
		if (strcmp(table[i].name, name) == 0)
			return (int)i;
	}
	return -ENOENT;
}

/* Returns the host whose id the name is in decimal, or -ENOENT. */
static int host_by_number(const struct ag_agent *a, const char *name)
{
	unsigned long n;
	char *end;

	if (name[0] < '0' || name[0] > '9')
		return -ENOENT;
	n = strtoul(name, &end, 10);
	return *end == '\0' && n < a->cfg.host_count ? (int)n : -ENOENT;
}

/* Returns the host whose own name this is, or -ENOENT. */
static int host_by_name(const struct ag_agent *a, const char *name)
{
	uint32_t i;

	for (i = 0; i < a->cfg.host_count; i++) {
		if (strcmp(a->names[i], name) == 0)
			return (int)i;
	}
	return -ENOENT;
}

/* Returns the host with that name, alias or number. */
int ag_name_host(const struct ag_agent *a, const char *name)
{
	int at = host_by_name(a, name);

	if (at >= 0)
		return at;
	at = alias_find(a->aliases, a->alias_count, name);
	return at >= 0 ? (int)a->aliases[at].host : host_by_number(a, name);
}

/*
 * Is it a name of this machine: localhost, or the kernel's host name up to its first dot?  For a name with
 * dots, the client also asks for its first part.
 */
static bool is_own_name(const char *name)
{
	char own[W_NAME_MAX + 1];

	if (strcmp(name, "localhost") == 0)
		return true;
	if (name[0] == '\0' || gethostname(own, sizeof(own)) != 0)
		return false;
	own[sizeof(own) - 1] = '\0';
	own[strcspn(own, ".")] = '\0';
	return strcmp(name, own) == 0;
}

/* Returns the host of the device of that name, else as ag_name_host() does; or -ENOENT. */
static int host_by_device(const struct ag_agent *a, const char *name)
{
	int at = alias_find(a->devices, a->device_count, name);

	return at >= 0 ? (int)a->devices[at].host : ag_name_host(a, name);
}

/* ---- tables ---- */

bool ag_name_device_ok(const char *name)
{
	size_t i, n = strlen(name);

	for (i = 0; i < n; i++) {
		if (name[i] <= ' ' || name[i] > '~' || name[i] == '"' || name[i] == '\\' ||
		    name[i] == '=' || name[i] == ',')
			return false;
	}
	return n > 0 && n < W_NAME_MAX;
}

/* Adds an alias, or replaces the one of that name. */
int ag_name_set_alias(struct ag_alias **table, uint32_t *count, const char *name, uint32_t host)
{
	struct ag_alias *bigger;
	int at = alias_find(*table, *count, name);

	if (at >= 0) {
		(*table)[at].host = host;
		return 0;
	}
	if (*count >= ALIASES_MAX)
		return -ENOSPC;
	bigger = realloc(*table, (*count + 1) * sizeof(*bigger));
	if (bigger == NULL)
		return -ENOMEM;
	memset(&bigger[*count], 0, sizeof(*bigger));
	snprintf(bigger[*count].name, sizeof(bigger->name), "%s", name);
	bigger[*count].host = host;
	*table = bigger;
	(*count)++;
	return 0;
}

/*
 * Takes over the names of the hosts only: host0, host1 ... if the configuration has none.  Returns 0, -ENOMEM, or
 * -EINVAL after a log line, if a name is not valid or is given twice.
 */
static int names_fill(struct ag_agent *a, const struct ag_cfg *cfg)
{
	uint32_t i;

	a->names = calloc(cfg->host_count, sizeof(*a->names));
	if (a->names == NULL)
		return -ENOMEM;
	for (i = 0; i < cfg->host_count; i++) {
		if (cfg->host_names == NULL) {
			snprintf(a->names[i], sizeof(a->names[i]), "host%u", i);
			continue;
		}
		if (!w_name_ok(cfg->host_names[i])) {
			u_error("ag",
				"name %s of host %u: 1..63 characters of [A-Za-z0-9._-] "
				"expected",
				cfg->host_names[i], i);
			return -EINVAL;
		}
		if (host_by_name(a, cfg->host_names[i]) >= 0) {
			u_error("ag", "host name %s is given twice", cfg->host_names[i]);
			return -EINVAL;
		}
		snprintf(a->names[i], sizeof(a->names[i]), "%s", cfg->host_names[i]);
	}
	return 0;
}

int ag_name_init(struct ag_agent *a, const struct ag_cfg *cfg)
{
	uint32_t i;
	int rc = names_fill(a, cfg);

	for (i = 0; rc == 0 && i < cfg->alias_count; i++) {
		if (!w_name_ok(cfg->aliases[i].name) || cfg->aliases[i].host >= cfg->host_count)
			rc = -EINVAL;
		else
			rc = ag_name_set_alias(&a->aliases, &a->alias_count, cfg->aliases[i].name,
					       cfg->aliases[i].host);
	}
	for (i = 0; rc == 0 && i < cfg->device_count; i++) {
		if (!ag_name_device_ok(cfg->devices[i].name) ||
		    cfg->devices[i].host >= cfg->host_count)
			rc = -EINVAL;
		else
			rc = ag_name_set_alias(&a->devices, &a->device_count, cfg->devices[i].name,
					       cfg->devices[i].host);
	}
	return rc;
}

void ag_name_free(struct ag_agent *a)
{
	free(a->names);
	free(a->aliases);
	free(a->devices);
}

/* ---- look-ups ---- */

/* Answers a question about a name or an address: NAMED with the host, or unknown if `host` < 0. */
static void named(struct ag_client *c, const struct w_name *m, int host)
{
	struct w_name answer = { .token = m->token, .index = m->index };

	if (host < 0) {
		answer.status = W_UNKNOWN_NAME;
		memcpy(answer.name, m->name, sizeof(answer.name));
	} else {
		w_host_addr((uint16_t)host, answer.host_addr);
		memcpy(answer.name, c->agent->names[host], sizeof(answer.name));
	}
	w_ctl_init(&answer, W_NAMED, sizeof(answer));
	ag_client_send(c, &answer, NULL, 0);
}

/*
 * Answers NAMED with the host of that name; with index W_NAME_DEVICE with that of the device or else host of
 * that name.  With index 0 names of this machine count, too.  A host has one address, so at other indices
 * nothing is known.
 */
void ag_name_lookup(struct ag_client *c, const struct w_name *m)
{
	int host = -ENOENT;

	if (m->index == W_NAME_DEVICE)
		host = host_by_device(c->agent, m->name);
	else if (m->index == 0)
		host = ag_name_host(c->agent, m->name);
	if (host < 0 && m->index == 0 && is_own_name(m->name))
		host = (int)c->agent->cfg.host_id;
	named(c, m, host);
}

/* Answers with the host of that address and its name. */
void ag_name_reverse(struct ag_client *c, const struct w_name *m)
{
	named(c, m, ag_addr_host(c->agent, m->host_addr, W_HOST_ADDR_LEN));
}

/*
 * Writes "relayed by" and the full names of a path's relays in their order, with ", N more" for those that do not fit.
 * The path has two links or more.
 */
static void relays_name(struct ag_agent *a, const struct rt_path *path, char *text, size_t size)
{
	size_t at = (size_t)snprintf(text, size, "relayed by");
	struct rt_end end;
	unsigned int i;

	for (i = 1; i < path->hops; i++) {
		rt_path_walk(a->topo, a->cfg.host_id, path, i, &end);
		if (at + strlen(a->names[end.host]) + 3 + AG_NAME_MORE_MAX > size) {
			snprintf(text + at, size - at, ", %u more", path->hops - i);
			return;
		}
		at += (size_t)snprintf(text + at, size - at, "%s %s", i > 1 ? "," : "",
				       a->names[end.host]);
	}
}

/* Fills in the answer about the path to a host of the fabric, all but its token and address. */
static void route_fill(struct ag_agent *a, unsigned int host, struct w_route *r)
{
	struct rt_path path = { 0 };

	r->reachable = ag_route_find(a, host, 0, &path, r->reason, sizeof(r->reason)) == 0;
	/* If there is no path now, names the one that there would be if all links were up. */
	if (!r->reachable)
		rt_path_find(a->topo, NULL, a->cfg.host_id, host, 0, &path);
	r->hops = path.hops;
	r->path = rt_kind_of(path.hops);
	r->port = path.hops == 0 ? 0 : path.port[0];
	memcpy(r->host, a->names[host], sizeof(r->host));
	memcpy(r->port_name, a->links[r->port].port->limits.name, sizeof(r->port_name));
	if (!r->reachable)
		return;
	if (path.hops <= 1)
		snprintf(r->reason, sizeof(r->reason), "%s",
			 path.hops == 0 ? "the host itself" : "a neighbour");
	else
		relays_name(a, &path, r->reason, sizeof(r->reason));
}

/*
 * Answers with the path to that host: the number of its links, its first port and its relays.  If there is none
 * now: why, and the path that there would be if all links were up.  An address of no host is answered as not
 * reachable.
 */
void ag_name_route(struct ag_client *c, const struct w_route *m)
{
	struct ag_agent *a = c->agent;
	int host = ag_addr_host(a, m->host_addr, W_HOST_ADDR_LEN);
	struct w_route answer = { .token = m->token };

	memcpy(answer.host_addr, m->host_addr, sizeof(answer.host_addr));
	if (host >= 0)
		route_fill(a, (unsigned int)host, &answer);
	else
		snprintf(answer.reason, sizeof(answer.reason),
			 "the address names no host of this fabric");
	w_ctl_init(&answer, W_ROUTED, sizeof(answer));
	ag_client_send(c, &answer, NULL, 0);
}
