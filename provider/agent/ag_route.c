/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Routes.  Every agent knows the topology, and each host announces those of its own links that are up.  Such a
 * link-state update (W_CM_LINKS) is passed on to every neighbour, and a neighbour whose link comes up is sent all
 * that are known.  So two hosts with a path between them soon know the same updates, even if some were lost, and two
 * parts of a network that are joined again inform each other.  A link is up when both its ends say so; all links of a
 * host that never sent an update are taken to be up.
 *
 * The updates of a host have serial numbers, and the greatest is the newest.  A host that sees an update in its name
 * with a greater number than it has sent, from an earlier agent or forged, sends one with a number above that.
 * Numbers end at W_LINKS_LAST, which only forgery can reach: then the host sends number 0, which makes all others
 * forget its updates, and a while later begins again.
 *
 * The source chooses the whole path and writes it into its records, so that two hosts with
 * different knowledge of the network cannot make a loop: a record makes no more hops than it names,
 * and meets no host twice.
 */
#include "ag_route.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ag_cfg.h"
#include "ag_link.h"
#include "ag_ratelimit.h"
#include "ag_state.h"
#include "rt_topo.h"
#include "u_log.h"
#include "u_time.h"
#include "w_ctl.h"

/*
 * After number 0 of a host, its updates are ignored for FORGET_NS: those that are still under way
 * cannot circulate after it.  The host waits longer before it begins again.
 */
#define FORGET_NS (1000 * INT64_C(1000000))
#define BEGIN_NS (2000 * INT64_C(1000000))

static_assert(AG_HOSTS_MAX <= 64, "untold of struct ag_link has a bit for each host");

/*
 * Would the link at that port leave its two ends without a path, if all others are up?  `up` is as before on
 * return.
 */
static bool is_bridge(struct ag_agent *a, uint8_t *up, unsigned int host, unsigned int port)
{
	struct rt_end peer = rt_topo_peer(a->topo, host, port);
	bool yes;

	up[host] &= (uint8_t) ~(1u << port);
	yes = rt_distance(a->topo, up, host, peer.host) > RT_PATH_MAX;
	up[host] |= (uint8_t)(1u << port);
	return yes;
}

/* Finds, for all hosts, the links for which no other path exists, and sets a->bridges.  0 or -ENOMEM. */
static int find_bridges(struct ag_agent *a)
{
	uint8_t *up = malloc(a->cfg.host_count);
	uint32_t host, port;

	a->bridges = calloc(a->cfg.host_count, 1);
	if (up == NULL || a->bridges == NULL) {
		free(up);
		return -ENOMEM;
	}
	memset(up, 0xff, a->cfg.host_count);
	for (host = 0; host < a->cfg.host_count; host++) {
		for (port = 1; port < rt_topo_ports(a->topo, host); port++) {
			if (is_bridge(a, up, host, port))
				a->bridges[host] |= (uint8_t)(1u << port);
		}
	}
	free(up);
	return 0;
}

int ag_route_init(struct ag_agent *a)
{
	char why[200];
	int rc = rt_topo_parse(a->cfg.topology, a->cfg.host_count, &a->topo, why, sizeof(why));

	if (rc == -EINVAL)
		u_error("ag", "topology: %s", why);
	if (rc != 0)
		return rc;
	a->up = malloc(a->cfg.host_count);
	a->up_serial = calloc(a->cfg.host_count, sizeof(*a->up_serial));
	a->up_forgotten = calloc(a->cfg.host_count, sizeof(*a->up_forgotten));
	if (a->up == NULL || a->up_serial == NULL || a->up_forgotten == NULL)
		return -ENOMEM;
	memset(a->up, 0xff, a->cfg.host_count);
	a->up[a->cfg.host_id] = 1;
	return find_bridges(a);
}

void ag_route_free(struct ag_agent *a)
{
	rt_topo_free(a->topo);
	free(a->up);
	free(a->up_serial);
	free(a->up_forgotten);
	free(a->bridges);
}

struct ag_link *ag_route_link(struct ag_agent *a, const struct rt_path *path)
{
	return &a->links[path->hops == 0 ? 0 : path->port[0]];
}

int ag_route_find_other(struct ag_agent *a, unsigned int host, uint32_t flow, uint8_t port,
			struct rt_path *out)
{
	uint8_t up[RT_HOSTS_MAX];

	memcpy(up, a->up, a->cfg.host_count);
	up[a->cfg.host_id] &= (uint8_t) ~(1u << port);
	if (rt_path_find(a->topo, up, a->cfg.host_id, host, flow, out) != 0 ||
	    !ag_link_usable(ag_route_link(a, out)))
		return -EHOSTUNREACH;
	return 0;
}

int ag_route_find(struct ag_agent *a, unsigned int host, uint32_t flow, struct rt_path *out,
		  char *why, size_t size)
{
	int rc = rt_path_find(a->topo, a->up, a->cfg.host_id, host, flow, out);
	struct ag_link *l;

	if (rc != 0) {
		rt_topo_reason(a->topo, a->up, a->cfg.host_id, host, why, size);
		return -EHOSTUNREACH;
	}
	l = ag_route_link(a, out);
	if (ag_link_usable(l))
		return 0;
	/* The link is broken, and is about to be taken down. */
	snprintf(why, size, "link %s to host %u is down", l->port->limits.name, l->peer_host);
	return -EHOSTUNREACH;
}

/* ---- paths ---- */

void ag_route_set_path(struct w_path *w, const struct rt_path *path)
{
	memset(w, 0, sizeof(*w));
	w->hops = path->hops;
	w->at = path->hops == 0 ? 0 : 1;
	memcpy(w->port, path->port, path->hops);
}

/* Takes the ports of a path out of a record, without a check. */
static void path_of(const struct w_path *w, struct rt_path *out)
{
	out->hops = w->hops;
	memcpy(out->port, w->port, w->hops);
}

int ag_route_back(struct ag_agent *a, uint16_t src_host, const struct w_path *w,
		  struct rt_path *out)
{
	struct rt_path path;

	path_of(w, &path);
	return rt_path_reverse(a->topo, src_host, &path, out);
}

bool ag_route_ok(struct ag_link *l, uint16_t src_host, uint16_t dst_host, const struct w_path *w)
{
	struct ag_agent *a = l->agent;
	struct rt_path path;
	struct rt_end here, there;

	if (l->index == 0)
		return w->hops == 0 && src_host == a->cfg.host_id && dst_host == a->cfg.host_id;
	path_of(w, &path);
	if (w->at == 0 || src_host >= a->cfg.host_count ||
	    rt_path_check(a->topo, src_host, &path) != 0 ||
	    rt_path_walk(a->topo, src_host, &path, w->at, &here) != 0 ||
	    rt_path_walk(a->topo, src_host, &path, w->hops, &there) != 0)
		return false;
	return here.host == a->cfg.host_id && here.port == l->index && there.host == dst_host;
}

/* ---- link-state updates ---- */

/*
 * Notes that the neighbour lacks the update of `origin`, unless its link is down.  When there is room in the
 * control slice, the newest update known then is sent.  So no change is left out, and the updates that wait are
 * bounded.
 */
static void note_untold(struct ag_link *l, uint32_t origin)
{
	if (l->state != AG_LINK_UP)
		return;
	l->untold |= UINT64_C(1) << origin;
	l->agent->dirty = true;
}

bool ag_route_untold(struct ag_link *l, struct w_cm_links *out)
{
	struct ag_agent *a = l->agent;
	uint32_t origin;

	if (l->untold == 0)
		return false;
	origin = (uint32_t)__builtin_ctzll(l->untold);
	l->untold &= l->untold - 1;
	*out = (struct w_cm_links){
		.src_host = (uint16_t)a->cfg.host_id,
		.dst_host = l->peer_host,
		.origin = (uint16_t)origin,
		.up = a->up[origin],
		.serial = a->up_serial[origin],
	};
	w_ctl_init(out, W_CM_LINKS, sizeof(*out));
	return true;
}

/* Notes for all neighbours but `from`, or for all if that is NULL, that they lack the update of `origin`. */
static void tell_all_but(struct ag_agent *a, uint32_t origin, const struct ag_link *from)
{
	uint32_t i;

	for (i = 1; i < a->link_count; i++) {
		if (&a->links[i] != from)
			note_untold(&a->links[i], origin);
	}
}

/*
 * Makes a new update of this host from the links that are up, with a serial above `above`, and notes it for all
 * neighbours; at the last number, makes all others forget its updates, and makes none until that is over.
 */
static void update_own(struct ag_agent *a, uint64_t above)
{
	uint64_t *own = &a->up_serial[a->cfg.host_id];
	uint8_t up = 1;
	uint32_t i;

	for (i = 1; i < a->link_count; i++) {
		if (a->links[i].state == AG_LINK_UP)
			up |= (uint8_t)(1u << i);
	}
	a->up[a->cfg.host_id] = up;
	if (*own < above)
		*own = above;
	if (a->begin_at != 0)
		return;
	if (*own >= W_LINKS_LAST) {
		u_warn("ag", "link-state updates in the name of this host have reached the last "
			     "number: an agent has forged them; this one begins again");
		*own = 0;
		a->begin_at = u_now_ns() + BEGIN_NS;
	} else {
		(*own)++;
	}
	tell_all_but(a, a->cfg.host_id, NULL);
}

void ag_route_changed(struct ag_link *l)
{
	struct ag_agent *a = l->agent;
	uint32_t i;

	l->untold = 0;
	update_own(a, 0);
	if (l->state != AG_LINK_UP)
		return;
	for (i = 0; i < a->cfg.host_count; i++) {
		if (i != a->cfg.host_id && a->up_serial[i] != 0)
			note_untold(l, i);
	}
}

int64_t ag_route_timers(struct ag_agent *a, int64_t now)
{
	if (a->begin_at == 0)
		return U_NEVER;
	if (now >= a->begin_at) {
		a->begin_at = 0;
		update_own(a, 0);
	}
	return a->begin_at != 0 ? a->begin_at : U_NEVER;
}

/*
 * Is the update newer than the known one?  If two updates have the same serial, one is forged.  All
 * hosts must prefer the same one, so that it reaches its origin, which then sends a newer one, or
 * is forgotten.
 */
static bool is_news(const struct ag_agent *a, const struct w_cm_links *m)
{
	uint64_t known = a->up_serial[m->origin];

	return m->serial > known || (m->serial == known && m->up > a->up[m->origin]);
}

/*
 * Handles an update about this host, from an earlier agent or forged: replaces it by a newer one.  After one
 * with number 0, which makes others forget, updates begin again after BEGIN_NS.
 */
static void correct(struct ag_agent *a, const struct w_cm_links *m)
{
	if (m->serial != 0 && is_news(a, m))
		update_own(a, m->serial);
	else if (m->serial == 0 && a->begin_at == 0)
		/* by then the others have forgotten this host's updates */
		a->begin_at = u_now_ns() + BEGIN_NS;
}

/* Takes all links of a host to be up, and ignores its updates for FORGET_NS. */
static void forget(struct ag_agent *a, uint16_t origin, int64_t now)
{
	a->up[origin] = 0xff;
	a->up_serial[origin] = 0;
	a->up_forgotten[origin] = now + FORGET_NS;
}

/*
 * Takes in an update about another host, and notes it for all neighbours but that of `l`.  Returns true if it
 * was news; else that neighbour is told the newer one, if this host knows one.
 */
static bool learn(struct ag_link *l, const struct w_cm_links *m)
{
	struct ag_agent *a = l->agent;
	int64_t now = u_now_ns();
	bool forgotten = now < a->up_forgotten[m->origin];

	if (m->serial == 0 && !forgotten) {
		forget(a, m->origin, now);
	} else if (m->serial != 0 && !forgotten && is_news(a, m)) {
		a->up[m->origin] = (uint8_t)m->up;
		a->up_serial[m->origin] = m->serial;
	} else {
		/* The neighbour knows less, or has yet to forget: it is told, and does not answer that. */
		if (m->serial != 0 &&
		    (forgotten || m->serial < a->up_serial[m->origin] || m->up != a->up[m->origin]))
			note_untold(l, m->origin);
		return false;
	}
	tell_all_but(a, m->origin, l);
	return true;
}

bool ag_route_links(struct ag_link *l, const struct w_cm_links *m)
{
	struct ag_agent *a = l->agent;

	if (m->origin >= a->cfg.host_count || m->serial > W_LINKS_LAST) {
		u_log_ratelimited(&l->ratelimit[AG_RATELIMIT_RECORD],
				  "port %s: what host %u is said to have for links is ignored: %s",
				  l->port->limits.name, m->origin,
				  m->origin >= a->cfg.host_count
					  ? "there is no such host"
					  : "no agent has got to that number");
		a->relay_dropped++;
		return false;
	}
	if (m->origin == a->cfg.host_id) {
		correct(a, m);
		return false;
	}
	return learn(l, m);
}
