/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Greeting agents, several at a time: none that does not answer keeps anybody from the others.
 *
 * A call is made with a socket that does not block; its connection stands at once, even to a
 * process that is stopped, or is tried again while the agent's queue is full.  A round has as many
 * calls under way as its width says.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cl_priv.h"
#include "u_close.h"
#include "u_fd.h"
#include "u_poll.h"
#include "u_time.h"

#define REDIAL_NS INT64_C(10000000)
#define WIDEN_NS INT64_C(100000000) /* before more are asked than those that are silent */
#define STOP_NS INT64_C(100000000)  /* between two questions whether to stop */

struct call {
	unsigned int host;
	int sock;
	bool greeted; /* HELLO is sent */
	int64_t deadline;
};

struct round {
	const struct cl_where *w;
	const struct cl_patience *patience; /* NULL: of CL_TIMEOUT_MS, and nothing stops it */
	const unsigned int *hosts;
	unsigned int count, next; /* hosts that were called before it */
	struct call calls[CL_HOSTS_MAX];
	unsigned int pending, width;
	int64_t widen_at;
	bool starved; /* no descriptor for another call until one of these ends */
	int (*visit)(void *arg, struct cl_greeted *g);
	void *arg;
};

union answer {
	struct w_ctl_hdr hdr;
	struct w_welcome welcome;
	struct w_refused refused;
	uint8_t bytes[W_CTL_MAX];
};

static int patience_ms(const struct round *r)
{
	return r->patience != NULL ? r->patience->ms : CL_TIMEOUT_MS;
}

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

/* Returns 0, or why not; -EPIPE when the agent left meanwhile. */
static int welcomed(const struct cl_where *w, int sock, struct cl_agent *out, char *error)
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
		/* A message keeps none of its descriptors when there is no number for them. */
		cl_error(error, "%s", u_fd_error(EMFILE, text));
		return -EMFILE;
	}
	cl_error(error, "the agent answered nonsense (type %d)", rc);
	return -EPROTO;
}

/* The process that listens at the other end; -1: not connected, or the socket does not tell. */
static pid_t listener_pid(int sock)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	return getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0 && cred.pid > 0
		       ? cred.pid
		       : -1;
}

pid_t cl_agent_pid(const struct cl_agent *agent)
{
	return listener_pid(agent->sock);
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
		pid = listener_pid(sock);
	u_hang_up(sock);
	return pid;
}

static void greet(struct call *c, uint32_t kind)
{
	struct w_hello hello = { .kind = kind, .pid = (uint32_t)getpid() };

	snprintf(hello.program, sizeof(hello.program), "%s", program_invocation_short_name);
	w_ctl_init(&hello, W_HELLO, sizeof(hello));
	/* An agent that turned us away has hung up, but its reason can still be read. */
	w_ctl_send(c->sock, &hello, NULL, 0);
	c->greeted = true;
}

/* Somebody else listens at the agent's address, or one whose user cannot be seen from here. */
static int distrust(const struct cl_where *w, struct call *c, char *error)
{
	int rc = cl_distrust(w, c->host, c->sock, error);

	u_hang_up(c->sock);
	c->sock = -1;
	return rc;
}

/* Returns 0 when it is greeted, or when it is to be tried again. */
static int connect_once(const struct round *r, struct call *c, char *error)
{
	const struct cl_where *w = r->w;
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

static int call_open(const struct round *r, struct call *c, char *error)
{
	char text[U_FD_ERROR];
	int rc;

	c->sock = u_fd_above_std(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
	if (c->sock >= 0) {
		/* Any process may listen there. */
		u_rights_pass(c->sock, false);
		return connect_once(r, c, error);
	}
	rc = -errno;
	cl_error(error, "no socket to the agent: %s", u_fd_error(-rc, text));
	return rc;
}

/* A call is over.  Calls `visit`, and returns its answer. */
static int call_end(struct round *r, struct call *c, int rc, struct cl_greeted *g)
{
	int done;

	g->host = c->host;
	g->rc = rc;
	g->pid = c->sock >= 0 ? listener_pid(c->sock) : -1;
	done = r->visit(r->arg, g);
	if (rc == 0)
		cl_close(&g->agent);
	else if (c->sock >= 0)
		cl_hang_up(c->sock);
	return done;
}

static void call_drop(struct round *r, unsigned int i)
{
	r->calls[i] = r->calls[--r->pending];
	r->starved = false;
}

static int silence(const struct round *r, const struct call *c, char *error)
{
	pid_t pid = listener_pid(c->sock);
	char who[40] = "";

	if (pid > 0)
		snprintf(who, sizeof(who), " (pid %d)", (int)pid);
	cl_error(error,
		 "the agent of host %u of fabric %s%s did not answer within %d s; is it stopped? "
		 "kill -CONT continues it, vi_fabric stop ends it",
		 c->host, r->w->fabric, who, patience_ms(r) / 1000);
	return -ETIMEDOUT;
}

/* Reads the agent's answer to a call whose socket is readable. */
static int call_hear(struct round *r, struct call *c, struct cl_greeted *g)
{
	struct cl_agent agent = {
		.sock = c->sock, .doorbells_fd = -1, .status_fd = -1, .owner = r->w->owner
	};
	unsigned int i;
	int rc = welcomed(r->w, c->sock, &agent, g->error);

	if (rc != 0)
		return rc;
	fcntl(c->sock, F_SETFL, fcntl(c->sock, F_GETFL) & ~O_NONBLOCK);
	g->agent = agent;
	if (r->patience == NULL)
		return 0;
	g->agent.patience_ms = r->patience->ms;
	for (i = 0; i < r->pending; i++)
		r->calls[i].deadline = u_deadline_ms((unsigned long)r->patience->ms);
	return 0;
}

/* Calls hosts until as many calls are under way as may be. */
static int dial(struct round *r)
{
	struct cl_greeted g = { .agent = { .sock = -1, .doorbells_fd = -1, .status_fd = -1 } };
	struct call *c;
	int rc, done = 0;

	while (done == 0 && r->next < r->count && r->pending < r->width && !r->starved) {
		c = &r->calls[r->pending];
		*c = (struct call){ .host = r->hosts[r->next],
				    .deadline = u_deadline_ms((unsigned long)patience_ms(r)) };
		rc = call_open(r, c, g.error);
		if ((rc == -EMFILE || rc == -ENFILE) && r->pending > 0) {
			r->starved = true;
			return 0;
		}
		r->next++;
		if (rc == 0)
			r->pending++;
		else
			done = call_end(r, c, rc, &g);
	}
	return done;
}

static int64_t earlier(int64_t x, int64_t y)
{
	return x < y ? x : y;
}

/* Waits until a call can be read, or something else is due.  The calls' own words go to `pfd`. */
static void await(struct round *r, struct pollfd *pfd)
{
	int64_t now = u_now_ns(), until = U_NEVER;
	unsigned int i;

	if (r->next < r->count && !r->starved)
		until = r->widen_at;
	for (i = 0; i < r->pending; i++) {
		pfd[i] = (struct pollfd){ .fd = r->calls[i].sock, .events = POLLIN };
		until = earlier(until, r->calls[i].deadline);
		if (!r->calls[i].greeted) {
			pfd[i].fd = -1;
			until = earlier(until, now + REDIAL_NS);
		}
	}
	if (r->patience != NULL)
		until = earlier(until, now + STOP_NS);
	if (u_poll(pfd, r->pending, until) < 0) {
		for (i = 0; i < r->pending; i++)
			pfd[i].revents = 0;
	}
}

/* The result of a call so far; -EINPROGRESS while it has none. */
static int call_poll(struct round *r, struct call *c, bool readable, struct cl_greeted *g)
{
	int rc = 0;

	if (readable)
		return call_hear(r, c, g);
	if (!c->greeted)
		rc = connect_once(r, c, g->error);
	if (rc == 0 && u_time_left(c->deadline) == 0)
		rc = silence(r, c, g->error);
	return rc != 0 ? rc : -EINPROGRESS;
}

/* Looks at every call once, the last first: the last takes the place of one that ends. */
static int hear(struct round *r)
{
	struct cl_greeted g = { .agent = { .sock = -1, .doorbells_fd = -1, .status_fd = -1 } };
	struct pollfd pfd[CL_HOSTS_MAX];
	unsigned int i = r->pending;
	struct call c;
	int rc, done = 0;

	await(r, pfd);
	while (done == 0 && i-- > 0) {
		rc = call_poll(r, &r->calls[i], pfd[i].revents != 0, &g);
		if (rc == -EINPROGRESS)
			continue;
		c = r->calls[i];
		call_drop(r, i);
		done = call_end(r, &c, rc, &g);
	}
	return done;
}

static int round_run(struct round *r)
{
	int done;

	r->widen_at = u_now_ns() + WIDEN_NS;
	do {
		if (u_time_left(r->widen_at) == 0) {
			r->width = r->width * 2 < CL_HOSTS_MAX ? r->width * 2 : CL_HOSTS_MAX;
			r->widen_at = u_now_ns() + WIDEN_NS;
		}
		done = dial(r);
		if (done == 0 && r->pending > 0)
			done = hear(r);
		if (done == 0 && r->patience != NULL && r->patience->stop())
			done = -EINTR;
	} while (done == 0 && (r->pending > 0 || r->next < r->count));
	while (r->pending > 0)
		cl_hang_up(r->calls[--r->pending].sock);
	return done;
}

int cl_greet_all(uid_t owner, const char *fabric, unsigned int hosts,
		 int (*visit)(void *arg, struct cl_greeted *g), void *arg)
{
	struct cl_where w = { .owner = owner, .kind = W_KIND_TOOL };
	unsigned int all[CL_HOSTS_MAX], i;
	struct round r = {
		.w = &w, .hosts = all, .width = CL_HOSTS_MAX, .visit = visit, .arg = arg
	};

	snprintf(w.fabric, sizeof(w.fabric), "%s", fabric);
	r.count = hosts < CL_HOSTS_MAX ? hosts : CL_HOSTS_MAX;
	for (i = 0; i < r.count; i++)
		all[i] = i;
	return round_run(&r);
}

int cl_greet_patiently(uid_t owner, const char *fabric, const unsigned int *hosts,
		       unsigned int count, const struct cl_patience *patience,
		       int (*visit)(void *arg, struct cl_greeted *g), void *arg)
{
	struct cl_where w = { .owner = owner, .kind = W_KIND_TOOL };
	struct round r = { .w = &w,
			   .patience = patience,
			   .hosts = hosts,
			   .count = count,
			   .width = CL_HOSTS_MAX,
			   .visit = visit,
			   .arg = arg };

	snprintf(w.fabric, sizeof(w.fabric), "%s", fabric);
	return round_run(&r);
}

/* ---- one agent ---- */

struct wanted {
	struct cl_agent *out;
	char *error;
	int rc; /* of the most telling failure: a missing agent is the least of them */
};

static bool missing(int rc)
{
	return rc == -ENODEV || rc == -EPIPE;
}

static int take(void *arg, struct cl_greeted *g)
{
	struct wanted *want = arg;

	if (g->rc == 0) {
		*want->out = g->agent;
		g->agent.sock = g->agent.doorbells_fd = g->agent.status_fd = -1;
		want->rc = 0;
		return 1;
	}
	if (missing(want->rc)) {
		want->rc = g->rc;
		cl_error(want->error, "%s", g->error);
	}
	return 0;
}

static int open_first(const struct cl_where *w, const unsigned int *hosts, unsigned int count,
		      struct cl_agent *out, char *error)
{
	struct wanted want = { .out = out, .error = error, .rc = -ENODEV };
	struct round r = {
		.w = w, .hosts = hosts, .count = count, .width = 1, .visit = take, .arg = &want
	};

	round_run(&r);
	return want.rc;
}

int cl_open_at(const struct cl_where *w, unsigned int host, struct cl_agent *out, char *error)
{
	return open_first(w, &host, 1, out, error);
}

int cl_open_any(const struct cl_where *w, unsigned int first, struct cl_agent *out, char *error)
{
	unsigned int order[CL_HOSTS_MAX], i, n = 0;

	order[n++] = first;
	for (i = 0; i < CL_HOSTS_MAX; i++) {
		if (i != first)
			order[n++] = i;
	}
	return open_first(w, order, n, out, error);
}

int cl_open_host(uid_t owner, const char *fabric, unsigned int host, uint32_t kind,
		 struct cl_agent *out, char *error)
{
	struct cl_where w = { .owner = owner, .kind = kind };

	snprintf(w.fabric, sizeof(w.fabric), "%s", fabric);
	out->sock = out->doorbells_fd = out->status_fd = -1;
	return cl_open_at(&w, host, out, error);
}

int cl_open_some(uid_t owner, const char *fabric, struct cl_agent *out, char *error)
{
	struct cl_where w = { .owner = owner, .kind = W_KIND_TOOL };

	snprintf(w.fabric, sizeof(w.fabric), "%s", fabric);
	out->sock = out->doorbells_fd = out->status_fd = -1;
	return cl_open_any(&w, 0, out, error);
}

void cl_close(struct cl_agent *agent)
{
	if (agent->sock >= 0)
		cl_hang_up(agent->sock);
	if (agent->doorbells_fd >= 0)
		close(agent->doorbells_fd);
	if (agent->status_fd >= 0)
		close(agent->status_fd);
	agent->sock = agent->doorbells_fd = agent->status_fd = -1;
}
