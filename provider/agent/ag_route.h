/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The topology, link-state updates, and the paths that follow from them.
 *
 * This unit calls nothing when paths change: its functions report that, and their callers make
 * suspended connections try again (ag_resume_retry()).
 */
#ifndef AG_ROUTE_H
#define AG_ROUTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ag_link.h"
#include "ag_state.h"
#include "rt_topo.h"
#include "w_cm.h"
#include "w_ctl.h"

/*
 * Reads the topology of the configuration.  All links count as up, but of this host's own none.  0, -ENOMEM, or
 * -EINVAL after a log line.  After an error ag_route_free() is still called.
 */
int ag_route_init(struct ag_agent *a);

/* Frees the topology and all that is known of links, once: the pointers stay. */
void ag_route_free(struct ag_agent *a);

/*
 * Finds a shortest path to `host` whose links are up; `flow` chooses among equal ones.  A path to this host
 * itself has no links.  0, or -EHOSTUNREACH with the reason in `why`; *out may then be overwritten.
 */
int ag_route_find(struct ag_agent *a, unsigned int host, uint32_t flow, struct rt_path *out,
		  char *why, size_t size);

/*
 * As ag_route_find(), but finds only paths that do not begin with the link of `port`, and gives no reason.  0
 * or -EHOSTUNREACH.
 */
int ag_route_find_other(struct ag_agent *a, unsigned int host, uint32_t flow, uint8_t port,
			struct rt_path *out);

/* Returns the first link of a path from this host. */
struct ag_link *ag_route_link(struct ag_agent *a, const struct rt_path *path);

/* Writes a path that begins here into a record, at its first hop. */
void ag_route_set_path(struct w_path *w, const struct rt_path *path);

/*
 * Finds the path back to the host from which a record with path `w` came; `w` leads from there to this host.  0
 * or -EINVAL.
 */
int ag_route_back(struct ag_agent *a, uint16_t src_host, const struct w_path *w,
		  struct rt_path *out);

/* Did a record over `l` come by the path that it names, at the hop w->at, and does that lead to its destination? */
bool ag_route_ok(struct ag_link *l, uint16_t src_host, uint16_t dst_host, const struct w_path *w);

/*
 * A link of this host, whose state is set, went up or down: notes an update for all neighbours, and for one
 * whose link came up all that are known.  The caller makes suspended connections ask again.
 */
void ag_route_changed(struct ag_link *l);

/*
 * Takes in a link-state update that came over `l`, and notes it for the other neighbours.  Returns true if
 * paths may have changed; false for one that is old, wrong, or about this host, which then sends a newer one.
 */
bool ag_route_links(struct ag_link *l, const struct w_cm_links *m);

/* Begins link-state updates of this host again when that is due.  Returns the next deadline or U_NEVER. */
int64_t ag_route_timers(struct ag_agent *a, int64_t now);

/*
 * Takes the next link-state update that the neighbour is to be told, which then counts as told; false: there is
 * none.
 */
bool ag_route_untold(struct ag_link *l, struct w_cm_links *out);

#endif
