/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * strict: harsher than hardware, to find missing fences.
 *
 * Wraps a port so that outbound maps are addresses of read-only poison; stores are journalled by
 * u_out and land late: 64-byte lines in random order, with byte enables, and the words of a line in
 * any order; some land early and some only at the next fence.  A store that is never fenced lands
 * eventually (a later store or fence to any map of the port, or port_flush()), as a write-combining
 * buffer drains.
 */
#ifndef PORT_STRICT_H
#define PORT_STRICT_H

#include "port.h"

#define PORT_STRICT_POISON 0xa5 /* every byte that is loaded from an outbound map */

/* Takes ownership of `inner` on success: closing the wrapper closes it. */
int port_strict_wrap(struct port *inner, uint64_t seed, struct port **out);

#endif
