/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The handshake with the agent of one host: connecting, HELLO, and WELCOME or the reason why not.
 *
 * A call is made with a socket that does not block; it is connected at once, even to a process that is stopped, or
 * is tried again while the agent's queue is full.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cl_priv.h"
#include "u_close.h"
#include "u_fd.h"
#include "u_time.h"

union answer {
	struct w_ctl_hdr hdr;
	struct w_welcome welcome;
	struct w_refused refused;
	uint8_t bytes[W_CTL_MAX];
};

/* Writes the agent's reason into `error`, and returns -EACCES, -EPROTONOSUPPORT or, for any other status, -ENOMEM. */
static int refused(const union answer *m, char *error)
{
	cl_error(error, "%s", m->refused.text);
	switch (m->refused.status) {
	case W_DENIED:
		return -EACCES;
	case W_BAD_VERSION:
		return -EPROTONOSUPPORT;
	default:
		return -ENOMEM;
	}
}

int cl_call_welcome(const struct cl_where *w, int sock, struct cl_agent *out, char *error)
{
	char text[U_FD_ERROR];
	union answer m;
	int fds[W_CTL_FDS], rc;
	unsigned int n;

	rc = cl_recv(sock, u_now_ns(), &m, fds, &n);
	if (rc == -EPROTONOSUPPORT)
		cl_error(error, "the agent speaks version %u, this library %u; use one release",
			 m.hdr.version, W_CTL_VERSION);
	else if (rc == -EMFILE)
		cl_error(error, "%s", u_fd_error(EMFILE, text));
	else if (rc < 0)
		cl_error(error, "the agent did not answer: %s",
			 rc == -EPIPE ? "it hung up" : strerror(-rc));
	if (rc < 0)
		return rc;
	if (rc == W_WELCOME && n == (w->kind == W_KIND_NIC ? 2u : 0u)) {
		out->doorbells_fd = n == 2 ? fds[0] : -1;
		out->status_fd = n == 2 ? fds[1] : -1;
		out->welcome = m.welcome;
		return 0;
	}
	while (n > 0)
		close(fds[--n]);
	if (rc == W_DONE)
		return refused(&m, error);
	if (rc == W_WELCOME && n == 0) {
		/* A message comes without its descriptors when there is no number for them. */
		cl_error(error, "%s", u_fd_error(EMFILE, text));
		return -EMFILE;
	}
	cl_error(error, "the agent answered nonsense (type %d)", rc);
	return -EPROTO;
}

pid_t cl_call_pid(int sock)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	return getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0 && cred.pid > 0
		       ? cred.pid
		       : -1;
}

pid_t cl_agent_pid(const struct cl_agent *agent)
{
	return cl_call_pid(agent->sock);
}

pid_t cl_listener_pid(uid_t owner, const char *fabric, unsigned int host)
{
	struct sockaddr_un un;
	socklen_t len = w_agent_addr(&un, owner, fabric, host);
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	pid_t pid = -1;

	if (sock < 0)
		return -1;
	u_rights_pass(sock, false);
	if (connect(sock, (const struct sockaddr *)&un, len) == 0 &&
	    w_agent_cred_check(sock, owner) == 0)
		pid = cl_call_pid(sock);
	u_hang_up(sock);
	return pid;
}

/* Sends HELLO, and marks the call as greeted in any case.  If that fails, reading the answer tells. */
static void greet(struct cl_call *c, uint32_t kind)
{
	struct w_hello hello = { .kind = kind, .pid = (uint32_t)getpid() };

	snprintf(hello.program, sizeof(hello.program), "%s", program_invocation_short_name);
	w_ctl_init(&hello, W_HELLO, sizeof(hello));
	/* An agent that refused the call has hung up, but its reason can still be read. */
	w_ctl_send(c->sock, &hello, NULL, 0);
	c->greeted = true;
}

/*
 * A process of another user listens at the agent's address, or one whose user cannot be seen from here: hangs
 * up, so that c->sock is -1, and returns -EACCES with the reason in `error`.
 */
static int distrust(const struct cl_where *w, struct cl_call *c, char *error)
{
	int rc = cl_distrust(w, c->host, c->sock, error);

	u_hang_up(c->sock);
	c->sock = -1;
	return rc;
}

int cl_call_connect(const struct cl_where *w, struct cl_call *c, char *error)
{
	struct sockaddr_un un;
	socklen_t len = w_agent_addr(&un, w->owner, w->fabric, c->host);

	if (connect(c->sock, (const struct sockaddr *)&un, len) == 0) {
		if (w_agent_cred_check(c->sock, w->owner) != 0)
			return distrust(w, c, error);
		u_rights_pass(c->sock, true);
		greet(c, w->kind);
		return 0;
	}
	if (errno == EAGAIN || errno == EINTR)
		return 0; /* its queue is full */
	cl_error(error,
		 "host %u of fabric %s has no agent (%s); start the fabric with vi_fabric up, the "
		 "host with vi_fabric start, or choose another with VIADUCT_FABRIC and "
		 "VIADUCT_HOST",
		 c->host, w->fabric, strerror(errno));
	return errno == ECONNREFUSED || errno == ENOENT ? -ENODEV : -errno;
}

int cl_call_open(const struct cl_where *w, struct cl_call *c, char *error)
{
	char text[U_FD_ERROR];
	int rc;

	c->sock = u_fd_above_std(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
	if (c->sock >= 0) {
		/* Any process may listen there. */
		u_rights_pass(c->sock, false);
		return cl_call_connect(w, c, error);
	}
	rc = -errno;
	cl_error(error, "no socket to the agent: %s", u_fd_error(-rc, text));
	return rc;
}
