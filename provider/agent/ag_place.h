/* SPDX-License-Identifier: BSD-2-Clause */
/* Placement of the transfer threads on processors: docs/placement.md. */
#ifndef AG_PLACE_H
#define AG_PLACE_H

#include <stddef.h>
#include <stdint.h>

#include "u_cpuset.h"

struct ag_agent;

/*
 * Decides, by VIADUCT_AFFINITY and the configuration, for as many transfer threads as the agent has.  0, -ENOMEM,
 * or -ENXIO after a log line where rules are strict and cannot be had.
 */
int ag_place_open(struct ag_agent *a);
void ag_place_close(struct ag_agent *a);

/* The processors of each transfer thread, or none; NULL: there are no transfer threads. */
const struct u_cpuset *ag_place_cpus(const struct ag_agent *a);

/* Line i about placement, as JSON; 0 or -ENOENT past the last. */
int ag_place_item(const struct ag_agent *a, uint32_t i, char *text, size_t size);

#endif
