/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Answers to tools: lists of hosts, ports, processes, names and links, and the counters of a NIC.
 *
 * Lists are JSON texts with fixed keys.  Every name in them was checked by w_name_ok(), every
 * program name cleaned when it came: nothing needs escaping.
 */
#include "ag_listing.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ag_cfg.h"
#include "ag_client.h"
#include "ag_link.h"
#include "ag_list.h"
#include "ag_place.h"
#include "ag_state.h"
#include "port.h"
#include "port_model.h"
#include "rl_relay.h"
#include "rt_topo.h"
#include "w_ctl.h"

struct ag_client *ag_listing_nic(struct ag_agent *a, uint32_t i)
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

/*
 * Writes the aliases of a host as elements of a JSON array, without its brackets and without those that do not fit.
 * Returns the length.
 */
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

/*
 * The functions item_...(): each writes item i of its list into `text`.  0, or -ENOENT: there is no
 * such item.
 */

/* Host `i` of the fabric: its id, name, aliases and address.  0 or -ENOENT. */
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

#define PROFILE_MAX 80

/* The profile of a port that has a model, as members that follow others; else "". */
static void port_profile(const struct ag_link *l, char text[PROFILE_MAX])
{
	const struct port_model_profile *profile = port_model_profile(l->port);

	text[0] = '\0';
	if (l->index != 0 && profile != NULL)
		snprintf(text, PROFILE_MAX, ",\"profile\":\"%s\",\"dilation\":%u", profile->name,
			 port_model_dilation(l->port));
}

/* Port `i` of this host, 0 being self, with its link and its window.  0 or -ENOENT. */
static int item_port(struct ag_agent *a, uint32_t i, char *text, size_t size)
{
	const struct port_limits *p;
	char profile[PROFILE_MAX];
	struct ag_link *l;

	if (i >= a->link_count)
		return -ENOENT;
	l = &a->links[i];
	p = &l->port->limits;
	port_profile(l, profile);
	snprintf(text, size,
		 "{\"index\":%u,\"name\":\"%s\",\"kind\":\"%s\",\"link\":\"%s\",\"generation\":%u,"
		 "\"peer\":%u,\"window_bytes\":%" PRIu64 ",\"window_used\":%" PRIu64
		 ",\"db_bits\":%u,\"spads\":%u,\"conns\":%u,\"circuits\":%u%s}",
		 i, p->name, p->kind, ag_link_usable(l) ? "up" : "down", l->link_generation,
		 l->peer_host, p->window_bytes, l->window_used, p->db_bits, p->spads, l->conn_count,
		 l->circuit_count, profile);
	return 0;
}

/* The i-th process that has a NIC open; tools are left out.  0 or -ENOENT. */
static int item_client(struct ag_agent *a, uint32_t i, char *text, size_t size)
{
	struct ag_client *c = ag_listing_nic(a, i);

	if (c == NULL)
		return -ENOENT;
	snprintf(text, size,
		 "{\"id\":%u,\"pid\":%d,\"program\":\"%s\",\"conns\":%u,\"missed\":%" PRIu64 "}",
		 c->id, (int)c->pid, c->program, c->conn_count, c->missed);
	return 0;
}

/* Name `i` that was given to a host: first all aliases of hosts, then the names of devices.  0 or -ENOENT. */
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

#define SPEC_PIECE 380u /* characters of a spec in one item */

/* Piece `i` of the canonical text of the topology, SPEC_PIECE characters long but for the last.  0 or -ENOENT. */
static int item_topology(struct ag_agent *a, uint32_t i, char *text, size_t size)
{
	const char *spec = rt_topo_spec(a->topo);
	size_t len = strlen(spec);

	if (i > (len - 1) / SPEC_PIECE)
		return -ENOENT;
	snprintf(text, size, "{\"spec\":\"%.*s\"}", (int)SPEC_PIECE, spec + i * SPEC_PIECE);
	return 0;
}

/*
 * Writes the links of host `i`.  `up` has a bit for each port index, as that host announced; all of them for a host
 * never heard.  0, or -ENOENT: there is no such host.
 */
static int item_links(struct ag_agent *a, uint32_t i, char *text, size_t size)
{
	bool own = i == a->cfg.host_id;

	if (i >= a->cfg.host_count)
		return -ENOENT;
	snprintf(text, size, "{\"host\":%u,\"heard\":%s,\"up\":%u,\"bridges\":%u}", i,
		 own || a->up_serial[i] != 0 ? "true" : "false", a->up[i], a->bridges[i]);
	return 0;
}

/*
 * Writes the processors that the configuration names for relaying, with commas between them; empty if it names
 * none.
 */
static void cpu_list(const struct ag_agent *a, char *text, size_t size)
{
	size_t at = 0;
	uint32_t i;

	text[0] = '\0';
	for (i = 0; i < a->cfg.relay_cpu_count && at < size; i++)
		at += (size_t)snprintf(text + at, size - at, "%s%d", i > 0 ? "," : "",
				       a->cfg.relay_cpus[i]);
}

/*
 * Item 0: the transfer threads, if any, and the counters of relaying; then the lines of ag_place_item().  0 or
 * -ENOENT.
 */
static int item_relay(struct ag_agent *a, uint32_t i, char *text, size_t size)
{
	static const char *const waits[] = {
		[RL_ADAPTIVE] = "adaptive", [RL_POLL] = "poll", [RL_BLOCK] = "block"
	};
	struct rl_counters n = { 0 };
	char cpus[AG_RELAY_CPUS_MAX * 6];

	if (i > 0)
		return ag_place_item(a, i - 1, text, size);
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

void ag_listing_item(struct ag_client *c, const struct w_list *m)
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

/* ---- counters ---- */

/*
 * Notes that `tool` asked for the counters of a process.  A tool may ask many processes at once; for each
 * process only its latest question counts.  0 or -ENOMEM.
 */
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

void ag_listing_count(struct ag_client *c, const struct w_count *m)
{
	struct ag_client *nic = ag_listing_nic(c->agent, m->index);
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

/* Does `tool` wait for this answer of `nic`?  If so, not any more: each question has one answer. */
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

/* The agent fills in the sender, so that a process can answer only for itself. */
void ag_listing_counted(struct ag_client *c, const struct w_counted *m)
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
