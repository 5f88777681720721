/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Links: ports, their cables, and setting a link up through scratchpads.
 *
 * When the port's link comes up each agent makes a control slice and writes
 * into the neighbour's scratchpads (8 words, the first one last):
 *
 *	0 command  0x5644 and the fold of words 1-4, 6, 7: says they belong together
 *	1 protocol version << 16 | host id
 *	2 nonce	   of this set-up; never 0
 *	3 id and
 *	4 bytes	   of the control slice
 *	5 ack	   the neighbour's nonce, once its control slice is mapped here
 *	6 window   bytes of the window, in MiB
 *	7 hosts	   hosts of the fabric
 *
 * The link is usable when the neighbour's slice is mapped and our nonce is
 * acknowledged.  A new nonce of the neighbour means that it began again.  The
 * words are repeated while nothing answers, and after a second without success
 * all of it begins anew: words of an earlier life of the neighbour may have
 * misled one side.  So long, too, a link waits that had no room for a control slice.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ag_priv.h"
#include "port_fault.h"
#include "u_close.h"
#include "u_fd.h"
#include "u_log.h"
#include "u_time.h"

#define SETUP_MAGIC 0x5644u
#define SETUP_POLL_NS (20 * INT64_C(1000000))
#define SETUP_REPEAT_NS (50 * INT64_C(1000000))
#define SETUP_LIMIT_NS (1000 * INT64_C(1000000))
#define FAULT_POLL_NS (50 * INT64_C(1000000))

enum {
	PAD_COMMAND,
	PAD_VERSION,
	PAD_NONCE,
	PAD_SLICE,
	PAD_BYTES,
	PAD_ACK,
	PAD_WINDOW,
	PAD_HOSTS,
	PAD_COUNT
};

static uint32_t fold(const uint32_t w[PAD_COUNT])
{
	uint32_t h = 2166136261u;
	unsigned int i;

	for (i = PAD_VERSION; i < PAD_COUNT; i++) {
		if (i != PAD_ACK)
			h = (h ^ w[i]) * 16777619u;
	}
	return SETUP_MAGIC << 16 | ((h >> 16 ^ h) & 0xffff);
}

/* What the neighbour announced; -EAGAIN while there is nothing whole. */
static int pads_read(struct ag_link *l, uint32_t w[PAD_COUNT])
{
	unsigned int i;

	for (i = 0; i < PAD_COUNT; i++)
		w[i] = port_spad_read(l->port, i);
	return w[PAD_COMMAND] == fold(w) && w[PAD_NONCE] != 0 ? 0 : -EAGAIN;
}

static void announce(struct ag_link *l)
{
	const struct ag_cfg *cfg = &l->agent->cfg;
	uint32_t w[PAD_COUNT] = {
		[PAD_VERSION] = W_CTL_VERSION << 16 | cfg->host_id,
		[PAD_NONCE] = l->nonce,
		[PAD_SLICE] = l->ctl.id,
		[PAD_BYTES] = (uint32_t)l->ctl.len,
		[PAD_ACK] = l->peer_nonce,
		[PAD_WINDOW] = (uint32_t)(l->port->limits.window_bytes >> 20),
		[PAD_HOSTS] = cfg->host_count,
	};
	unsigned int i;

	w[PAD_COMMAND] = fold(w);
	for (i = PAD_COUNT; i-- > 0;)
		port_peer_spad_write(l->port, i, w[i]);
	port_peer_db_ring(l->port, UINT32_C(1) << AG_DB_BIT);
	l->announce_at = u_now_ns() + SETUP_REPEAT_NS;
}

/* Words of a link that is gone must not be taken for the next one's. */
static void pads_clear(struct ag_link *l)
{
	unsigned int i;

	for (i = 0; i < PAD_COUNT; i++)
		port_spad_write(l->port, i, 0);
}

static void link_bad(struct ag_link *l)
{
	ag_ctl_close(l);
	l->state = AG_LINK_BAD;
}

/* 0 when the neighbour is the right one; else says why not, once, and leaves the link down. */
static int neighbour_check(struct ag_link *l, const uint32_t w[PAD_COUNT])
{
	uint32_t version = w[PAD_VERSION] >> 16, host = w[PAD_VERSION] & 0xffff;

	if (version == W_CTL_VERSION && host == l->peer_host &&
	    w[PAD_HOSTS] == l->agent->cfg.host_count)
		return 0;
	if (version != W_CTL_VERSION)
		u_log_ratelimited(
			&l->ratelimit[AG_RATELIMIT_SETUP],
			"link %s stays down: this agent speaks version %u, the agent of host %u "
			"speaks %u; use agents of one release",
			l->port->limits.name, W_CTL_VERSION, host, version);
	else
		u_log_ratelimited(
			&l->ratelimit[AG_RATELIMIT_SETUP],
			"link %s stays down: host %u of %u expected at the other end, found "
			"host %u of %u; check cables and host ids",
			l->port->limits.name, l->peer_host, l->agent->cfg.host_count, host,
			w[PAD_HOSTS]);
	link_bad(l);
	return -EPROTONOSUPPORT;
}

static int outbound_map(struct ag_link *l, const uint32_t w[PAD_COUNT])
{
	struct port_map map;
	int fd, rc;

	if (w[PAD_BYTES] < ag_ctl_bytes())
		return -EPROTO;
	rc = port_peer_slice_open(l->port, w[PAD_SLICE], w[PAD_BYTES], &fd);
	if (rc != 0)
		return rc;
	rc = port_map(l->port, fd, w[PAD_BYTES], PORT_OUTBOUND, &map);
	close(fd);
	if (rc != 0)
		return rc;
	port_unmap(l->port, &l->out);
	l->out = map;
	l->peer_nonce = w[PAD_NONCE];
	return 0;
}

static void paths_changed(struct ag_link *l)
{
	ag_route_changed(l);
	ag_resume_retry(l->agent);
}

static void link_up(struct ag_link *l)
{
	l->state = AG_LINK_UP;
	l->link_generation++;
	l->heard_at = u_now_ns();
	l->beat_at = l->heard_at;
	u_log_ratelimited(&l->ratelimit[AG_RATELIMIT_STATE], "link %s to host %u is up",
			  l->port->limits.name, l->peer_host);
	paths_changed(l);
	ag_record_receive(l);
}

static void setup_step(struct ag_link *l)
{
	uint32_t w[PAD_COUNT];

	if (pads_read(l, w) != 0 || neighbour_check(l, w) != 0)
		return;
	if (w[PAD_NONCE] != l->peer_nonce) {
		if (outbound_map(l, w) != 0)
			return;
		announce(l);
	}
	if (w[PAD_ACK] == l->nonce && l->nonce != 0)
		link_up(l);
}

static void setup_begin(struct ag_link *l, uint32_t generation)
{
	char text[U_FD_ERROR];
	int rc;

	l->generation = generation;
	l->peer_nonce = 0;
	l->setup_again_at = 0;
	rc = ag_ctl_open(l);
	if (rc != 0) {
		/* There may be room later: a neighbour that is stopped and goes on reads its cable. */
		u_log_ratelimited(&l->ratelimit[AG_RATELIMIT_SETUP],
				  "link %s stays down: no control slice: %s", l->port->limits.name,
				  u_fd_error(-rc, text));
		l->setup_again_at = u_now_ns() + SETUP_LIMIT_NS;
		return;
	}
	do {
		if (getrandom(&l->nonce, sizeof(l->nonce), GRND_NONBLOCK) != sizeof(l->nonce))
			l->nonce = (uint32_t)u_now_ns();
	} while (l->nonce == 0 || l->nonce == UINT32_MAX);
	l->state = AG_LINK_SETUP;
	l->setup_until = u_now_ns() + SETUP_LIMIT_NS;
	announce(l);
}

static bool neighbour_began_again(struct ag_link *l)
{
	uint32_t w[PAD_COUNT];

	return l->state == AG_LINK_UP && pads_read(l, w) == 0 && w[PAD_NONCE] != l->peer_nonce;
}

void ag_link_check(struct ag_link *l)
{
	uint32_t generation = 0;
	bool up = port_link_state(l->port, &generation) == PORT_LINK_UP;

	if (l->state != AG_LINK_DOWN && (!up || generation != l->generation))
		ag_link_reset(l, "the link went down");
	else if (neighbour_began_again(l))
		ag_link_reset(l, "the neighbour's agent began again");
	if (!up)
		l->setup_again_at = 0;
	if (up && l->state == AG_LINK_DOWN && !l->admin_down && l->setup_again_at == 0)
		setup_begin(l, generation);
	if (l->state == AG_LINK_SETUP)
		setup_step(l);
}

void ag_link_reset(struct ag_link *l, const char *why)
{
	bool was_up = l->state == AG_LINK_UP;

	if (was_up)
		u_log_ratelimited(&l->ratelimit[AG_RATELIMIT_STATE],
				  "link %s to host %u is down: %s", l->port->limits.name,
				  l->peer_host, why);
	if (l->state != AG_LINK_DOWN)
		pads_clear(l);
	l->state = AG_LINK_DOWN;
	l->broken = NULL;
	if (was_up)
		paths_changed(l);
	ag_relay_link_down(l);
	ag_resume_left(l, NULL);
	ag_connect_link_down(l, why);
	ag_mem_link_down(l);
	ag_ctl_close(l);
}

void ag_link_break(struct ag_link *l, const char *why)
{
	l->broken = why;
	l->agent->dirty = true;
}

/* The neighbour misbehaved: take the link down at both ends, and up again a little later. */
static void link_cut(struct ag_link *l, int64_t now)
{
	u_log_ratelimited(&l->ratelimit[AG_RATELIMIT_CUT], "link %s is cut: %s",
			  l->port->limits.name, l->broken);
	port_link_disable(l->port);
	ag_link_reset(l, l->broken);
	l->enabled = false;
	l->retry_at = now + AG_RETRY_NS;
}

void ag_link_service(struct ag_link *l)
{
	port_service(l->port);
	ag_link_check(l);
	ag_record_receive(l);
}

bool ag_link_usable(const struct ag_link *l)
{
	return l->index == 0 || (l->state == AG_LINK_UP && l->broken == NULL);
}

int ag_link_admin(struct ag_link *l, bool up)
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
	ag_link_service(l);
	return rc;
}

/* ---- cables ---- */

static void cable_plug(struct ag_link *l, int sock)
{
	char text[U_FD_ERROR];
	int rc;

	if (w_agent_cred_check(sock, l->agent->cfg.owner) != 0) {
		u_log_ratelimited(&l->ratelimit[AG_RATELIMIT_CUT],
				  "port %s: an unauthorised user at the cable was refused",
				  l->port->limits.name);
		u_hang_up(sock);
		return;
	}
	u_rights_pass(sock, true);
	rc = port_emu_plug(l->emu, sock);
	if (rc != 0)
		u_log_ratelimited(&l->ratelimit[AG_RATELIMIT_CUT], "port %s: cable refused: %s",
				  l->port->limits.name, u_fd_error(-rc, text));
	ag_link_service(l);
}

/* The neighbour tries again; do not spin on it meanwhile. */
static void accept_later(struct ag_link *l)
{
	epoll_ctl(l->agent->epoll, EPOLL_CTL_DEL, l->cable_sock, NULL);
	l->retry_at = u_now_ns() + AG_RETRY_NS;
}

void ag_link_accept(struct ag_link *l)
{
	char text[U_FD_ERROR];
	int sock;

	if (!ag_closing_keeps_up(l->agent)) {
		accept_later(l);
		return;
	}
	sock = accept4(l->cable_sock, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (sock >= 0) {
		cable_plug(l, sock);
	} else if (errno == EMFILE || errno == ENFILE) {
		u_log_ratelimited(&l->ratelimit[AG_RATELIMIT_SETUP], "link %s stays down: %s",
				  l->port->limits.name, u_fd_error(errno, text));
		accept_later(l);
	}
}

static void cable_connect(struct ag_link *l)
{
	struct sockaddr_un un;
	socklen_t len = w_cable_addr(&un, l->agent->cfg.owner, l->agent->fabric, l->peer_host,
				     l->peer_port);
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	char text[U_FD_ERROR];

	if (sock < 0) {
		u_log_ratelimited(&l->ratelimit[AG_RATELIMIT_SETUP], "link %s stays down: %s",
				  l->port->limits.name, u_fd_error(errno, text));
		return;
	}
	u_rights_pass(sock, false);
	if (connect(sock, (struct sockaddr *)&un, len) != 0) {
		close(sock);
		return;
	}
	cable_plug(l, sock);
}

static int cable_listen(struct ag_link *l)
{
	struct ag_agent *a = l->agent;
	struct sockaddr_un un;
	socklen_t len = w_cable_addr(&un, a->cfg.owner, a->fabric, a->cfg.host_id, l->index);

	l->cable_sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (l->cable_sock < 0)
		return -errno;
	u_rights_pass(l->cable_sock, false);
	if (bind(l->cable_sock, (struct sockaddr *)&un, len) != 0) {
		u_error("ag", "the cable address of port %s of host %u of fabric %s is taken: %s",
			l->port->limits.name, a->cfg.host_id, a->fabric, strerror(errno));
		return errno == EADDRINUSE ? -EBUSY : -errno;
	}
	if (listen(l->cable_sock, AG_BACKLOG) != 0)
		return -errno;
	return ag_watch(a, l->cable_sock, EPOLLIN, AG_EV(AG_EV_CABLE, l->index));
}

static int64_t cable_timers(struct ag_link *l, int64_t now)
{
	if (l->admin_down || (l->enabled && port_emu_plugged(l->emu)))
		return U_NEVER;
	if (now < l->retry_at)
		return l->retry_at;
	l->retry_at = now + AG_RETRY_NS;
	if (!l->enabled)
		l->enabled = port_link_enable(l->port) == 0;
	if (l->cable_sock >= 0)
		ag_watch(l->agent, l->cable_sock, EPOLLIN, AG_EV(AG_EV_CABLE, l->index));
	else if (!port_emu_plugged(l->emu))
		cable_connect(l);
	if (l->listens && l->enabled)
		return U_NEVER; /* the neighbour comes to us */
	return l->retry_at;
}

static bool may_fault(const struct ag_link *l)
{
	return strstr(l->port->limits.kind, "fault") != NULL;
}

int64_t ag_link_timers(struct ag_link *l, int64_t now)
{
	int64_t next, ctl, other = U_NEVER;

	if (l->broken != NULL)
		link_cut(l, now);
	next = cable_timers(l, now);
	if (may_fault(l)) {
		ag_link_check(l);
		other = now + FAULT_POLL_NS;
	}
	if (l->setup_again_at != 0 && now >= l->setup_again_at) {
		l->setup_again_at = 0;
		ag_link_check(l);
	}
	if (l->state == AG_LINK_SETUP && now >= l->setup_until) {
		ag_link_reset(l, "the link could not be set up");
		ag_link_check(l);
	}
	if (l->setup_again_at != 0 && l->setup_again_at < other)
		other = l->setup_again_at;
	if (l->state == AG_LINK_SETUP) {
		if (now >= l->announce_at)
			announce(l);
		setup_step(l);
		other = now + SETUP_POLL_NS;
	} else if (l->state == AG_LINK_UP) {
		ctl = ag_record_timers(l, now);
		other = ctl < other ? ctl : other;
	}
	return next < other ? next : other;
}

/* ---- making and ending ---- */

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
	int rc;

	snprintf(pc.name, sizeof(pc.name), "%s",
		 rt_topo_port_name(l->agent->topo, cfg->host_id, l->index));
	if (l->index == 0)
		rc = port_emu_self_create(l->agent->host, &pc, &l->emu);
	else
		rc = port_emu_create(l->agent->host, &pc, &l->emu);
	if (rc != 0)
		return rc;
	rc = port_decorate(l->emu, cfg->port_kind != NULL ? cfg->port_kind : "emu",
			   cfg->fault_options, cfg->seed != 0 ? cfg->seed + l->index : 0, &l->port);
	if (rc != 0)
		port_close(l->emu);
	return rc;
}

static int link_watch(struct ag_link *l)
{
	int rc = 0;

	if (l->index == 0)
		return 0;
	l->event_fd = port_event_fd(l->port);
	if (l->event_fd >= 0)
		rc = ag_watch(l->agent, l->event_fd, EPOLLIN, AG_EV(AG_EV_PORT, l->index));
	if (rc == 0 && l->listens)
		rc = cable_listen(l);
	return rc;
}

int ag_link_create(struct ag_agent *a, uint32_t index)
{
	struct ag_link *l = &a->links[index];
	struct rt_end peer = rt_topo_peer(a->topo, a->cfg.host_id, index);
	int rc;

	l->agent = a;
	l->index = index;
	l->listens = rt_port_listens(a->topo, a->cfg.host_id, index);
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
		ag_link_destroy(l);
	return rc;
}

void ag_link_destroy(struct ag_link *l)
{
	if (l->cable_sock >= 0)
		u_hang_up_listener(l->cable_sock);
	ag_link_reset(l, "the agent leaves");
	port_close(l->port);
	l->port = NULL;
}
