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

/* Without a NIC on this host the answers are those of another host's agent. */
static void print_own(json_object *fabric, json_object *nic)
{
	printf("%s: %s\n", nic ? "own_host" : "seen_from", info_text(fabric, "host"));
}

static void print_head(json_object *all)
{
	json_object *f = json_object_object_get(all, "fabric");

	printf("version: %s\n", info_text(all, "version"));
	printf("fabric: %s\n", info_text(f, "name"));
	print_own(f, json_object_object_get(all, "nic"));
}

/* Hosts whose agents do not answer. */
static void print_silent(json_object *hosts)
{
	size_t i, n = hosts ? json_object_array_length(hosts) : 0;
	json_object *host;

	for (i = 0; i < n; i++) {
		host = json_object_array_get_idx(hosts, i);
		if (!info_bool(host, "answers"))
			printf("no_answer: %s: %s\n", info_text(host, "name"),
			       info_text(host, "error"));
	}
}

static void print_picture(json_object *topology)
{
	json_object *picture = info_array(topology, "picture");
	size_t i;

	for (i = 0; picture && i < json_object_array_length(picture); i++)
		puts(json_object_get_string(json_object_array_get_idx(picture, i)));
}

static const char *plural(size_t n)
{
	return n == 1 ? "" : "s";
}

/* "fabric: NAME, 3 hosts, 3 links, 1 of them down" */
static void print_size(json_object *fabric, json_object *links)
{
	size_t i, n = links ? json_object_array_length(links) : 0, down = 0;
	size_t hosts = (size_t)info_int(fabric, "hosts");

	for (i = 0; i < n; i++)
		down += !info_bool(json_object_array_get_idx(links, i), "up");
	printf("fabric: %s, %zu host%s, %zu link%s", info_text(fabric, "name"), hosts,
	       plural(hosts), n, plural(n));
	if (down)
		printf(", %zu of them down", down);
	putchar('\n');
}

/* The medium of this host's links, by the kind of its ports; "self", the first, joins its processes. */
static void print_medium(json_object *ports)
{
	size_t n = ports ? json_object_array_length(ports) : 0;
	const char *kind;

	if (!n)
		return;
	kind = info_text(json_object_array_get_idx(ports, n > 1), "kind");
	if (strstr(kind, "emu"))
		puts("medium: emulated: memory that processes of this machine share");
	else if (strstr(kind, "cdev"))
		puts("medium: NTB adapters, through /dev/viaduct*");
	else
		printf("medium: %s\n", kind);
}

/* The adapters that models of this host's ports imitate, as in the kind of ports. */
static void print_profiles(json_object *ports)
{
	size_t i, n = ports ? json_object_array_length(ports) : 0, shown = 0;
	json_object *port;

	for (i = 0; i < n; i++) {
		port = json_object_array_get_idx(ports, i);
		if (!json_object_object_get(port, "profile"))
			continue;
		printf("%s %s %s", shown++ ? "," : "profiles:", info_text(port, "name"),
		       info_text(port, "profile"));
		if (info_int(port, "dilation") != 1)
			printf(":%lld", (long long)info_int(port, "dilation"));
	}
	if (shown)
		putchar('\n');
}

/* The other hosts that can be reached, in one line, and a line for each that cannot. */
static void print_reach(json_object *hosts, const char *own)
{
	size_t i, n = hosts ? json_object_array_length(hosts) : 0, shown = 0;
	json_object *o;

	fputs("reachable:", stdout);
	for (i = 0; i < n; i++) {
		o = json_object_array_get_idx(hosts, i);
		if (!info_bool(o, "reachable") || !strcmp(info_text(o, "name"), own))
			continue;
		printf(" %s", info_text(o, "name"));
		shown++;
	}
	puts(shown ? "" : n > 1 ? " no other host" : " own processes only, there is no other host");
	for (i = 0; i < n; i++) {
		o = json_object_array_get_idx(hosts, i);
		if (!info_bool(o, "reachable"))
			printf("not_reachable: %s: %s\n", info_text(o, "name"),
			       info_text(o, "reason"));
	}
}

static void print_nic(json_object *nic)
{
	int64_t mib = info_int(nic, "max_transfer_bytes") >> 20;
	bool whole = mib && mib % 1024 == 0;

	printf("nic: %s, up to %lld VIs, messages of up to %lld %s\n", info_text(nic, "name"),
	       (long long)info_int(nic, "max_vi"), (long long)(whole ? mib / 1024 : mib),
	       whole ? "GiB" : "MiB");
}

void info_print_summary(json_object *all)
{
	json_object *topology = json_object_object_get(all, "topology");
	json_object *fabric = json_object_object_get(all, "fabric");
	json_object *nic = json_object_object_get(all, "nic");

	print_picture(topology);
	putchar('\n');
	print_size(fabric, info_array(topology, "links"));
	print_medium(info_array(all, "ports"));
	print_profiles(info_array(all, "ports"));
	print_own(fabric, nic);
	print_reach(info_array(all, "hosts"), info_text(fabric, "host"));
	print_silent(info_array(topology, "hosts"));
	if (nic)
		print_nic(nic);
	printf("version: %s; vi_info -v shows addresses, ports and all limits\n",
	       info_text(all, "version"));
}

void info_print_verbose(json_object *all)
{
	print_head(all);
	print_members(json_object_object_get(all, "fabric"), "fabric.");
	print_lines("host", info_array(all, "hosts"), "name");
	print_lines("alias", info_array(all, "aliases"), "name");
	print_lines("port", info_array(all, "ports"), "name");
	if (json_object_object_get(all, "nic"))
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

/* "host0 right -> left host1 right -> left host2" */
static void print_path(json_object *path)
{
	json_object *hop;
	size_t i;

	printf("  way: %s", info_text(json_object_array_get_idx(path, 0), "host"));
	for (i = 0; i < json_object_array_length(path); i++) {
		hop = json_object_array_get_idx(path, i);
		printf(" %s -> %s %s", info_text(hop, "out"), info_text(hop, "in"),
		       info_text(hop, "to"));
	}
	putchar('\n');
}

/* "host0 right -> left host1" */
static void print_link(json_object *link)
{
	json_object *ends = info_array(link, "ends");
	json_object *a = json_object_array_get_idx(ends, 0),
		    *b = json_object_array_get_idx(ends, 1);

	printf("%s %s -> %s %s", info_text(a, "host"), info_text(a, "port"), info_text(b, "port"),
	       info_text(b, "host"));
}

static void print_outlives(json_object *o)
{
	json_object *alone = info_array(o, "alone");
	size_t i, n = alone ? json_object_array_length(alone) : 0;

	printf("  outlives_link_loss: %s", info_text(o, "outlives_link_loss"));
	if (!info_int(o, "hops"))
		fputs(", no link is used", stdout);
	else if (!n)
		fputs(", reliable connections continue over another path", stdout);
	else
		fputs(", nothing stands in for ", stdout);
	for (i = 0; i < n; i++) {
		fputs(i ? ", " : "", stdout);
		print_link(json_object_array_get_idx(alone, i));
	}
	putchar('\n');
}

static void print_paths(json_object *o)
{
	json_object *paths = info_array(o, "ways");
	size_t i, shown = json_object_array_length(paths);
	int64_t more = info_int(o, "way_count") - (int64_t)shown;

	printf("  path: %s\n  hops: %s\n  via: %s\n", info_text(o, "path"), info_text(o, "hops"),
	       info_text(o, "port"));
	for (i = 0; i < shown; i++)
		print_path(json_object_array_get_idx(paths, i));
	if (shown && more > 0)
		printf("  more_ways: %lld as short\n", (long long)more);
	print_outlives(o);
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
			print_paths(o);
		else
			printf("  reason: %s\n", info_text(o, "reason"));
		print_candidates(o);
	}
}

/* Links in all, and the ends of those that are down. */
static void print_links(json_object *links)
{
	size_t i, n = json_object_array_length(links);

	printf("links: %zu\n", n);
	for (i = 0; i < n; i++) {
		json_object *link = json_object_array_get_idx(links, i);

		if (info_bool(link, "up"))
			continue;
		fputs("down: ", stdout);
		print_link(link);
		putchar('\n');
	}
}

static void print_threads(json_object *relay)
{
	json_object *cpus = info_array(relay, "cpus");

	printf("transfer_threads: %s", info_text(relay, "threads"));
	if (info_int(relay, "threads")) {
		printf(", waiting %s, on ", info_text(relay, "wait"));
		if (json_object_array_length(cpus)) {
			fputs("processors ", stdout);
			print_value(cpus);
		} else {
			fputs("any processor", stdout);
		}
	}
	putchar('\n');
}

/* Hosts of which less is known. */
static void print_doubts(json_object *hosts)
{
	json_object *host;
	size_t i;

	for (i = 0; i < json_object_array_length(hosts); i++) {
		host = json_object_array_get_idx(hosts, i);
		if (!info_bool(host, "heard"))
			printf("not_heard: %s, its links are taken to be up where the other end is\n",
			       info_text(host, "name"));
	}
	print_silent(hosts);
}

void info_print_topology(json_object *topology)
{
	json_object *hosts = info_array(topology, "hosts");

	printf("topology: %s\nhosts: %zu\n", info_text(topology, "spec"),
	       json_object_array_length(hosts));
	print_links(info_array(topology, "links"));
	printf("seen_from: %s\n", info_text(topology, "seen_from"));
	print_threads(json_object_object_get(topology, "relay"));
	print_doubts(hosts);
	putchar('\n');
	print_picture(topology);
}
