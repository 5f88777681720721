/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of hosts and devices, and the questions of processes about names and routes. */
#ifndef AG_NAME_H
#define AG_NAME_H

#include <stdbool.h>
#include <stdint.h>

#include "ag_cfg.h"
#include "ag_client.h"
#include "ag_state.h"
#include "w_ctl.h"

#define AG_NAME_MORE_MAX 12u /* characters of ", 62 more", which ends a list that is too long */

/* Takes over the names of a configuration.  0 or -errno; the log says why. */
int ag_name_init(struct ag_agent *a, const struct ag_cfg *cfg);
void ag_name_free(struct ag_agent *a);

/* Returns the host with that name, alias or number, or -ENOENT. */
int ag_name_host(const struct ag_agent *a, const char *name);

/* May a device have that name?  Names of devices can be paths. */
bool ag_name_device_ok(const char *name);

/* Adds an alias to a table, or replaces it.  0, -ENOSPC or -ENOMEM. */
int ag_name_set_alias(struct ag_alias **table, uint32_t *count, const char *name, uint32_t host);

/* Answers W_NAME, W_ADDR_NAME and W_ROUTE of a process. */
void ag_name_lookup(struct ag_client *c, const struct w_name *m);
void ag_name_reverse(struct ag_client *c, const struct w_name *m);
void ag_name_route(struct ag_client *c, const struct w_route *m);

#endif
