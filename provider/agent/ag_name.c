/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of hosts and devices, routes, lists and administration.
 *
 * Lists are JSON texts of fixed keys.  Every name in them was checked by
 * w_name_ok(), every program name cleaned when it came: nothing needs escaping.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ag_priv.h"
#include "u_log.h"

static int alias_find(const struct ag_alias *table, uint32_t count, const char *name)
{
	uint32_t i;

	for (i = 0; i < count; i++) {
		if (strcmp(table[i].name, name) == 0)
			return (int)i;
	}
	return -ENOENT;
}

static int host_by_number(const struct ag_agent *a, const char *name)
{
	unsigned long n;
	char *end;

	if (name[0] < '0' || name[0] > '9')
		return -ENOENT;
	n = strtoul(name, &end, 10);
	return *end == '\0' && n < a->cfg.host_count ? (int)n : -ENOENT;
}

/* The host of a name, an alias or a number. */
static int host_by_name(const struct ag_agent *a, const char *name)
{
	uint32_t i;
	int at;

	for (i = 0; i < a->cfg.host_count; i++) {
		if (strcmp(a->names[i], name) == 0)
			return (int)i;
	}
	at = alias_find(a->aliases, a->alias_count, name);
	return at >= 0 ? (int)a->aliases[at].host : host_by_number(a, name);
}

/* Is it what this machine calls itself?  Of names with dots the client asks for the first part too. */
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

static int host_by_device(const struct ag_agent *a, const char *name)
{
	int at = alias_find(a->devices, a->device_count, name);

	return at >= 0 ? (int)a->devices[at].host : host_by_name(a, name);
}

/* ---- tables ---- */

static bool device_char_ok(const char *name)
{
	size_t i, n = strlen(name);

	for (i = 0; i < n; i++) {
		if (name[i] <= ' ' || name[i] > '~' || name[i] == '"' || name[i] == '\\' ||
		    name[i] == '=' || name[i] == ',')
			return false;
	}
	return n > 0 && n < W_NAME_MAX;
}

/* Adds or replaces. */
static int alias_set(struct ag_alias **table, uint32_t *count, const char *name, uint32_t host)
{
	struct ag_alias *bigger;
	int at = alias_find(*table, *count, name);

	if (at >= 0) {
		(*table)[at].host = host;
		return 0;
	}
	if (*count >= AG_ALIASES_MAX)
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
		if (host_by_name(a, cfg->host_names[i]) >= 0 &&
		    host_by_number(a, cfg->host_names[i]) < 0) {
			u_error("ag", "host name %s is given twice", cfg->host_names[i]);
			return -EINVAL;
		}
		snprintf(a->names[i], sizeof(a->names[i]), "%s", cfg->host_names[i]);
	}
	return 0;
}

int ag_names_init(struct ag_agent *a, const struct ag_cfg *cfg)
{
	uint32_t i;
	int rc = names_fill(a, cfg);

	for (i = 0; rc == 0 && i < cfg->alias_count; i++) {
		if (!w_name_ok(cfg->aliases[i].name) || cfg->aliases[i].host >= cfg->host_count)
			rc = -EINVAL;
		else
			rc = alias_set(&a->aliases, &a->alias_count, cfg->aliases[i].name,
				       cfg->aliases[i].host);
	}
	for (i = 0; rc == 0 && i < cfg->device_count; i++) {
		if (!device_char_ok(cfg->devices[i].name) ||
		    cfg->devices[i].host >= cfg->host_count)
			rc = -EINVAL;
		else
			rc = alias_set(&a->devices, &a->device_count, cfg->devices[i].name,
				       cfg->devices[i].host);
	}
	return rc;
}

void ag_names_free(struct ag_agent *a)
{
	free(a->names);
	free(a->aliases);
	free(a->devices);
}

/* ---- look-ups ---- */

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

/* A host has one address, so names have nothing at indices above 0. */
void ag_name_lookup(struct ag_client *c, const struct w_name *m)
{
	int host = -ENOENT;

	if (m->index == W_NAME_DEVICE)
		host = host_by_device(c->agent, m->name);
	else if (m->index == 0)
		host = host_by_name(c->agent, m->name);
	if (host < 0 && m->index == 0 && is_own_name(m->name))
		host = (int)c->agent->cfg.host_id;
	named(c, m, host);
}

void ag_name_reverse(struct ag_client *c, const struct w_name *m)
{
	named(c, m, ag_host_of(c->agent, m->host_addr, W_HOST_ADDR_LEN));
}

#define MORE_MAX 12u /* characters of ", 62 more" */

/* The relays of a path in their order, by whole names; those that do not fit are counted. */
static void relays_name(struct ag_agent *a, const struct rt_path *path, char *text, size_t size)
{
	size_t at = (size_t)snprintf(text, size, "relayed by");
	struct rt_end end;
	unsigned int i;

	for (i = 1; i < path->hops; i++) {
		rt_path_walk(a->topo, a->cfg.host_id, path, i, &end);
		if (at + strlen(a->names[end.host]) + 3 + MORE_MAX > size) {
			snprintf(text + at, size - at, ", %u more", path->hops - i);
			return;
		}
		at += (size_t)snprintf(text + at, size - at, "%s %s", i > 1 ? "," : "",
				       a->names[end.host]);
	}
}

static void route_fill(struct ag_agent *a, unsigned int host, struct w_route *r)
{
	struct rt_path path = { 0 };

	r->reachable = ag_route_find(a, host, 0, &path, r->reason, sizeof(r->reason)) == 0;
	/* Where there is no path now: the one there was, if all links were up. */
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

void ag_name_route(struct ag_client *c, const struct w_route *m)
{
	struct ag_agent *a = c->agent;
	int host = ag_host_of(a, m->host_addr, W_HOST_ADDR_LEN);
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

/* ---- lists ---- */

static size_t host_aliases(struct ag_agent *a, uint32_t host, char *text, size_t size)
{
	size_t at = 0;
	uint32_t i;

	text[0] = '\0';
	for (i = 0; i < a->alias_count; i++) {
		if (a->aliases[i].host != host || at + W_NAME_MAX + 8 > size)
			continue;
		at += (size_t)snprintf(text + at, size - at, "%s\"%s\"", at > 0 ? "," : "",
				       a->aliases[i].name);
	}
	return at;
}

static int item_host(struct ag_agent *a, uint32_t i, char *text, size_t size)
{
	char aliases[200];
	uint8_t h[W_HOST_ADDR_LEN];

	if (i >= a->cfg.host_count)
		return -ENOENT;
	w_host_addr((uint16_t)i, h);
	host_aliases(a, i, aliases, sizeof(aliases));
	snprintf(text, size,
		 "{\"id\":%u,\"name\":\"%s\",\"aliases\":[%s],"
		 "\"address\":\"%02x:%02x:%02x:%02x:%02x:%02x\"}",
		 i, a->names[i], aliases, h[0], h[1], h[2], h[3], h[4], h[5]);
	return 0;
}

static int item_port(struct ag_agent *a, uint32_t i, char *text, size_t size)
{
	const struct port_limits *p;
	struct ag_link *l;

	if (i >= a->link_count)
		return -ENOENT;
	l = &a->links[i];
	p = &l->port->limits;
	snprintf(text, size,
		 "{\"index\":%u,\"name\":\"%s\",\"kind\":\"%s\",\"link\":\"%s\",\"generation\":%u,"
		 "\"peer\":%u,\"window_bytes\":%" PRIu64 ",\"window_used\":%" PRIu64
		 ",\"db_bits\":%u,\"spads\":%u,\"conns\":%u,\"circuits\":%u}",
		 i, p->name, p->kind, ag_link_usable(l) ? "up" : "down", l->link_generation,
		 l->peer_host, p->window_bytes, l->window_used, p->db_bits, p->spads, l->conn_count,
		 l->circuit_count);
	return 0;
}

/* The i-th client that opened a NIC, or NULL. */
static struct ag_client *nic_client(struct ag_agent *a, uint32_t i)
{
	struct ag_list *pos, *tmp;
	struct ag_client *c;

	ag_list_each(pos, tmp, &a->clients)
	{
		c = ag_list_entry(pos, struct ag_client, node);
		if (c->kind == W_KIND_NIC && i-- == 0)
			return c;
	}
	return NULL;
}

static int item_client(struct ag_agent *a, uint32_t i, char *text, size_t size)
{
	struct ag_client *c = nic_client(a, i);

	if (c == NULL)
		return -ENOENT;
	snprintf(text, size,
		 "{\"id\":%u,\"pid\":%d,\"program\":\"%s\",\"conns\":%u,\"missed\":%" PRIu64 "}",
		 c->id, (int)c->pid, c->program, c->conn_count, c->missed);
	return 0;
}

static int item_alias(struct ag_agent *a, uint32_t i, char *text, size_t size)
{
	const struct ag_alias *alias;
	bool device = i >= a->alias_count;

	if (device)
		i -= a->alias_count;
	if (device && i >= a->device_count)
		return -ENOENT;
	alias = device ? &a->devices[i] : &a->aliases[i];
	snprintf(text, size, "{\"name\":\"%s\",\"kind\":\"%s\",\"host\":%u}", alias->name,
		 device ? "device" : "host", alias->host);
	return 0;
}

/* A tool may ask many processes at once; of one process, the latest question counts. */
static int note_question(struct ag_client *tool, const struct ag_client *nic, uint64_t token)
{
	struct ag_question *more;
	uint32_t n = nic->index + 1;

	if (n > tool->question_slots) {
		more = reallocarray(tool->questions, n, sizeof(*more));
		if (more == NULL)
			return -ENOMEM;
		memset(more + tool->question_slots, 0, (n - tool->question_slots) * sizeof(*more));
		tool->questions = more;
		tool->question_slots = n;
	}
	tool->questions[nic->index] = (struct ag_question){ .nic = nic->id, .token = token };
	return 0;
}

void ag_count(struct ag_client *c, const struct w_count *m)
{
	struct ag_client *nic = nic_client(c->agent, m->index);
	struct w_counted none = { .token = m->token };
	struct w_count ask = { .token = m->token, .client = c->id };

	if (nic == NULL || !ag_client_hears(nic) || note_question(c, nic, m->token) != 0) {
		w_ctl_init(&none, W_COUNTED, sizeof(none));
		ag_client_send(c, &none, NULL, 0);
		return;
	}
	w_ctl_init(&ask, W_COUNT, sizeof(ask));
	ag_client_send(nic, &ask, NULL, 0);
}

/* Does `tool` wait for this answer of `nic`?  Each question has one. */
static bool awaits_count(struct ag_client *tool, const struct ag_client *nic,
			 const struct w_counted *m)
{
	struct ag_question *q;

	if (tool->id != m->client || tool->kind != W_KIND_TOOL ||
	    nic->index >= tool->question_slots)
		return false;
	q = &tool->questions[nic->index];
	if (q->nic != nic->id || q->token != m->token)
		return false;
	q->nic = 0;
	return true;
}

/* Who answers is filled in here: a process speaks for itself alone. */
void ag_counted(struct ag_client *c, const struct w_counted *m)
{
	struct w_counted answer = *m;
	struct ag_list *pos, *tmp;
	struct ag_client *tool;

	answer.index = 1;
	answer.client = c->id;
	answer.pid = (uint32_t)c->pid;
	memcpy(answer.program, c->program, sizeof(answer.program));
	w_ctl_init(&answer, W_COUNTED, sizeof(answer));
	ag_list_each(pos, tmp, &c->agent->clients)
	{
		tool = ag_list_entry(pos, struct ag_client, node);
		if (awaits_count(tool, c, m)) {
			ag_client_send(tool, &answer, NULL, 0);
			return;
		}
	}
}

#define SPEC_PIECE 380u /* characters of a spec in one item */

static int item_topology(struct ag_agent *a, uint32_t i, char *text, size_t size)
{
	const char *spec = rt_topo_spec(a->topo);
	size_t len = strlen(spec);

	if (i > (len - 1) / SPEC_PIECE)
		return -ENOENT;
	snprintf(text, size, "{\"spec\":\"%.*s\"}", (int)SPEC_PIECE, spec + i * SPEC_PIECE);
	return 0;
}

/* `up` has a bit per port index, as that host says; of a host never heard all of them. */
static int item_links(struct ag_agent *a, uint32_t i, char *text, size_t size)
{
	bool own = i == a->cfg.host_id;

	if (i >= a->cfg.host_count)
		return -ENOENT;
	snprintf(text, size, "{\"host\":%u,\"heard\":%s,\"up\":%u,\"bridges\":%u}", i,
		 own || a->up_serial[i] != 0 ? "true" : "false", a->up[i], a->bridges[i]);
	return 0;
}

static void cpu_list(const struct ag_agent *a, char *text, size_t size)
{
	size_t at = 0;
	uint32_t i;

	text[0] = '\0';
	for (i = 0; i < a->cfg.relay_cpu_count && at < size; i++)
		at += (size_t)snprintf(text + at, size - at, "%s%d", i > 0 ? "," : "",
				       a->cfg.relay_cpus[i]);
}

static int item_relay(struct ag_agent *a, uint32_t i, char *text, size_t size)
{
	static const char *const waits[] = {
		[RL_ADAPTIVE] = "adaptive", [RL_POLL] = "poll", [RL_BLOCK] = "block"
	};
	struct rl_counters n = { 0 };
	char cpus[AG_RELAY_CPUS_MAX * 6];

	if (i > 0)
		return -ENOENT;
	if (a->relay != NULL)
		rl_counters(a->relay, &n);
	cpu_list(a, cpus, sizeof(cpus));
	snprintf(text, size,
		 "{\"threads\":%u,\"wait\":\"%s\",\"cpus\":[%s],\"circuits\":%u,"
		 "\"slots\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"sleeps\":%" PRIu64
		 ",\"rings\":%" PRIu64 ",\"broken\":%" PRIu64 ",\"dropped\":%" PRIu64
		 ",\"refused\":%" PRIu64 "}",
		 a->relay_threads, waits[a->cfg.relay_wait], cpus, a->circuit_count, n.slots,
		 n.bytes, n.sleeps, n.rings, n.broken, a->relay_dropped, a->relay_refused);
	return 0;
}

void ag_list_item(struct ag_client *c, const struct w_list *m)
{
	static int (*const items[])(struct ag_agent *, uint32_t, char *, size_t) = {
		[W_LIST_HOSTS] = item_host,	   [W_LIST_PORTS] = item_port,
		[W_LIST_CLIENTS] = item_client,	   [W_LIST_ALIASES] = item_alias,
		[W_LIST_TOPOLOGY] = item_topology, [W_LIST_LINKS] = item_links,
		[W_LIST_RELAY] = item_relay,
	};
	struct w_listed answer = { .token = m->token };

	answer.more = items[m->what](c->agent, m->index, answer.text, sizeof(answer.text)) == 0;
	w_ctl_init(&answer, W_LISTED, sizeof(answer));
	ag_client_send(c, &answer, NULL, 0);
}

/* ---- administration ---- */

static int admin_link(struct ag_agent *a, const char *name, bool up, char *text, size_t size)
{
	size_t at;
	uint32_t i;

	for (i = 1; i < a->link_count; i++) {
		if (strcmp(a->links[i].port->limits.name, name) == 0)
			return ag_link_admin(&a->links[i], up);
	}
	at = (size_t)snprintf(text, size, "host %u has no port %.32s with a link; it has",
			      a->cfg.host_id, name);
	for (i = 1; i < a->link_count && at < size; i++)
		at += (size_t)snprintf(text + at, size - at, "%s %s", i > 1 ? "," : "",
				       a->links[i].port->limits.name);
	if (a->link_count == 1)
		snprintf(text + at, size - at, " none");
	return -ENOENT;
}

static int admin_alias(struct ag_agent *a, const struct w_admin *m, char *text, size_t size)
{
	bool device = m->verb == W_ADMIN_DEVICE;
	char name[sizeof(m->name)];
	char *host;
	int id;

	memcpy(name, m->name, sizeof(name));
	host = strrchr(name, '=');
	if (host == NULL) {
		snprintf(text, size, "NAME=HOST expected, found %.80s", name);
		return -EINVAL;
	}
	*host++ = '\0';
	id = host_by_name(a, host);
	if (id < 0 || !(device ? device_char_ok(name) : w_name_ok(name))) {
		snprintf(text, size, "%.60s=%.60s: %s", name, host,
			 id < 0 ? "no such host in this fabric" : "not a possible name");
		return -EINVAL;
	}
	if (device)
		return alias_set(&a->devices, &a->device_count, name, (uint32_t)id);
	return alias_set(&a->aliases, &a->alias_count, name, (uint32_t)id);
}

/* The programs that have a NIC open; those that do not fit are counted. */
static void users_name(struct ag_agent *a, char *text, size_t size)
{
	size_t at = (size_t)snprintf(text, size, "fabric %.40s is in use by", a->fabric);
	struct ag_client *c;
	uint32_t i;

	for (i = 0; (c = nic_client(a, i)) != NULL; i++) {
		if (at + strlen(c->program) + 20 + MORE_MAX > size) {
			snprintf(text + at, size - at, ", %u more", a->nic_count - i);
			return;
		}
		at += (size_t)snprintf(text + at, size - at, "%s %s (pid %d)", i > 0 ? "," : "",
				       c->program, (int)c->pid);
	}
}

/* For whoever wants to bring up a fabric where there is one that nobody asked for. */
static int admin_leave(struct ag_agent *a, char *text, size_t size)
{
	if (!a->cfg.leave_when_idle) {
		snprintf(text, size,
			 "fabric %.40s is up already; vi_fabric down --name %.40s takes it down",
			 a->fabric, a->fabric);
		return -EBUSY;
	}
	if (a->nic_count > 0) {
		users_name(a, text, size);
		return -EBUSY;
	}
	ag_stop(a);
	return 0;
}

static int admin_do(struct ag_client *c, const struct w_admin *m, char *text, size_t size)
{
	struct ag_agent *a = c->agent;

	switch (m->verb) {
	case W_ADMIN_STOP:
		u_info("ag", "stopped by pid %d", (int)c->pid);
		ag_stop(a);
		return 0;
	case W_ADMIN_LEAVE:
		return admin_leave(a, text, size);
	case W_ADMIN_LINK_DOWN:
	case W_ADMIN_LINK_UP:
		return admin_link(a, m->name, m->verb == W_ADMIN_LINK_UP, text, size);
	default:
		return admin_alias(a, m, text, size);
	}
}

void ag_admin(struct ag_client *c, const struct w_admin *m)
{
	char text[160] = "";
	int rc;

	if (c->uid != 0 && c->uid != c->agent->cfg.owner) {
		ag_client_refuse(c, W_DONE, m->token, W_DENIED,
				 "only the owner of a fabric may change it");
		return;
	}
	rc = admin_do(c, m, text, sizeof(text));
	if (rc != 0 && text[0] == '\0')
		snprintf(text, sizeof(text), "%s", strerror(-rc));
	ag_client_refuse(c, W_DONE, m->token, rc == 0 ? W_SUCCESS : W_BAD_REQUEST,
			 rc == 0 ? NULL : text);
}
