/* SPDX-License-Identifier: BSD-2-Clause */
/* The links of this host: made and ended with their ports, and their timers. */
#ifndef AG_LINKS_H
#define AG_LINKS_H

#include <stdbool.h>
#include <stdint.h>

#include "ag_link.h"
#include "ag_state.h"

/* Makes the port and link of that index, which the caller counts.  0; or -errno, and then nothing was made. */
int ag_links_create(struct ag_agent *a, uint32_t index);

/* Stops listening for the cable, takes the link down, which ends or moves what uses it, and closes its port. */
void ag_links_destroy(struct ag_link *l);

/*
 * Enables or disables the port, as an administrator asks, and takes the link down, or begins to set it up, at once.
 * It stays down until asked otherwise.  0, -EINVAL for self, or another -errno of enabling, which is tried again by
 * itself.
 */
int ag_links_admin(struct ag_link *l, bool up);

/* Does everything that is due on a link other than self.  Returns the next deadline. */
int64_t ag_links_timers(struct ag_link *l, int64_t now);

#endif
