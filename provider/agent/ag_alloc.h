/* SPDX-License-Identifier: BSD-2-Clause */
/* A piece of window memory of a process. */
#ifndef AG_ALLOC_H
#define AG_ALLOC_H

#include <stdint.h>

#include "ag_link.h"
#include "ag_list.h"
#include "port.h"

/* Memory may take this part of an adapter's window, so that connections find room. */
#define AG_MEMORY_PART 2u

struct ag_alloc {
	struct ag_list node;	 /* of client->allocs */
	uint32_t id;		 /* for its process */
	struct ag_link *link;	 /* of whose port it is a slice */
	struct port_slice slice; /* its descriptor stays open here, for shares */
	struct ag_list shares;	 /* of struct ag_share */
	uint32_t share_count;
};

/*
 * The bytes that processes may still take as memory of the window of the link's adapter: half of it, less what they
 * have.
 */
static inline uint64_t ag_alloc_room(const struct ag_link *l)
{
	uint64_t most = l->port->limits.window_bytes / AG_MEMORY_PART;

	return most > l->memory_used ? most - l->memory_used : 0;
}

#endif
