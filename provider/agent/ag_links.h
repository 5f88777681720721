/* SPDX-License-Identifier: BSD-2-Clause */
/* The links of this host: made and ended with their ports, and their timers. */
#ifndef AG_LINKS_H
#define AG_LINKS_H

#include <stdbool.h>
#include <stdint.h>

#include "ag_link.h"
#include "ag_state.h"

/* Makes the port and link of that index.  0; or -errno, and then nothing was made. */
int ag_links_create(struct ag_agent *a, uint32_t index);

/* Takes the link down and closes its port. */
void ag_links_destroy(struct ag_link *l);

/* Enables or disables the port, as an administrator asks.  0, -EINVAL for self, or -errno. */
int ag_links_admin(struct ag_link *l, bool up);

/* Does everything that is due on a link.  Returns the next deadline. */
int64_t ag_links_timers(struct ag_link *l, int64_t now);

#endif
