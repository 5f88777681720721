/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The links of this host: made and ended with their ports, taken down and up by an administrator.
 */
#include "ag_links.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

#include "ag_cable.h"
#include "ag_cfg.h"
#include "ag_link.h"
#include "ag_list.h"
#include "ag_loop.h"
#include "ag_profile.h"
#include "ag_ratelimit.h"
#include "ag_record.h"
#include "ag_setup.h"
#include "ag_state.h"
#include "port.h"
#include "port_fault.h"
#include "port_fault_opt.h"
#include "port_host.h"
#include "rt_topo.h"
#include "u_close.h"
#include "u_log.h"

#define FAULT_POLL_NS (50 * INT64_C(1000000))

/* Can the link go down or up without an event, because its port has the decorator `fault`? */
static bool may_fault(const struct ag_link *l)
{
	return strstr(l->port->limits.kind, "fault") != NULL;
}

int64_t ag_links_timers(struct ag_link *l, int64_t now)
{
	int64_t next, at;

	if (l->broken != NULL)
		ag_setup_cut(l, now);
	next = ag_cable_timers(l, now);
	if (may_fault(l)) {
		ag_setup_check(l);
		next = now + FAULT_POLL_NS < next ? now + FAULT_POLL_NS : next;
	}
	if (l->state != AG_LINK_UP) {
		at = ag_setup_timers(l, now);
		next = at < next ? at : next;
	}
	if (l->state == AG_LINK_UP) {
		at = ag_record_timers(l, now);
		next = at < next ? at : next;
	}
	return next;
}

int ag_links_admin(struct ag_link *l, bool up)
{
	int rc = 0;

	if (l->index == 0)
		return -EINVAL;
	l->admin_down = !up;
	if (up) {
		rc = port_link_enable(l->port);
		l->enabled = rc == 0;
	} else {
		port_link_disable(l->port);
		l->enabled = false;
	}
	ag_setup_service(l);
	return rc;
}

/*
 * Writes the kind of a port, with the decorators of the configuration: `self` is emulated, whatever the kind of the
 * other ports.
 */
static void kind_of(const struct ag_link *l, char kind[PORT_KIND_MAX])
{
	const char *all = l->agent->cfg.port_kind != NULL ? l->agent->cfg.port_kind : "emu";
	size_t base = strcspn(all, "+");

	snprintf(kind, PORT_KIND_MAX, "%.*s%s", l->index == 0 ? 3 : (int)base,
		 l->index == 0 ? "emu" : all, all + base);
}

/*
 * Makes the port of the link, with its decorators.  0, -EINVAL (an adapter with too few scratchpads) or another
 * -errno; then none is left open.
 */
static int port_make(struct ag_link *l)
{
	const struct ag_cfg *cfg = &l->agent->cfg;
	struct port_emu_cfg pc = {
		.index = l->index,
		.db_bits = cfg->db_bits,
		.spads = cfg->spads,
		.window_bytes = cfg->window_bytes,
		.agent_bits = UINT32_C(1) << AG_DB_BIT,
	};
	char kind[PORT_KIND_MAX];
	struct port *base;
	int rc;

	snprintf(pc.name, sizeof(pc.name), "%s",
		 rt_topo_port_name(l->agent->topo, cfg->host_id, l->index));
	rc = port_host_port(l->agent->host, &pc, &base);
	if (rc != 0)
		return rc;
	if (base->limits.spads < AG_SPADS) {
		u_error("ag", "port %s has %u scratchpad%s, agents need %u; use another adapter",
			base->limits.name, base->limits.spads, base->limits.spads == 1 ? "" : "s",
			AG_SPADS);
		port_close(base);
		return -EINVAL;
	}
	kind_of(l, kind);
	rc = ag_profile_apply(l->agent->topo, cfg->profiles,
			      (struct rt_end){ (uint16_t)cfg->host_id, (uint8_t)l->index }, kind);
	if (rc == 0)
		rc = port_decorate(base, kind, cfg->fault_options,
				   cfg->seed != 0 ? cfg->seed + l->index : 0, &l->port);
	if (rc != 0)
		port_close(base);
	return rc;
}

/*
 * Makes the loop report events of the port and, where this end listens, of its cable; nothing for self.  0 or -errno,
 * and ag_links_destroy() closes what is open.
 */
static int link_watch(struct ag_link *l)
{
	int rc = 0;

	if (l->index == 0)
		return 0;
	l->event_fd = port_event_fd(l->port);
	if (l->event_fd >= 0)
		rc = ag_loop_watch(l->agent, l->event_fd, EPOLLIN, AG_EV(AG_EV_PORT, l->index));
	if (rc == 0 && l->listens)
		rc = ag_cable_listen(l);
	return rc;
}

int ag_links_create(struct ag_agent *a, uint32_t index)
{
	struct ag_link *l = &a->links[index];
	struct rt_end peer = rt_topo_peer(a->topo, a->cfg.host_id, index);
	int rc;

	l->agent = a;
	l->index = index;
	l->cabled = index != 0 && port_host_has_cables(a->host);
	l->listens = l->cabled && rt_port_listens(a->topo, a->cfg.host_id, index);
	l->peer_host = peer.host;
	l->peer_port = peer.port;
	l->cable_sock = l->event_fd = l->ctl.fd = -1;
	ag_list_init(&l->queue);
	ag_list_init(&l->held);
	ag_list_init(&l->conns);
	ag_list_init(&l->circuits[0]);
	ag_list_init(&l->circuits[1]);
	rc = port_make(l);
	if (rc != 0)
		return rc;
	ag_ratelimits_init_link(l->ratelimit, l->port->limits.name);
	rc = link_watch(l);
	if (rc != 0)
		ag_links_destroy(l);
	return rc;
}

void ag_links_destroy(struct ag_link *l)
{
	if (l->cable_sock >= 0) {
		ag_loop_unwatch(l->agent, l->cable_sock);
		u_hang_up_listener(l->cable_sock);
	}
	ag_setup_reset(l, "the agent leaves");
	port_close(l->port);
	l->port = NULL;
}
