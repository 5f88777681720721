/* SPDX-License-Identifier: BSD-2-Clause */
/* The memory of near PEs, mapped here. */
#ifndef OSH_MAP_H
#define OSH_MAP_H

#include "osh_state.h"

/*
 * Lets accesses go to the peer's segment s at `at`, which was set before; does nothing in the debug mode, where all are
 * checked by functions.
 */
void osh_map_publish(struct osh_peer *p, int s);

/*
 * Maps the segments of a near PE of the world, once, and waits for another thread that does; takes the lock itself. A
 * failure ends the job. True: they are mapped, as those of this PE always are; false: it is far.
 */
bool osh_map(const char *fn, int pe);

/* As osh_map_publish(), for the extent s of PE `pe`. */
void osh_map_publish_extent(int pe, int s);

/*
 * As osh_map(), and for an extent of the heap it maps that, too. Where segment s of the PE is mapped; NULL: the PE is
 * far.
 */
uint8_t *osh_map_segment(const char *fn, int pe, int s);

/* Ends the connections over which memory is mapped, and the mappings with them. */
void osh_map_end(void);

#endif
