/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Greeting agents, several at a time: an agent that does not answer keeps nobody from the others.  A round has as many
 * calls under way as its width says.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "cl_priv.h"
#include "u_poll.h"
#include "u_time.h"

#define REDIAL_NS INT64_C(10000000)
#define WIDEN_NS INT64_C(100000000) /* after so long without an answer more hosts are called */
#define STOP_NS INT64_C(100000000)  /* between two calls of patience->stop() */

struct round {
	const struct cl_where *w;
	const struct cl_patience *patience; /* NULL: CL_TIMEOUT_MS, and nothing stops the round */
	const unsigned int *hosts;
	unsigned int count, next; /* the hosts before `next` were called */
	struct cl_call calls[CL_HOSTS_MAX];
	unsigned int pending, width;
	int64_t widen_at;
	bool starved; /* there is no descriptor for another call until one ends */
	int (*visit)(void *arg, struct cl_greeted *g);
	void *arg;
};

static int patience_ms(const struct round *r)
{
	return r->patience != NULL ? r->patience->ms : CL_TIMEOUT_MS;
}

/*
 * Ends a call that is on no list, with its result: calls `visit`, then closes the connection, unless `visit` has set
 * its `sock` to -1, or the socket of a call that failed.  Returns what `visit` returned.  A visit may take long, as
 * that of an agent that is silent after its greeting; nothing is read meanwhile, so the other calls get that time in
 * addition.
 */
static int call_end(struct round *r, struct cl_call *c, int rc, struct cl_greeted *g)
{
	int64_t begin = u_now_ns(), took;
	unsigned int i;
	int done;

	g->host = c->host;
	g->rc = rc;
	g->pid = c->sock >= 0 ? cl_call_pid(c->sock) : -1;
	done = r->visit(r->arg, g);
	took = u_now_ns() - begin;
	for (i = 0; i < r->pending; i++)
		r->calls[i].deadline += took;
	if (rc == 0)
		cl_close(&g->agent);
	else if (c->sock >= 0)
		cl_hang_up(c->sock);
	return done;
}

/* Takes a call off the list, where the last one takes its place.  Its socket stays open. */
static void call_drop(struct round *r, unsigned int i)
{
	r->calls[i] = r->calls[--r->pending];
	r->starved = false;
}

/* Writes the error line for a call that was not answered in time, and returns -ETIMEDOUT. */
static int silence(const struct round *r, const struct cl_call *c, char *error)
{
	pid_t pid = cl_call_pid(c->sock);
	char who[40] = "";

	if (pid > 0)
		snprintf(who, sizeof(who), " (pid %d)", (int)pid);
	cl_error(error,
		 "the agent of host %u of fabric %s%s did not answer within %d s; is it stopped? "
		 "kill -CONT continues it, vi_fabric stop ends it",
		 c->host, r->w->fabric, who, patience_ms(r) / 1000);
	return -ETIMEDOUT;
}

/*
 * Reads the agent's answer to a call whose socket is readable.  0 with the connection in `g`, whose socket blocks
 * then; or why there is none, and the socket stays open.  A good answer gives the other calls of a patient round
 * their full time again.
 */
static int call_hear(struct round *r, struct cl_call *c, struct cl_greeted *g)
{
	struct cl_agent agent = {
		.sock = c->sock, .doorbells_fd = -1, .status_fd = -1, .owner = r->w->owner
	};
	unsigned int i;
	int rc = cl_call_welcome(r->w, c->sock, &agent, g->error);

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

/*
 * Calls hosts until as many calls are under way as may be.  Returns what `visit` returned: non-zero ends the
 * round.
 */
static int dial(struct round *r)
{
	struct cl_greeted g = { .agent = { .sock = -1, .doorbells_fd = -1, .status_fd = -1 } };
	struct cl_call *c;
	int rc, done = 0;

	while (done == 0 && r->next < r->count && r->pending < r->width && !r->starved) {
		c = &r->calls[r->pending];
		*c = (struct cl_call){ .host = r->hosts[r->next],
				       .deadline = u_deadline_ms((unsigned long)patience_ms(r)) };
		rc = cl_call_open(r->w, c, g.error);
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

/*
 * Waits until a call can be read, or something else is due: a call to give up or to connect again, more hosts to
 * call, or patience->stop().  `pfd`, with an element for each pending call, says by `revents` which calls can be
 * read.
 */
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

/*
 * The result of a call so far: 0 with the connection in `g`, or -errno with the line; -EINPROGRESS while it has none.
 * Connects again a call whose agent had a full queue.  The call stays on the list, and its socket open.
 */
static int call_poll(struct round *r, struct cl_call *c, bool readable, struct cl_greeted *g)
{
	int rc = 0;

	if (readable)
		return call_hear(r, c, g);
	if (!c->greeted)
		rc = cl_call_connect(r->w, c, g->error);
	if (rc == 0 && u_time_left(c->deadline) == 0)
		rc = silence(r, c, g->error);
	return rc != 0 ? rc : -EINPROGRESS;
}

/*
 * Waits, then polls every call once, the last first, since the last takes the place of one that ends.  Returns
 * what `visit` returned: non-zero ends the round.
 */
static int hear(struct round *r)
{
	struct cl_greeted g = { .agent = { .sock = -1, .doorbells_fd = -1, .status_fd = -1 } };
	struct pollfd pfd[CL_HOSTS_MAX];
	unsigned int i = r->pending;
	struct cl_call c;
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

/*
 * Calls the hosts until each has its result, or until `visit` or patience->stop() ends the round.  Returns 0,
 * what `visit` returned, or -EINTR; hangs up on calls without a result.
 */
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
	int rc; /* of the failure that says most; that an agent is missing says least */
};

/* Does the error say no more than that no agent listens there, or that it has left? */
static bool missing(int rc)
{
	return rc == -ENODEV || rc == -EPIPE;
}

/*
 * For `visit`: takes over the first connection, and ends the round by 1; else keeps the first error other than -ENODEV
 * and -EPIPE, or of these the latest, with its line, and returns 0.
 */
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

/*
 * Connects to the agent that answers first; the hosts are called in their order, one at a time, later more.  0, or the
 * error that says most, with its line, and `out` is as before.
 */
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
