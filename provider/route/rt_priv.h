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
	uint8_t side; /* enum rt_side; not of a graph */
	uint8_t twin; /* which one of parallel links */
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
 * Hops of every host to `to` over live links into dist[hosts], RT_FAR where there is no path.
 * Stops when `until` is reached: hosts that are not nearer than it may then be left at RT_FAR.
 */
void rt_sweep(const struct rt_topo *t, const uint8_t *up, unsigned int to, unsigned int until,
	      uint16_t *dist);

#define RT_SHOWN 40u /* characters of a text that a message repeats */

/* The begin of a text for a message: no control characters, not too long. */
void rt_shown(const char *text, char out[RT_SHOWN + 4]);

/* Reads a number of one to four digits.  Returns the text behind it, or NULL. */
const char *rt_number(const char *text, unsigned int *out);

#endif
