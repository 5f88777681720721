/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Answers to tools: lists of hosts, ports, processes, names and links, and the counters of a NIC.
 */
#ifndef AG_LISTING_H
#define AG_LISTING_H

#include <stdint.h>

#include "ag_client.h"
#include "ag_state.h"
#include "w_ctl.h"
#include "w_tool.h"

/* Returns the i-th client among those that have a NIC open, or NULL. */
struct ag_client *ag_listing_nic(struct ag_agent *a, uint32_t i);

/* Handles a checked W_LIST: answers W_LISTED with the item of that index, or with `more` 0: there is none. */
void ag_listing_item(struct ag_client *c, const struct w_list *m);

/*
 * Handles W_COUNT of a tool: asks the process of that index for its counters, whose answer ag_listing_counted() passes
 * on; or answers W_COUNTED with index 0 at once if there is none, it reads slowly, or there is no memory.
 */
void ag_listing_count(struct ag_client *c, const struct w_count *m);

/* Handles W_COUNTED of that process: passes the answer on to the tool that asked; without one, ignores it. */
void ag_listing_counted(struct ag_client *c, const struct w_counted *m);

#endif
