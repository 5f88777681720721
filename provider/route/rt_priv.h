/* SPDX-License-Identifier: BSD-2-Clause */
/* Declarations that the files of this folder share. */
#ifndef RT_PRIV_H
#define RT_PRIV_H

#include <stdbool.h>

#include "rt_types.h"

enum rt_shape { RT_SHAPE_RING, RT_SHAPE_CHAIN, RT_SHAPE_MESH, RT_SHAPE_TORUS, RT_SHAPE_GRAPH };

/* Opposite sides differ in the lowest bit. */
enum rt_side { RT_LEFT, RT_RIGHT, RT_UP, RT_DOWN, RT_SIDES };

struct rt_port {
	struct rt_end peer;
	uint8_t side; /* enum rt_side; unused in a graph */
	uint8_t twin; /* number among parallel links */
	bool listens;
	char name[RT_NAME_MAX];
};

struct rt_host {
	uint8_t ports; /* self included */
	struct rt_port port[RT_PORTS_MAX];
};

/* All but graphs are grids: a ring is a torus of one row, a chain a mesh of one row. */
struct rt_topo {
	enum rt_shape shape;
	uint16_t hosts;
	uint16_t width, height;
	char *spec;
	struct rt_host host[];
};

#define RT_FAR UINT16_MAX

/* rt_link_up() for a port that exists and is not self. */
bool rt_link_live(const struct rt_topo *t, const uint8_t *up, unsigned int host, unsigned int port);

/*
 * Writes the hops of every host to `to` over live links into dist[hosts], RT_FAR where there is no
 * path.  Stops when it reaches `until`, RT_HOSTS_MAX for none: hosts that are not nearer than that may keep RT_FAR.
 */
void rt_sweep(const struct rt_topo *t, const uint8_t *up, unsigned int to, unsigned int until,
	      uint16_t *dist);

/* A topology without ports; `width` and `height` are those of a grid.  NULL: no memory. */
struct rt_topo *rt_topo_create(enum rt_shape shape, unsigned int hosts, unsigned int width,
			       unsigned int height);

/* Adds the ports of all hosts of a grid, self included, with their peers. */
void rt_grid_build(struct rt_topo *t);

/* A link of a graph, between two hosts: the one with the lower number, and the other. */
struct rt_edge {
	uint16_t low, high;
};

/* For qsort() of struct rt_edge: by the lower host, then by the other; 0 for parallel links. */
int rt_edge_order(const void *va, const void *vb);

/*
 * Adds the ports of all hosts of a graph, self included, with their peers; edges are in the order of rt_edge_order(),
 * so a host's ports are in the order of their peers.
 */
void rt_graph_build(struct rt_topo *t, const struct rt_edge *edges, unsigned int count);

#define RT_SHOWN 40u /* characters of a text that a message repeats */

/*
 * The beginning of a text, for a message: up to RT_SHOWN of it, then "..." if there is more; "?" for a control
 * character or one that is not ASCII.
 */
void rt_shown(const char *text, char out[RT_SHOWN + 4]);

/* Reads a number of one to four digits.  Returns the text after it; NULL if there is none or it has more digits. */
const char *rt_number(const char *text, unsigned int *out);

#endif
