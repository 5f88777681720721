/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Accepting processes: the socket to which they connect, and the choice of those that become
 * clients.
 */
#include "ag_accept.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "ag_admission.h"
#include "ag_client.h"
#include "ag_list.h"
#include "ag_loop.h"
#include "ag_ratelimit.h"
#include "ag_state.h"
#include "u_close.h"
#include "u_fd.h"
#include "u_log.h"
#include "u_time.h"
#include "w_addr.h"
#include "w_ctl.h"

#define ACCEPT_BATCH 16 /* connections accepted before the clients that exist are served again */

/*
 * Makes a socket with the agent's address, not listening yet.  0 or -errno; a->listen_sock is set after some errors,
 * too.
 */
static int listener_bind(struct ag_agent *a, const struct sockaddr_un *un, socklen_t len)
{
	a->listen_sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (a->listen_sock < 0)
		return -errno;
	a->rights_kept_out = u_rights_pass(a->listen_sock, false);
	return bind(a->listen_sock, (const struct sockaddr *)un, len) == 0 ? 0 : -errno;
}

/* Has the socket that value of an integer option?  False, too, if the option cannot be read. */
static bool option_is(int sock, int option, int expected)
{
	int value = 0;
	socklen_t len = sizeof(value);

	return getsockopt(sock, SOL_SOCKET, option, &value, &len) == 0 && value == expected;
}

/*
 * Takes the socket that the configuration gives, if programs look for this agent there.  Its file
 * is shared with the giver, so it is never shut down, and connections that were made before can have
 * descriptors in their queues.  0, -EINVAL (logged) or another -errno; only with 0 a->listen_sock is set.
 */
static int listener_take(struct ag_agent *a, const struct sockaddr_un *un, socklen_t len)
{
	int flags, sock = a->cfg.listen_sock;
	struct sockaddr_un at = { .sun_family = AF_UNSPEC };
	socklen_t at_len = sizeof(at);

	if (!option_is(sock, SO_DOMAIN, AF_UNIX) || !option_is(sock, SO_TYPE, SOCK_SEQPACKET) ||
	    !option_is(sock, SO_ACCEPTCONN, 1)) {
		u_error("ag",
			"descriptor %d was handed over and is not a listening Unix socket of "
			"sequenced packets (ListenSequentialPacket)",
			sock);
		return -EINVAL;
	}
	if (getsockname(sock, (struct sockaddr *)&at, &at_len) != 0 || at_len != len ||
	    memcmp(&at, un, len) != 0) {
		u_error("ag",
			"the socket that was handed over does not listen at @%s, where programs "
			"look for host %u of fabric %s; make its unit agree with the options",
			un->sun_path + 1, a->cfg.host_id, a->fabric);
		return -EINVAL;
	}
	flags = fcntl(sock, F_GETFL);
	if (flags < 0 || fcntl(sock, F_SETFL, flags | O_NONBLOCK) != 0 ||
	    fcntl(sock, F_SETFD, FD_CLOEXEC) != 0)
		return -errno;
	u_rights_pass(sock, false);
	a->listen_sock = sock;
	return 0;
}

int ag_accept_open(struct ag_agent *a)
{
	struct sockaddr_un un;
	socklen_t len = w_agent_addr(&un, a->cfg.owner, a->fabric, a->cfg.host_id);
	int rc;

	a->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (a->spare_fd < 0)
		return -errno;
	rc = a->cfg.listen_sock == 0 ? listener_bind(a, &un, len) : listener_take(a, &un, len);
	if (rc != 0)
		return rc;
	/* A process that connects from now on sees by the credentials which process the agent is. */
	if (listen(a->listen_sock, AG_BACKLOG) != 0)
		return -errno;
	return ag_loop_watch(a, a->listen_sock, EPOLLIN, AG_EV(AG_EV_LISTEN, 0));
}

void ag_accept_lower_spare(struct ag_agent *a)
{
	int lower = fcntl(a->spare_fd, F_DUPFD_CLOEXEC, 0);

	if (lower < 0)
		return;
	close(lower < a->spare_fd ? a->spare_fd : lower);
	if (lower < a->spare_fd)
		a->spare_fd = lower;
}

void ag_accept_close(struct ag_agent *a)
{
	if (a->listen_sock < 0)
		return;
	if (a->cfg.listen_sock == 0)
		u_hang_up_listener(a->listen_sock);
	else
		close(a->listen_sock);
	a->listen_sock = -1;
}

int64_t ag_accept_timer(struct ag_agent *a, int64_t now)
{
	if (a->listen_again_at == 0)
		return U_NEVER;
	if (now < a->listen_again_at)
		return a->listen_again_at;
	a->listen_again_at = 0;
	if (a->spare_fd < 0)
		a->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	ag_loop_watch(a, a->listen_sock, EPOLLIN, AG_EV(AG_EV_LISTEN, 0));
	return U_NEVER;
}

/*
 * Drops the oldest connection of a user that has not sent HELLO, if there are too many, to make
 * room for a new one.
 */
static void drop_silent(struct ag_agent *a, uid_t uid)
{
	struct ag_client *c, *oldest = NULL;
	struct ag_list *pos, *tmp;
	uint32_t silent = 0;

	ag_list_each(pos, tmp, &a->clients)
	{
		c = ag_list_entry(pos, struct ag_client, node);
		if (c->uid != uid || c->gone || c->kind != 0 || c->leaving)
			continue;
		silent++;
		if (oldest == NULL)
			oldest = c; /* the list is in the order in which they came */
	}
	if (silent >= a->user_silent)
		ag_client_drop(oldest, "has not said HELLO, like too many of its user");
}

/*
 * Makes a client of an accepted connection, or turns it away with the reason.  Takes over the socket.  If the
 * process is allowed, first drops the oldest connection of its user without HELLO, if there are too many.
 */
static void client_admit(struct ag_agent *a, int sock)
{
	struct ucred cred = { .uid = (uid_t)-1 };
	char text[128];
	int rc;

	if (!ag_admission_allowed(a, sock, &cred)) {
		u_log_ratelimited(&a->ratelimit[AG_RATELIMIT_CLIENT],
				  "uid %u may not use fabric %s", (unsigned int)cred.uid,
				  a->fabric);
		snprintf(text, sizeof(text),
			 "fabric %s belongs to uid %u and is not open to uid %u", a->fabric,
			 (unsigned int)a->cfg.owner, (unsigned int)cred.uid);
		ag_admission_turn_away(sock, W_DENIED, text);
		return;
	}
	drop_silent(a, cred.uid);
	rc = ag_client_new(a, sock, &cred);
	if (rc == -EDQUOT)
		snprintf(text, sizeof(text),
			 "pid %d or its user, uid %u, has as many connections to this agent as it "
			 "may have",
			 (int)cred.pid, (unsigned int)cred.uid);
	if (rc != 0)
		ag_admission_turn_away(sock, W_NO_RESOURCE,
				       rc == -EDQUOT ? text
						     : "the agent has no room for another process");
}

/* Stops accepting for AG_RETRY_NS. */
static void accept_later(struct ag_agent *a)
{
	ag_loop_unwatch(a, a->listen_sock);
	a->listen_again_at = u_now_ns() + AG_RETRY_NS;
}

/*
 * accept4() has failed with `err`, EMFILE or ENFILE: turns one waiting process away by the spare descriptor, which it
 * opens again.  If there is no descriptor even so, stops accepting for AG_RETRY_NS.
 */
static void accept_starved(struct ag_agent *a, int err)
{
	char text[U_FD_ERROR], told[U_FD_ERROR + 16];
	int sock;

	if (a->spare_fd >= 0)
		close(a->spare_fd);
	sock = accept4(a->listen_sock, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (sock >= 0) {
		u_log_ratelimited(&a->ratelimit[AG_RATELIMIT_CLIENT],
				  "a process was turned away: %s", u_fd_error(err, text));
		snprintf(told, sizeof(told), "the agent has %s", text);
		ag_admission_turn_away(sock, W_NO_RESOURCE, told);
	} else if (errno != EAGAIN) {
		accept_later(a);
	}
	a->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

void ag_accept(struct ag_agent *a)
{
	int i, sock;

	for (i = 0; i < ACCEPT_BATCH; i++) {
		if (!ag_admission_closing_keeps_up(a)) {
			accept_later(a);
			return;
		}
		sock = accept4(a->listen_sock, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (sock >= 0) {
			client_admit(a, sock);
		} else if (errno == EMFILE || errno == ENFILE) {
			accept_starved(a, errno);
			return;
		} else if (errno != ECONNABORTED && errno != EINTR) {
			/* Where the kernel has no memory the loop must not spin. */
			if (errno != EAGAIN)
				accept_later(a);
			return;
		}
	}
}
