/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads specs of topologies, and writes their canonical text. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rt_priv.h"
#include "rt_topo.h"

#define LINKS_MAX (RT_HOSTS_MAX * (RT_PORTS_MAX - 1) / 2)

/* A spec that is being read: where its error messages go, and the links of a graph. */
struct reading {
	const char *spec;
	unsigned int hosts;
	char *why;
	size_t size;
	unsigned int edges;
	uint8_t links[RT_HOSTS_MAX];
	struct rt_edge edge[LINKS_MAX];
};

static const char *const shape_words[] = { "ring", "chain", "mesh", "torus", "graph" };

void rt_shown(const char *text, char out[RT_SHOWN + 4])
{
	unsigned int i;

	for (i = 0; i < RT_SHOWN && text[i] != '\0'; i++)
		out[i] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
	snprintf(out + i, 4, "%s", text[i] != '\0' ? "..." : "");
}

/* Writes the error line, which begins with the spec.  Returns -EINVAL. */
__attribute__((format(printf, 2, 3))) static int refuse(struct reading *r, const char *format, ...)
{
	char head[RT_SHOWN + 4];
	va_list args;
	int len;

	rt_shown(r->spec, head);
	len = snprintf(r->why, r->size, "topology \"%s\": ", head);
	if ((size_t)len < r->size) {
		va_start(args, format);
		vsnprintf(r->why + len, r->size - (size_t)len, format, args);
		va_end(args);
	}
	return -EINVAL;
}

const char *rt_number(const char *text, unsigned int *out)
{
	unsigned int value = 0, digits;

	for (digits = 0; text[digits] >= '0' && text[digits] <= '9'; digits++) {
		if (digits == 4)
			return NULL;
		value = value * 10 + (unsigned int)(text[digits] - '0');
	}
	if (digits == 0)
		return NULL;
	*out = value;
	return text + digits;
}

/* Hands out `t`, which owns its text `spec` from then on.  If that is NULL, frees `t` and returns -ENOMEM. */
static int finish(struct rt_topo *t, char *spec, struct rt_topo **out)
{
	if (spec == NULL) {
		rt_topo_free(t);
		return -ENOMEM;
	}
	t->spec = spec;
	*out = t;
	return 0;
}

/* Makes a ring or chain.  0 or -ENOMEM. */
static int line_parse(struct reading *r, enum rt_shape shape, struct rt_topo **out)
{
	struct rt_topo *t = rt_topo_create(shape, r->hosts, r->hosts, 1);

	if (t == NULL)
		return -ENOMEM;
	rt_grid_build(t);
	return finish(t, strdup(shape_words[shape]), out);
}

/* The width and height of the grid with that many hosts that is closest to a square. */
static void size_advice(unsigned int hosts, unsigned int *width, unsigned int *height)
{
	unsigned int h;

	for (h = 1; h * h <= hosts; h++) {
		if (hosts % h == 0) {
			*height = h;
			*width = hosts / h;
		}
	}
}

/* Makes a mesh or torus of the size in `text`.  0, -EINVAL with the error line, or -ENOMEM. */
static int grid_parse(struct reading *r, enum rt_shape shape, const char *text,
		      struct rt_topo **out)
{
	unsigned int width = 0, height = 0, fit_width = 0, fit_height = 0;
	const char *word = shape_words[shape];
	struct rt_topo *t;
	char *spec = NULL;

	size_advice(r->hosts, &fit_width, &fit_height);
	text = rt_number(text, &width);
	if (text != NULL)
		text = *text == 'x' ? rt_number(text + 1, &height) : NULL;
	if (text == NULL || *text != '\0' || width == 0 || height == 0)
		return refuse(r, "not a width and a height; use %s:WxH, for %u host%s %s:%ux%u",
			      word, r->hosts, r->hosts == 1 ? "" : "s", word, fit_width,
			      fit_height);
	if (width * height != r->hosts)
		return refuse(r,
			      "that is %u host%s, the fabric has %u; use a size such as %s:%ux%u",
			      width * height, width * height == 1 ? "" : "s", r->hosts, word,
			      fit_width, fit_height);
	t = rt_topo_create(shape, r->hosts, width, height);
	if (t == NULL)
		return -ENOMEM;
	rt_grid_build(t);
	if (asprintf(&spec, "%s:%ux%u", word, width, height) < 0)
		spec = NULL;
	return finish(t, spec, out);
}

/*
 * Adds a link of a graph, with the lower host first.  0, or -EINVAL with the error line: both ends are one host, or a
 * host is none, or has too many links.
 */
static int edge_add(struct reading *r, unsigned int a, unsigned int b)
{
	unsigned int far = a > b ? a : b, i;
	unsigned int ends[2] = { a, b };

	if (far >= r->hosts)
		return refuse(r, "link %u-%u: no host %u in a fabric of %u host%s; use 0 to %u", a,
			      b, far, r->hosts, r->hosts == 1 ? "" : "s", r->hosts - 1);
	if (a == b)
		return refuse(r, "link %u-%u joins a host to itself; leave it out", a, b);
	for (i = 0; i < 2; i++) {
		if (r->links[ends[i]] == RT_PORTS_MAX - 1)
			return refuse(r, "host %u has more than %u links; leave some out", ends[i],
				      RT_PORTS_MAX - 1);
		r->links[ends[i]]++;
	}
	r->edge[r->edges++] = (struct rt_edge){ (uint16_t)(a + b - far), (uint16_t)far };
	return 0;
}

static bool parts_links(char c)
{
	return c == ',' || c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Reads the links of a graph.  0, or -EINVAL with the error line. */
static int edges_parse(struct reading *r, const char *text)
{
	char head[RT_SHOWN + 4];
	unsigned int a, b;
	const char *end;
	int rc;

	for (;;) {
		while (parts_links(*text))
			text++;
		if (*text == '\0')
			return 0;
		end = rt_number(text, &a);
		if (end != NULL)
			end = *end == '-' ? rt_number(end + 1, &b) : NULL;
		if (end == NULL || (*end != '\0' && !parts_links(*end))) {
			rt_shown(text, head);
			return refuse(
				r,
				"\"%s\" does not begin with a link; use two host numbers, as in 0-1",
				head);
		}
		rc = edge_add(r, a, b);
		if (rc != 0)
			return rc;
		text = end;
	}
}

/* Is there a path between all hosts, if all links are up?  0, or -EINVAL with the error line. */
static int graph_check(struct reading *r, const struct rt_topo *t)
{
	uint16_t dist[RT_HOSTS_MAX];
	unsigned int host;

	rt_sweep(t, NULL, 0, RT_HOSTS_MAX, dist);
	for (host = 0; host < t->hosts; host++) {
		if (dist[host] == RT_FAR)
			return refuse(
				r, "no path from host 0 to host %u; add links until all are joined",
				host);
	}
	return 0;
}

/* Returns the canonical text of a graph whose links are in order, or NULL: no memory. */
static char *graph_spec(const struct reading *r)
{
	char *spec = malloc(RT_SPEC_MAX), *fit;
	size_t len;
	unsigned int i;

	if (spec == NULL)
		return NULL;
	len = (size_t)snprintf(spec, RT_SPEC_MAX, "%s:", shape_words[RT_SHAPE_GRAPH]);
	for (i = 0; i < r->edges; i++)
		len += (size_t)snprintf(spec + len, RT_SPEC_MAX - len, "%s%u-%u", i > 0 ? "," : "",
					r->edge[i].low, r->edge[i].high);
	fit = realloc(spec, len + 1);
	return fit != NULL ? fit : spec;
}

/* Makes a graph of the links in `text`.  0, -EINVAL with the error line, or -ENOMEM. */
static int graph_parse(struct reading *r, const char *text, struct rt_topo **out)
{
	struct rt_topo *t;
	int rc = edges_parse(r, text);

	if (rc != 0)
		return rc;
	qsort(r->edge, r->edges, sizeof(r->edge[0]), rt_edge_order);
	t = rt_topo_create(RT_SHAPE_GRAPH, r->hosts, 0, 0);
	if (t == NULL)
		return -ENOMEM;
	rt_graph_build(t, r->edge, r->edges);
	rc = graph_check(r, t);
	if (rc != 0) {
		rt_topo_free(t);
		return rc;
	}
	return finish(t, graph_spec(r), out);
}

/*
 * The shape that a spec begins with; `rest`: the text after its colon.  -1: no known shape, a mesh, torus or graph
 * without a colon, or a ring or chain with more text.
 */
static int shape_parse(const char *spec, const char **rest)
{
	unsigned int shape;
	size_t len;

	for (shape = RT_SHAPE_RING; shape <= RT_SHAPE_GRAPH; shape++) {
		len = strlen(shape_words[shape]);
		if (strncmp(spec, shape_words[shape], len) != 0)
			continue;
		*rest = spec + len;
		if (shape >= RT_SHAPE_MESH && **rest == ':') {
			++*rest;
			return (int)shape;
		}
		if (shape < RT_SHAPE_MESH && **rest == '\0')
			return (int)shape;
	}
	return -1;
}

/* Makes the topology of the spec.  0, -EINVAL with the error line, or -ENOMEM without one. */
static int spec_parse(struct reading *r, struct rt_topo **out)
{
	const char *rest = NULL;
	int shape;

	if (r->hosts == 0 || r->hosts > RT_HOSTS_MAX)
		return refuse(r, "%u hosts; use 1 to %u", r->hosts, RT_HOSTS_MAX);
	if (strnlen(r->spec, RT_SPEC_MAX) == RT_SPEC_MAX)
		return refuse(
			r, "longer than %u bytes; use numbers without zeros, and one comma a link",
			RT_SPEC_MAX - 1);
	shape = r->spec[0] == '\0' ? RT_SHAPE_RING : shape_parse(r->spec, &rest);
	switch (shape) {
	case RT_SHAPE_RING:
	case RT_SHAPE_CHAIN:
		return line_parse(r, (enum rt_shape)shape, out);
	case RT_SHAPE_MESH:
	case RT_SHAPE_TORUS:
		return grid_parse(r, (enum rt_shape)shape, rest, out);
	case RT_SHAPE_GRAPH:
		return graph_parse(r, rest, out);
	default:
		return refuse(r,
			      "not known; use ring, chain, mesh:WxH, torus:WxH or graph:A-B,C-D");
	}
}

int rt_topo_parse(const char *spec, unsigned int hosts, struct rt_topo **out, char *why,
		  size_t size)
{
	struct reading *r = calloc(1, sizeof(*r));
	int rc = -ENOMEM;

	if (r != NULL) {
		r->spec = spec != NULL ? spec : "";
		r->hosts = hosts;
		r->why = why;
		r->size = size;
		rc = spec_parse(r, out);
		free(r);
	}
	if (rc == -ENOMEM)
		snprintf(why, size, "no memory for a topology of %u host%s; free some", hosts,
			 hosts == 1 ? "" : "s");
	return rc;
}
