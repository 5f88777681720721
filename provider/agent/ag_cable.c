/* SPDX-License-Identifier: BSD-2-Clause */
/* Cables: the sockets by which the ports of neighbours find each other. */
#include "ag_cable.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ag_admission.h"
#include "ag_cfg.h"
#include "ag_link.h"
#include "ag_loop.h"
#include "ag_ratelimit.h"
#include "ag_setup.h"
#include "ag_state.h"
#include "port.h"
#include "port_emu.h"
#include "u_close.h"
#include "u_fd.h"
#include "u_log.h"
#include "u_time.h"
#include "w_addr.h"

/*
 * Plugs a connected socket into the port, if the process at its other end is the owner's or root's, and handles the
 * events of the port then.  Takes over the socket.
 */
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
	rc = port_emu_plug(l->port, sock);
	if (rc != 0)
		u_log_ratelimited(&l->ratelimit[AG_RATELIMIT_CUT], "port %s: cable refused: %s",
				  l->port->limits.name, u_fd_error(-rc, text));
	ag_setup_service(l);
}

/*
 * Stops accepting for AG_RETRY_NS: the neighbour tries again, and until then the loop must not
 * spin.
 */
static void accept_later(struct ag_link *l)
{
	ag_loop_unwatch(l->agent, l->cable_sock);
	l->retry_at = u_now_ns() + AG_RETRY_NS;
}

void ag_cable_accept(struct ag_link *l)
{
	char text[U_FD_ERROR];
	int sock;

	if (!ag_admission_closing_keeps_up(l->agent)) {
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
	} else if (errno == ENOMEM || errno == ENOBUFS) {
		accept_later(l);
	}
}

/* Connects to the neighbour's cable and plugs it in.  If the neighbour does not listen, nothing happens. */
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

/*
 * Logs which process has the address of the cable, if it listens there, and writes the line to cfg.why, if that is
 * set.
 */
static void address_taken(const struct ag_link *l, const struct sockaddr_un *un, socklen_t len)
{
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	char why[AG_WHY_MAX], who[64] = "a process that does not listen there";
	struct ucred cred;
	socklen_t n = sizeof(cred);

	if (sock >= 0) {
		u_rights_pass(sock, false);
		if (connect(sock, (const struct sockaddr *)un, len) == 0 &&
		    getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &n) == 0)
			snprintf(who, sizeof(who), "uid %u, pid %d", (unsigned int)cred.uid,
				 (int)cred.pid);
		u_hang_up(sock);
	}
	snprintf(why, sizeof(why),
		 "the address of its cable %s is taken by %s; have that process ended, or choose "
		 "another VIADUCT_FABRIC",
		 l->port->limits.name, who);
	u_error("ag", "host %u of fabric %s: %s", l->agent->cfg.host_id, l->agent->fabric, why);
	if (l->agent->cfg.why != NULL)
		memcpy(l->agent->cfg.why, why, sizeof(why));
}

int ag_cable_listen(struct ag_link *l)
{
	struct ag_agent *a = l->agent;
	struct sockaddr_un un;
	socklen_t len = w_cable_addr(&un, a->cfg.owner, a->fabric, a->cfg.host_id, l->index);

	l->cable_sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (l->cable_sock < 0)
		return -errno;
	u_rights_pass(l->cable_sock, false);
	if (bind(l->cable_sock, (struct sockaddr *)&un, len) != 0) {
		if (errno != EADDRINUSE)
			return -errno;
		address_taken(l, &un, len);
		return -EBUSY;
	}
	if (listen(l->cable_sock, AG_BACKLOG) != 0)
		return -errno;
	return ag_loop_watch(a, l->cable_sock, EPOLLIN, AG_EV(AG_EV_CABLE, l->index));
}

int64_t ag_cable_timers(struct ag_link *l, int64_t now)
{
	if (l->admin_down || (l->enabled && (!l->cabled || port_emu_plugged(l->port))))
		return U_NEVER;
	if (now < l->retry_at)
		return l->retry_at;
	l->retry_at = now + AG_RETRY_NS;
	if (!l->enabled)
		l->enabled = port_link_enable(l->port) == 0;
	if (l->cable_sock >= 0)
		ag_loop_watch(l->agent, l->cable_sock, EPOLLIN, AG_EV(AG_EV_CABLE, l->index));
	else if (l->cabled && !port_emu_plugged(l->port))
		cable_connect(l);
	if ((l->listens || !l->cabled) && l->enabled)
		return U_NEVER; /* the neighbour connects to this host */
	return l->retry_at;
}
