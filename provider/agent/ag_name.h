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

/*
 * Takes over the names of a configuration.  0, -ENOMEM, -ENOSPC (too many aliases), or -EINVAL, for which the
 * log gives the reason only if a host's name is wrong.
 */
int ag_name_init(struct ag_agent *a, const struct ag_cfg *cfg);

/* Frees all names, also after ag_name_init() failed.  It leaves the pointers as they are, so it is called once. */
void ag_name_free(struct ag_agent *a);

/*
 * Returns the host of that name or else alias, or the host whose id the text is in decimal; or -ENOENT.  Names
 * of devices are not looked up.
 */
int ag_name_host(const struct ag_agent *a, const char *name);

/*
 * May a device have that name: 1 to W_NAME_MAX - 1 visible ASCII characters, none of " \ = and the comma?  It
 * can be a path.
 */
bool ag_name_device_ok(const char *name);

/*
 * Adds an alias to a table, which begins as NULL with count 0, or replaces the one of that name.  The caller
 * has checked the name.  0, -ENOSPC or -ENOMEM, and then the table is as before.
 */
int ag_name_set_alias(struct ag_alias **table, uint32_t *count, const char *name, uint32_t host);

/* Answers W_NAME, W_ADDR_NAME and W_ROUTE of a process. */
void ag_name_lookup(struct ag_client *c, const struct w_name *m);
void ag_name_reverse(struct ag_client *c, const struct w_name *m);
void ag_name_route(struct ag_client *c, const struct w_route *m);

#endif
