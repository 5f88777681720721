/* SPDX-License-Identifier: BSD-2-Clause */
/* The processors that a program which starts here would get, and those that the agent's threads have. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "info.h"
#include "u_affinity.h"
#include "u_cfg.h"
#include "u_place_pair.h"

#define POLLERS_MOST 64 /* of vi_run */
#define OWN_MOST (2 + POLLERS_MOST)

static void put_count(json_object *o, const char *key, const struct u_topo *topo,
		      enum u_topo_part part)
{
	struct u_cpuset all = { { 0 } };

	u_topo_all(topo, &all);
	json_object_object_add(o, key, json_object_new_int(u_topo_spread(topo, &all, part)));
}

/* The number, or null for a cache that is not known. */
static json_object *number(int n)
{
	return n == U_TOPO_NONE ? NULL : json_object_new_int(n);
}

static json_object *processor(const struct u_topo_cpu *cpu)
{
	json_object *o = json_object_new_object();

	json_object_object_add(o, "cpu", json_object_new_int(cpu->os));
	json_object_object_add(o, "core", json_object_new_int(cpu->core));
	json_object_object_add(o, "cache", number(cpu->cache));
	json_object_object_add(o, "cache_level", number(cpu->cache < 0 ? -1 : cpu->cache_level));
	json_object_object_add(o, "package", json_object_new_int(cpu->package));
	json_object_object_add(o, "node", number(cpu->node));
	return o;
}

static json_object *machine(const struct u_topo *topo)
{
	json_object *o = json_object_new_object(), *all = json_object_new_array();
	struct u_cpuset cpus = { { 0 } };

	u_topo_all(topo, &cpus);
	json_object_object_add(o, "processors", json_object_new_int(topo->count));
	put_count(o, "cores", topo, U_TOPO_CORE);
	if (u_topo_caches_known(topo, &cpus))
		put_count(o, "caches", topo, U_TOPO_CACHE);
	put_count(o, "packages", topo, U_TOPO_PACKAGE);
	put_count(o, "nodes", topo, U_TOPO_NODE);
	for (int i = 0; i < topo->count; i++)
		json_object_array_add(all, processor(&topo->cpus[i]));
	json_object_object_add(o, "where", all);
	return o;
}

static json_object *thread(const char *name, bool met, const char *cpus, const char *text,
			   const char *warning)
{
	json_object *o = json_object_new_object();

	info_put_text(o, "thread", name);
	json_object_object_add(o, "as_asked", json_object_new_boolean(met));
	info_put_text(o, "cpus", cpus);
	info_put_text(o, "text", text);
	info_put_text(o, "warning", warning);
	return o;
}

/* The pollers that `vi_run --service poller:N` has asked for in this environment; 0: none. */
static unsigned int pollers_asked(void)
{
	const char *text = secure_getenv("VIADUCT_SOCK_SERVICE");
	unsigned int n;
	char more;

	if (!text || sscanf(text, "poller:%2u%c", &n, &more) != 1 || n > POLLERS_MOST)
		return 0;
	return n;
}

/* Writes the service threads to asks[0] on; how many: pollers, or one where there is a rule for such threads alone. */
static unsigned int service_asks(const struct u_affinity *a, struct u_place_ask *asks)
{
	unsigned int i, pollers = pollers_asked(), n = pollers;

	if (n == 0 && a->rules.of[U_PLACE_SERVICE].where != U_PLACE_NONE)
		n = 1;
	for (i = 0; i < n; i++)
		asks[i] = (struct u_place_ask){
			.role = U_PLACE_SERVICE, .index = i, .count = n, .polls = pollers > 0
		};
	return n;
}

/* The name of own thread `i`. */
static const char *own_name(unsigned int i, char out[24])
{
	if (i < 2)
		return i == 0 ? "application" : "vi-xfer";
	if (pollers_asked() == 0)
		return "service";
	snprintf(out, 24, "vi-poll%u", i - 2);
	return out;
}

/*
 * Those of a program: its own thread, the library's, and those that serve others; with such, also whether connections
 * are looked at on the core of the thread that uses them.
 */
static void put_own(json_object *o, json_object *threads, const struct u_affinity *a)
{
	struct u_place_ask asks[OWN_MOST] = {
		{ .role = U_PLACE_APPLICATION, .count = 1, .polls = a->c.application_polls },
		{ .role = U_PLACE_TRANSFER, .count = 1 },
	};
	char text[U_PLACE_TEXT], warning[U_PLACE_TEXT], cpus[U_CPUSET_TEXT], name[24];
	unsigned int i, n = 2 + service_asks(a, asks + 2);
	struct u_place_decision d[OWN_MOST];
	struct u_cpuset places;

	u_place(&a->c, asks, n, d);
	for (i = 0; i < n; i++)
		json_object_array_add(threads, thread(own_name(i, name), u_place_met(&d[i]),
						      u_cpuset_text(&d[i].cpus, cpus, sizeof(cpus)),
						      u_affinity_text(a, &asks[i], &d[i], text),
						      u_place_warning(asks, n, i, &d[i], warning)));
	if (n == 2)
		return;
	if (a->rules.dynamic) {
		u_place_of_service(&a->c, &places);
		info_put_text(o, "dynamic", u_cpuset_text(&places, cpus, sizeof(cpus)));
	}
	json_object_object_add(o, "one_core",
			       json_object_new_boolean(u_place_one_core(&a->c, asks, n, d, text)));
	info_put_text(o, "one_core_text", text);
}

/* The agent tells of each thread in two items, after the one about all. */
static void put_agents(json_object *threads, struct cl_agent *agent)
{
	json_object *list = info_list(agent, W_LIST_RELAY), *one, *next;
	size_t i;

	for (i = 1; i + 1 < json_object_array_length(list); i += 2) {
		one = json_object_array_get_idx(list, i);
		next = json_object_array_get_idx(list, i + 1);
		json_object_array_add(threads,
				      thread(info_text(one, "thread"), info_bool(one, "as_asked"),
					     info_text(one, "cpus"), info_text(one, "text"),
					     info_text(next, "warning")));
	}
	json_object_put(list);
}

json_object *info_placement(struct cl_agent *agent)
{
	json_object *o = json_object_new_object(), *threads = json_object_new_array();
	struct u_affinity *a;
	char cpus[U_CPUSET_TEXT];

	if (u_affinity_open(NULL, U_AFFINITY_TOPOLOGY, &a)) {
		json_object_put(threads);
		json_object_put(o);
		return NULL;
	}
	info_put_text(o, "rules", u_cfg_str(U_CFG_AFFINITY));
	info_put_text(o, "allowed", u_cpuset_text(&a->c.allowed, cpus, sizeof(cpus)));
	json_object_object_add(o, "adapter_node", number(a->c.device_node));
	if (a->topo)
		json_object_object_add(o, "machine", machine(a->topo));
	else
		info_put_text(o, "machine_unknown", a->topo_error);
	put_own(o, threads, a);
	put_agents(threads, agent);
	json_object_object_add(o, "threads", threads);
	u_affinity_close(a);
	return o;
}

static void print_count(json_object *machine, const char *key, const char *one, const char *many)
{
	int n = (int)info_int(machine, key);

	printf("%d %s", n, n == 1 ? one : many);
}

static void print_machine(json_object *o)
{
	json_object *machine = json_object_object_get(o, "machine");
	json_object *node = json_object_object_get(o, "adapter_node");

	printf("machine: ");
	if (machine) {
		print_count(machine, "processors", "processor, ", "processors, ");
		print_count(machine, "cores", "core, ", "cores, ");
		if (json_object_object_get_ex(machine, "caches", NULL))
			print_count(machine, "caches", "cache", "caches");
		else
			printf("caches unknown");
		printf(", ");
		print_count(machine, "packages", "package, ", "packages, ");
		print_count(machine, "nodes", "memory node\n", "memory nodes\n");
	} else {
		printf("unknown: %s\n", info_text(o, "machine_unknown"));
	}
	if (node)
		printf("adapter_node: %d\n", json_object_get_int(node));
}

void info_print_placement(json_object *o)
{
	json_object *threads = info_array(o, "threads"), *t;
	size_t i;

	printf("rules: %s\nallowed: %s\n", info_text(o, "rules"), info_text(o, "allowed"));
	print_machine(o);
	for (i = 0; i < json_object_array_length(threads); i++) {
		t = json_object_array_get_idx(threads, i);
		printf("%s: %s\n", info_text(t, "thread"), info_text(t, "text"));
		if (info_text(t, "warning")[0])
			printf("warning: %s %s\n", info_text(t, "thread"), info_text(t, "warning"));
	}
	if (info_text(o, "dynamic")[0])
		printf("dynamic: service threads move among processors %s by the load of the last second\n",
		       info_text(o, "dynamic"));
	if (info_text(o, "one_core_text")[0])
		printf("one_core: %s\n", info_text(o, "one_core_text"));
}
