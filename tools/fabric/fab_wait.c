/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Each agent is asked for its ports one by one, and repeatedly for those whose links are not up yet.  The wait
 * continues while something advances, however long it takes: an agent has answered for the first time, a link is up,
 * or agents that owed an answer have given it.  If all answer and report nothing new, a round of questions counts
 * with the time that it took, but at most with ROUND_MS: on a machine that is so busy that answers take long, links
 * take long, too.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fab_wait.h"
#include "u_base.h"
#include "u_fd.h"
#include "u_time.h"

void fab_end_signals(sigset_t *out)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction sa;
	size_t i;

	sigemptyset(out);
	for (i = 0; i < U_ARRAY_SIZE(signals); i++) {
		if (sigaction(signals[i], NULL, &sa) == 0 && sa.sa_handler != SIG_IGN)
			sigaddset(out, signals[i]);
	}
}

bool fab_interrupted(void)
{
	sigset_t wanted, pending;

	fab_end_signals(&wanted);
	sigpending(&pending);
	sigandset(&pending, &pending, &wanted);
	return !sigisemptyset(&pending);
}

/* ---- the agents ---- */

const struct fab_patience fab_links_patience = { .silent_ms = 30000, .quiet_ms = 10000 };

struct fab_links *fab_links_create(int only, char *error)
{
	struct fab_links *l = calloc(1, sizeof(*l));

	if (l == NULL)
		snprintf(error, CL_ERROR_MAX, "out of memory");
	else
		l->only = only;
	return l;
}

static void leave(struct fab_links *l, unsigned int host)
{
	if (l->ports[host].open)
		cl_close(&l->agents[host]);
	l->ports[host] = (struct fab_ports){ .open = false };
}

void fab_links_destroy(struct fab_links *l)
{
	unsigned int host;

	for (host = 0; l != NULL && host < CL_HOSTS_MAX; host++)
		leave(l, host);
	free(l);
}

/* Writes into `error` that an agent which has listened is gone.  It had the limits of this process. */
static void say_ended(unsigned int host, const char *when, char *error)
{
	char text[U_FD_ERROR];
	const char *limits = u_memory_limits(text);

	snprintf(error, CL_ERROR_MAX,
		 "the agent of host %u ended %s%s%s; set VIADUCT_LOG_FILE to see why", host, when,
		 limits != NULL ? ", maybe for want of memory: " : "",
		 limits != NULL ? limits : "");
}

struct opening {
	struct fab_links *l;
	int rc; /* the first failure */
	char *error;
};

static int open_visit(void *arg, struct cl_greeted *g)
{
	struct opening *o = arg;

	/* a lack of this process, not of the agent */
	bool mine = g->rc == -EMFILE || g->rc == -ENFILE;

	if (g->rc == 0) {
		o->l->agents[g->host] = g->agent;
		o->l->ports[g->host].open = true;
		g->agent.sock = g->agent.doorbells_fd = g->agent.status_fd = -1;
	} else if (o->rc == 0 && (mine || o->l->only < 0 || (int)g->host == o->l->only)) {
		o->rc = g->rc;
		if (g->rc == -ENODEV || g->rc == -EPIPE)
			say_ended(g->host, "when it had just started", o->error);
		else
			snprintf(o->error, CL_ERROR_MAX, "%s", g->error);
	}
	return o->rc;
}

int fab_links_open(struct fab_links *l, const struct fabric *f, const unsigned int *hosts,
		   unsigned int count, const struct fab_patience *p, char *error)
{
	struct cl_patience patience = { .ms = p->silent_ms, .stop = fab_interrupted };
	struct opening o = { .l = l, .error = error };
	int rc = cl_greet_patiently(f->owner, f->name, hosts, count, &patience, open_visit, &o);

	return o.rc != 0 ? o.rc : rc;
}

/* ---- their ports ---- */

bool fab_links_wanted(const struct fab_links *l, unsigned int host, uint32_t i)
{
	unsigned int peer = l->ports[host].peers[i];

	if (l->only < 0)
		return true;
	return peer != host && peer < CL_HOSTS_MAX && l->ports[peer].open &&
	       (l->only == (int)host || l->only == (int)peer);
}

/* Returns the first port from `i` on about which the agent is to be asked; W_PORTS_MAX: none. */
static uint32_t next(const struct fab_links *l, unsigned int host, uint32_t i)
{
	const struct fab_ports *p = &l->ports[host];

	if (!p->counted)
		return i;
	for (; i < p->n; i++) {
		if ((p->up & 1u << i) == 0 && fab_links_wanted(l, host, i))
			return i;
	}
	return W_PORTS_MAX;
}

static bool done(const struct fab_links *l, unsigned int host)
{
	return !l->ports[host].open || next(l, host, 0) == W_PORTS_MAX;
}

/* Asks about the first port from `i` on; there may be none. */
static int ask(struct fab_links *l, unsigned int host, uint32_t i)
{
	struct fab_ports *p = &l->ports[host];
	int rc;

	i = next(l, host, i);
	if (i == W_PORTS_MAX) {
		p->passed = true;
		return 0;
	}
	rc = cl_list_ask(&l->agents[host], W_LIST_PORTS, i);
	p->asked = rc == 0;
	p->asked_at = u_now_ns();
	p->at = i;
	return rc;
}

/* Takes in the agent's answer about port `at`.  True if it is news. */
static bool take(struct fab_ports *p, const char *text)
{
	struct json_object *o = json_tokener_parse(text), *peer;
	bool up = strcmp(fab_text(o, "link"), "up") == 0, news = !p->counted || up;

	p->peers[p->at] = CL_HOSTS_MAX;
	if (json_object_object_get_ex(o, "peer", &peer))
		p->peers[p->at] = (unsigned int)json_object_get_int(peer);
	snprintf(p->names[p->at], sizeof(p->names[0]), "%s", fab_text(o, "name"));
	if (up)
		p->up |= 1u << p->at;
	json_object_put(o);
	return news;
}

/* Reads from an agent that has written something, or hung up.  1: news, 0: none, or -errno. */
static int hear(struct fab_links *l, unsigned int host)
{
	struct fab_ports *p = &l->ports[host];
	char text[400];
	int rc = cl_list_hear(&l->agents[host], text);
	bool news;

	if (rc == -EAGAIN || (rc == 0 && !p->asked))
		return 0;
	if (rc != 0 && rc != -ENOENT)
		return rc;
	news = rc == 0 ? take(p, text) : !p->counted;
	p->asked = false;
	if (rc == -ENOENT || p->at + 1 == W_PORTS_MAX) {
		p->n = p->counted ? p->n : p->at + (rc == 0);
		p->counted = p->passed = true;
		return news;
	}
	rc = ask(l, host, p->at + 1);
	return rc != 0 ? rc : news;
}

/* ---- all of them ---- */

#define PAUSE_MS 5	 /* time between two questions to the same agent, at first */
#define PAUSE_MOST_MS 20 /* and at most, while there is no new answer */
#define ROUND_MS 100	 /* the most with which a round counts */

/* The progress of the wait. */
struct pace {
	int64_t advanced_at,
		round_at; /* the last time that something advanced; that a round began */
	int64_t quiet_ns; /* time of the rounds since there was news */
	int pause_ms;
};

/*
 * The agent has ended, or broken the rules.  Returns 0 if it may be missing, so that the wait for
 * the others continues.
 */
static int lost(struct fab_links *l, unsigned int host, int rc, char *error)
{
	if (l->only >= 0 && l->only != (int)host) {
		leave(l, host);
		return 0;
	}
	if (rc == -EPIPE)
		say_ended(host, "while links came up", error);
	else
		snprintf(error, CL_ERROR_MAX,
			 "the agent of host %u cannot be asked for its links: %s", host,
			 strerror(-rc));
	return rc;
}

/* Asks each agent that has answered about the ports whose links are awaited. */
static int ask_all(struct fab_links *l, char *error)
{
	unsigned int host;
	int rc = 0;

	for (host = 0; host < CL_HOSTS_MAX && rc == 0; host++) {
		if (!l->ports[host].asked && !done(l, host))
			rc = ask(l, host, 0);
		if (rc != 0)
			rc = lost(l, host, rc, error);
	}
	return rc;
}

static bool all_done(const struct fab_links *l)
{
	unsigned int host;

	for (host = 0; host < CL_HOSTS_MAX; host++) {
		if (!done(l, host))
			return false;
	}
	return true;
}

/* Lists the connections to agents, and nothing else: poll() refuses more entries than there may be descriptors. */
static nfds_t watch(const struct fab_links *l, struct pollfd *pfd, unsigned int *hosts)
{
	unsigned int host;
	nfds_t n = 0;

	for (host = 0; host < CL_HOSTS_MAX; host++) {
		if (!l->ports[host].open)
			continue;
		pfd[n] = (struct pollfd){ .fd = l->agents[host].sock, .events = POLLIN };
		hosts[n++] = host;
	}
	return n;
}

/*
 * Reads answers of the agents until the pause is over, or all links are up.  1: there was news, 0:
 * none, or -errno.
 */
static int hear_all(struct fab_links *l, int pause_ms, char *error)
{
	int64_t until = u_deadline_ms((unsigned long)pause_ms);
	struct pollfd pfd[CL_HOSTS_MAX];
	unsigned int hosts[CL_HOSTS_MAX];
	int rc, news = 0;
	nfds_t i, n;

	do {
		n = watch(l, pfd, hosts);
		if (poll(pfd, n, (int)((u_time_left(until) + 999999) / 1000000)) < 0)
			continue;
		for (i = 0; i < n; i++) {
			rc = pfd[i].revents != 0 ? hear(l, hosts[i]) : 0;
			if (rc < 0)
				rc = lost(l, hosts[i], rc, error);
			if (rc < 0)
				return rc;
			news |= rc;
		}
	} while (u_time_left(until) > 0 && !all_done(l));
	return news;
}

/* Does an agent still owe an answer to a question of this round? */
static bool owed(const struct fab_links *l)
{
	unsigned int host;

	for (host = 0; host < CL_HOSTS_MAX; host++) {
		if (!done(l, host) && !l->ports[host].passed)
			return true;
	}
	return false;
}

static void advance(struct fab_links *l, struct pace *p, bool news)
{
	int64_t now = u_now_ns(), took = now - p->round_at;
	unsigned int host;

	p->pause_ms = news				? PAUSE_MS
		      : p->pause_ms * 2 < PAUSE_MOST_MS ? p->pause_ms * 2
							: PAUSE_MOST_MS;
	if (news) {
		p->quiet_ns = 0;
		p->advanced_at = now;
	}
	if (owed(l))
		return;
	p->advanced_at = p->round_at = now;
	if (!news)
		p->quiet_ns += took < ROUND_MS * INT64_C(1000000) ? took
								  : ROUND_MS * INT64_C(1000000);
	for (host = 0; host < CL_HOSTS_MAX; host++)
		l->ports[host].passed = false;
}

/* ---- what is missing ---- */

/* Adds words to a list while there is room for them and for «...». */
static void add(char *text, size_t size, const char *words)
{
	size_t at = strlen(text);

	if (at + strlen(words) + 2 + sizeof(", ...") <= size)
		snprintf(text + at, size - at, "%s%s", at > 0 ? ", " : "", words);
	else if (at >= 3 && strcmp(text + at - 3, "...") != 0)
		snprintf(text + at, size - at, ", ...");
}

/*
 * Has the agent not answered a question for the longest time that it may take, and has nothing else
 * advanced since?
 */
static bool is_silent(const struct fab_links *l, unsigned int host, const struct pace *pace,
		      const struct fab_patience *p)
{
	const struct fab_ports *ports = &l->ports[host];
	int64_t since = ports->asked_at > pace->advanced_at ? ports->asked_at : pace->advanced_at;

	return !done(l, host) && ports->asked &&
	       u_now_ns() - since >= p->silent_ms * INT64_C(1000000);
}

static bool any_silent(const struct fab_links *l, const struct pace *pace,
		       const struct fab_patience *p)
{
	unsigned int host;

	for (host = 0; host < CL_HOSTS_MAX; host++) {
		if (is_silent(l, host, pace, p))
			return true;
	}
	return false;
}

static int say_silent(const struct fab_links *l, const struct pace *pace,
		      const struct fab_patience *p, char *error)
{
	char hosts[120] = "", number[16];
	unsigned int host, n = 0;

	for (host = 0; host < CL_HOSTS_MAX; host++) {
		if (!is_silent(l, host, pace, p))
			continue;
		snprintf(number, sizeof(number), "%u", host);
		add(hosts, sizeof(hosts), number);
		n++;
	}
	snprintf(
		error, CL_ERROR_MAX,
		"for %g s no link came up, and the agent%s of host%s %s did not answer; is it stopped?",
		p->silent_ms / 1000.0, n == 1 ? "" : "s", n == 1 ? "" : "s", hosts);
	return -EHOSTDOWN;
}

static int say_quiet(const struct fab_links *l, const struct fab_patience *p, char *error)
{
	char links[140] = "", one[40];
	unsigned int host;
	uint32_t i;

	for (host = 0; host < CL_HOSTS_MAX; host++) {
		for (i = next(l, host, 0); l->ports[host].open && i < W_PORTS_MAX;
		     i = next(l, host, i + 1)) {
			snprintf(one, sizeof(one), "%.15s of host %u", l->ports[host].names[i],
				 host);
			add(links, sizeof(links), one);
		}
	}
	snprintf(error, CL_ERROR_MAX,
		 "links are down, and for %g s no other came up: %s; set VIADUCT_LOG_FILE to see",
		 p->quiet_ms / 1000.0, links);
	return -ETIMEDOUT;
}

int fab_links_wait(struct fab_links *l, const struct fab_patience *p, char *error)
{
	int64_t now = u_now_ns();
	struct pace pace = { .advanced_at = now, .round_at = now, .pause_ms = PAUSE_MS };
	int rc;

	while (!all_done(l)) {
		rc = ask_all(l, error);
		if (rc == 0)
			rc = hear_all(l, pace.pause_ms, error);
		if (rc < 0)
			return rc;
		if (!all_done(l) && fab_interrupted())
			return -EINTR;
		advance(l, &pace, rc > 0);
		if (any_silent(l, &pace, p))
			return say_silent(l, &pace, p, error);
		if (pace.quiet_ns >= p->quiet_ms * INT64_C(1000000))
			return say_quiet(l, p, error);
	}
	return 0;
}
