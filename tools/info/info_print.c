/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <string.h>

#include "info.h"

/* A scalar as text; a list of scalars with spaces between. */
static void print_value(json_object *v)
{
	size_t i;

	if (!json_object_is_type(v, json_type_array)) {
		fputs(v ? json_object_get_string(v) : "none", stdout);
		return;
	}
	for (i = 0; i < json_object_array_length(v); i++) {
		fputs(i ? " " : "", stdout);
		print_value(json_object_array_get_idx(v, i));
	}
	if (!i)
		fputs("none", stdout);
}

/* "prefixkey: value" for every member. */
static void print_members(json_object *o, const char *prefix)
{
	json_object_object_foreach(o, key, value)
	{
		printf("%s%s: ", prefix, key);
		print_value(value);
		putchar('\n');
	}
}

static bool is_empty(json_object *v)
{
	if (json_object_is_type(v, json_type_array))
		return !json_object_array_length(v);
	return !v || !json_object_get_string(v)[0];
}

/* "key: name key value key value ..." on one line, without empty values. */
static void print_line(const char *label, json_object *o, const char *first)
{
	printf("%s: %s", label, info_text(o, first));
	json_object_object_foreach(o, key, value)
	{
		if (!strcmp(key, first) || is_empty(value))
			continue;
		printf(" %s ", key);
		print_value(value);
	}
	putchar('\n');
}

static void print_lines(const char *label, json_object *array, const char *first)
{
	size_t i;

	for (i = 0; array && i < json_object_array_length(array); i++)
		print_line(label, json_object_array_get_idx(array, i), first);
}

static void print_some(json_object *o, const char *const *keys)
{
	for (; *keys; keys++) {
		printf("%s: ", *keys);
		print_value(json_object_object_get(o, *keys));
		putchar('\n');
	}
}

static void print_head(json_object *all)
{
	json_object *f = json_object_object_get(all, "fabric");

	printf("version: %s\n", info_text(all, "version"));
	printf("fabric: %s\n", info_text(f, "name"));
	printf("own_host: %s\n", info_text(f, "host"));
}

void info_print_summary(json_object *all)
{
	static const char *const keys[] = {
		"reliability_levels",
		"rdma_read_levels",
		"max_vi",
		"max_cq",
		"max_cq_entries",
		"max_descriptors_per_queue",
		"max_segments_per_desc",
		"max_transfer_bytes",
		"max_register_bytes",
		"max_register_regions",
		"native_mtu_bytes",
		NULL,
	};
	json_object *nic = json_object_object_get(all, "nic");

	print_head(all);
	print_lines("host", info_array(all, "hosts"), "name");
	print_lines("port", info_array(all, "ports"), "name");
	printf("nic: %s\n", info_text(nic, "name"));
	print_some(nic, keys);
}

void info_print_verbose(json_object *all)
{
	print_head(all);
	print_members(json_object_object_get(all, "fabric"), "fabric.");
	print_lines("host", info_array(all, "hosts"), "name");
	print_lines("alias", info_array(all, "aliases"), "name");
	print_lines("port", info_array(all, "ports"), "name");
	print_members(json_object_object_get(all, "nic"), "nic.");
	print_lines("client", info_array(all, "clients"), "id");
}

void info_print_names(json_object *hosts)
{
	size_t i;

	for (i = 0; hosts && i < json_object_array_length(hosts); i++)
		puts(info_text(json_object_array_get_idx(hosts, i), "name"));
}

static void print_range(json_object *e)
{
	json_object *words = info_array(e, "words");

	if (words) {
		fputs("  words: ", stdout);
		print_value(words);
		putchar('\n');
	}
	if (json_object_object_get(e, "max"))
		printf("  range: %s to %s%s\n", info_text(e, "min"), info_text(e, "max"),
		       info_bool(e, "power_of_two") ? ", power of two" : "");
}

void info_print_env(json_object *env)
{
	size_t i;

	for (i = 0; i < json_object_array_length(env); i++) {
		json_object *e = json_object_array_get_idx(env, i);

		printf("%s: %s\n", info_text(e, "name"), info_text(e, "value"));
		printf("  origin: %s\n", info_text(e, "origin"));
		if (json_object_object_get(e, "refused"))
			printf("  refused: %s\n", info_text(e, "refused"));
		printf("  default: %s\n  type: %s\n", info_text(e, "default"),
		       info_text(e, "type"));
		print_range(e);
		printf("  help: %s\n", info_text(e, "help"));
	}
}

/* In single quotes; a quote inside ends them, stands escaped, and begins them again. */
static void print_quoted(const char *text)
{
	putchar('\'');
	for (; *text; text++) {
		if (*text == '\'')
			fputs("'\\''", stdout);
		else
			putchar(*text);
	}
	putchar('\'');
}

void info_print_env_sh(json_object *env)
{
	size_t i;

	for (i = 0; i < json_object_array_length(env); i++) {
		json_object *e = json_object_array_get_idx(env, i);
		bool set = !strcmp(info_text(e, "origin"), "environment");

		printf("# %s\n%sexport %s=", info_text(e, "help"), set ? "" : "# ",
		       info_text(e, "name"));
		print_quoted(info_text(e, "value"));
		putchar('\n');
	}
}

static void print_candidates(json_object *o)
{
	json_object *a = info_array(o, "candidates"), *c;
	size_t i;

	for (i = 0; a && i < json_object_array_length(a); i++) {
		c = json_object_array_get_idx(a, i);
		printf("  port: %s %s: %s\n", info_text(c, "port"),
		       info_bool(c, "chosen") ? "chosen" : "rejected", info_text(c, "reason"));
	}
}

void info_print_explain(json_object *explain)
{
	size_t i;

	for (i = 0; explain && i < json_object_array_length(explain); i++) {
		json_object *o = json_object_array_get_idx(explain, i);
		bool ok = info_bool(o, "reachable");

		printf("host: %s\n  address: %s\n  reachable: %s\n", info_text(o, "host"),
		       info_text(o, "address"), ok ? "yes" : "no");
		if (ok)
			printf("  path: %s\n  hops: %s\n  via: %s\n", info_text(o, "path"),
			       info_text(o, "hops"), info_text(o, "port"));
		else
			printf("  reason: %s\n", info_text(o, "reason"));
		print_candidates(o);
	}
}

/* The port of a host that leads right, or NULL. */
static json_object *port_named(json_object *host, const char *name)
{
	json_object *ports = info_array(host, "ports");
	size_t i;

	for (i = 0; ports && i < json_object_array_length(ports); i++) {
		json_object *p = json_object_array_get_idx(ports, i);

		if (!strcmp(info_text(p, "name"), name))
			return p;
	}
	return NULL;
}

/*
 *	host0
 *	  right |  up
 *	  left  |  up
 *	host1
 */
static void print_link(json_object *upper, json_object *lower, json_object *first)
{
	json_object *p = port_named(upper, "right"), *q = port_named(lower ? lower : first, "left");

	if (!p && !q)
		return;
	printf("  right |  %s\n", p ? info_text(p, "link") : "no answer");
	printf("  left  |  %s\n", q ? info_text(q, "link") : "no answer");
	if (!lower)
		printf("(%s)\n", info_text(first, "name"));
}

void info_print_topology(json_object *topology)
{
	json_object *hosts = info_array(topology, "hosts"), *host;
	size_t n = json_object_array_length(hosts), i;

	printf("shape: %s\nhosts: %zu\n", info_text(topology, "shape"), n);
	for (i = 0; i < n; i++) {
		host = json_object_array_get_idx(hosts, i);
		if (info_bool(host, "answers"))
			printf("%s\n", info_text(host, "name"));
		else
			printf("host id %s does not answer: %s\n", info_text(host, "id"),
			       info_text(host, "error"));
		if (i + 1 < n || n > 2)
			print_link(host, i + 1 < n ? json_object_array_get_idx(hosts, i + 1) : NULL,
				   json_object_array_get_idx(hosts, 0));
	}
}
