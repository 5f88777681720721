/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Specs of topologies, then paths and masks of live links in the topology that was parsed.  A refused
 * spec gives a reason in one line; with an accepted one every path, and every drawing, stays in bounds.
 */
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "fz_input.h"
#include "rt_load.h"

#define SPEC 512u
#define TEXT 200u

/* Words that most specs consist of. */
static const char *const words[] = {
	"ring", "chain", "mesh:", "torus:", "graph:", "x", "-", ",", "\n", "0",	   "1",
	"2",	"3",	 "4",	  "5",	    "7",      "8", "9", " ", "16", "1023", "1024",
};

static void must(bool holds, const char *what, const char *text)
{
	if (holds)
		return;
	fprintf(stderr, "%s: %s\n", what, text);
	abort();
}

static void words_spec(struct fz_input *in, char out[SPEC])
{
	const uint32_t known = sizeof(words) / sizeof(words[0]);
	uint32_t n = (uint32_t)fz_get(in, 1), which;
	size_t len = 0;

	out[0] = '\0';
	while (n-- > 0 && len < SPEC - 40) {
		which = (uint32_t)fz_get(in, 1);
		if (which < known) {
			len += (size_t)snprintf(out + len, SPEC - len, "%s", words[which]);
			continue;
		}
		len += fz_fill(in, out + len, which % 32);
		out[len] = '\0';
		len = strlen(out);
	}
}

static void grid_spec(struct fz_input *in, char out[SPEC], unsigned int *hosts)
{
	unsigned int width = 1 + fz_pick(in, 24), height = 1 + fz_pick(in, 24);

	*hosts = width * height;
	snprintf(out, SPEC, "%s:%ux%u", fz_pick(in, 2) != 0 ? "torus" : "mesh", width, height);
}

/* Writes a graph: each host is joined to an earlier one; then any links follow. */
static void graph_spec(struct fz_input *in, char out[SPEC], unsigned int *hosts)
{
	unsigned int host, more = fz_pick(in, 16);
	size_t len = (size_t)snprintf(out, SPEC, "graph:");

	*hosts = 1 + fz_pick(in, 32);
	for (host = 1; host < *hosts; host++)
		len += (size_t)snprintf(out + len, SPEC - len, "%u-%u,", host, fz_pick(in, host));
	while (more-- > 0)
		len += (size_t)snprintf(out + len, SPEC - len, "%u-%u,", fz_pick(in, *hosts),
					fz_pick(in, *hosts));
}

static void any_spec(struct fz_input *in, char out[SPEC], unsigned int *hosts)
{
	switch (fz_pick(in, 3)) {
	case 0:
		*hosts = (unsigned int)fz_get(in, 2) % (RT_HOSTS_MAX + 2);
		words_spec(in, out);
		break;
	case 1:
		grid_spec(in, out, hosts);
		break;
	default:
		graph_spec(in, out, hosts);
		break;
	}
}

/* Reads the spec; NULL when it is refused. */
static struct rt_topo *parse(const char *spec, unsigned int hosts)
{
	struct rt_topo *t = NULL;
	char why[TEXT];
	size_t i;
	int rc;

	memset(why, 'w', sizeof(why));
	rc = rt_topo_parse(spec, hosts, &t, why, sizeof(why));
	must((rc == 0) == (t != NULL), "the result is not what was made", spec);
	if (rc == 0)
		return t;
	must(memchr(why, 0, sizeof(why)) != NULL && why[0] != '\0', "refused without a reason",
	     spec);
	for (i = 0; why[i] != '\0'; i++)
		must(why[i] >= ' ' && why[i] <= '~', "a reason of more than a line", why);
	return NULL;
}

/* Reads the links of a spec, or any text, as the lines of a file. */
static void try_lines(const char *any, unsigned int hosts)
{
	static char spec[RT_SPEC_MAX];
	char why[TEXT], text[SPEC], *comma;

	snprintf(text, sizeof(text), "%s", strncmp(any, "graph:", 6) == 0 ? any + 6 : any);
	while ((comma = strchr(text, ',')) != NULL)
		*comma = '\n';
	memset(why, 'w', sizeof(why));
	if (rt_lines_parse(text, strlen(text), hosts, spec, why, sizeof(why)) == 0)
		rt_topo_free(parse(spec, hosts));
	else
		must(memchr(why, 0, sizeof(why)) != NULL && strncmp(why, "line ", 5) == 0 &&
			     strchr(why, '\n') == NULL,
		     "a line refused without its number", text);
	must(rt_spec_hosts(spec) <= RT_HOSTS_MAX, "more hosts than there may be", spec);
}

static void try_ports(const struct rt_topo *t)
{
	unsigned int host, port;
	struct rt_end peer, back;

	for (host = 0; host < rt_hosts(t); host++) {
		must(rt_topo_ports(t, host) <= RT_PORTS_MAX, "too many ports", rt_topo_spec(t));
		for (port = 1; port < rt_topo_ports(t, host); port++) {
			peer = rt_topo_peer(t, host, port);
			back = rt_topo_peer(t, peer.host, peer.port);
			must(back.host == host && back.port == port, "a link of one end",
			     rt_topo_spec(t));
			must(rt_port_listens(t, host, port) !=
				     rt_port_listens(t, peer.host, peer.port),
			     "not one end listens", rt_topo_spec(t));
		}
	}
}

static void try_canonical(const struct rt_topo *t)
{
	struct rt_topo *again = parse(rt_topo_spec(t), rt_hosts(t));

	must(again != NULL && strcmp(rt_topo_spec(t), rt_topo_spec(again)) == 0,
	     "the canonical text is another topology", rt_topo_spec(t));
	rt_topo_free(again);
}

static bool port_exists(const struct rt_topo *t, unsigned int host, unsigned int port)
{
	return port != RT_PORT_SELF && port < rt_topo_ports(t, host);
}

static void try_back(const struct rt_topo *t, unsigned int from, const struct rt_path *path)
{
	struct rt_path back;
	struct rt_end end;

	must(rt_path_reverse(t, from, path, &back) == 0 &&
		     rt_path_walk(t, from, path, path->hops, &end) == 0 &&
		     rt_path_check(t, end.host, &back) == 0,
	     "a path without a path back", rt_topo_spec(t));
	must(rt_path_walk(t, end.host, &back, back.hops, &end) == 0 && end.host == from,
	     "the path back leads elsewhere", rt_topo_spec(t));
}

static void try_hostile(const struct rt_topo *t, struct fz_input *in)
{
	unsigned int from = (unsigned int)fz_get(in, 2), step = fz_pick(in, 80), i;
	struct rt_path path = { 0 };
	struct rt_end end;

	path.hops = (uint8_t)fz_get(in, 1);
	fz_fill(in, path.port, path.hops < RT_PATH_MAX ? path.hops : RT_PATH_MAX);
	if (rt_path_walk(t, from, &path, step, &end) == 0) {
		must(step <= path.hops && end.host < rt_hosts(t) &&
			     end.port < rt_topo_ports(t, end.host),
		     "outside", rt_topo_spec(t));
		for (i = 0; i < step; i++)
			must(rt_path_walk(t, from, &path, i, &end) == 0 &&
				     port_exists(t, end.host, path.port[i]),
			     "by a port that does not exist", rt_topo_spec(t));
	}
	if (rt_path_check(t, from, &path) == 0)
		try_back(t, from, &path);
}

static void try_found(const struct rt_topo *t, const uint8_t *up, struct fz_input *in)
{
	unsigned int from = (unsigned int)fz_get(in, 2) % rt_hosts(t);
	unsigned int to = (unsigned int)fz_get(in, 2) % rt_hosts(t), step;
	struct rt_path path;
	struct rt_end at;
	char text[TEXT];
	int rc = rt_path_find(t, up, from, to, (uint32_t)fz_get(in, 4), &path);

	rt_topo_reason(t, up, from, to, text, sizeof(text));
	must((rc == 0) == (text[0] == '\0'), "a reason for what is reached, or none", text);
	must((rc == 0) == (rt_distance(t, up, from, to) != UINT_MAX), "a distance without a path",
	     rt_topo_spec(t));
	if (rc != 0)
		return;
	must(rt_path_check(t, from, &path) == 0 && path.hops == rt_distance(t, up, from, to),
	     "a bad path was found", rt_topo_spec(t));
	try_back(t, from, &path);
	for (step = 0; step < path.hops; step++) {
		rt_path_walk(t, from, &path, step, &at);
		must(rt_link_up(t, up, at.host, path.port[step]), "over a link that is down",
		     rt_topo_spec(t));
	}
}

static void try_drawing(const struct rt_topo *t, const uint8_t *up, struct fz_input *in)
{
	unsigned int here = (unsigned int)fz_get(in, 2);
	int length = rt_draw(t, up, NULL, here, NULL, 0);
	size_t size = fz_get(in, 2) % ((size_t)length + 2);
	char *text = malloc(size != 0 ? size : 1);

	must(rt_draw(t, up, NULL, here, text, size) == length, "drawn in two lengths",
	     rt_topo_spec(t));
	if (size > 0)
		must(memchr(text, 0, size) ==
			     text + (size <= (size_t)length ? size - 1 : (size_t)length),
		     "drawn beyond its end", rt_topo_spec(t));
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fz_input in = { data, size };
	unsigned int hosts;
	uint8_t up[RT_HOSTS_MAX];
	struct rt_topo *t;
	char spec[SPEC];
	uint32_t cuts;

	any_spec(&in, spec, &hosts);
	try_lines(spec, hosts);
	t = parse(spec, hosts);
	if (t == NULL)
		return 0;
	memset(up, 0xff, sizeof(up));
	for (cuts = fz_pick(&in, 16); cuts > 0; cuts--)
		up[fz_get(&in, 2) % hosts] &= (uint8_t)fz_get(&in, 1);
	try_ports(t);
	try_canonical(t);
	try_drawing(t, up, &in);
	do {
		try_found(t, up, &in);
		try_hostile(t, &in);
	} while (in.left > 0);
	rt_topo_free(t);
	return 0;
}
