/* SPDX-License-Identifier: BSD-2-Clause */
/* Placement of the transfer threads on processors: docs/placement.md. */
#ifndef AG_PLACE_H
#define AG_PLACE_H

#include <stddef.h>
#include <stdint.h>

#include "u_cpuset.h"

struct ag_agent;

/*
 * Decides the processors of all transfer threads, and moves the adapters' interrupts, by VIADUCT_AFFINITY and
 * the configuration; does nothing where there are neither threads nor adapters.  After ag_transfer_choose().
 * 0, -ENOMEM, -EINVAL after a log line for rules that are malformed; where rules are strict and cannot be met
 * -ENXIO, or the error of moving an interrupt, after a log line.  After an error ag_place_close() is still
 * called.
 */
int ag_place_open(struct ag_agent *a);

/* Frees the decisions; interrupts stay where they were moved.  Does nothing if there are none. */
void ag_place_close(struct ag_agent *a);

/*
 * Returns the processors of each transfer thread, where an empty set means any; NULL: there are no
 * transfer threads.
 */
const struct u_cpuset *ag_place_cpus(const struct ag_agent *a);

/* Writes line i about placement, as JSON; 0, or -ENOENT past the last. */
int ag_place_item(const struct ag_agent *a, uint32_t i, char *text, size_t size);

#endif
