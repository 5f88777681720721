/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "client.h"
#include "dest.h"
#include "receiver.h"
#include "sender.h"

struct client {
	struct session session;
	const struct client_options *options;
	const char *service;
	char spawned_service[32];
	pid_t server; /* the one that was started, or 0 */
	uint32_t flags;
	struct walk_source *sources;
	struct cp_entry entry;
	uint64_t begin_ns;
};

/* ---- the server ----------------------------------------------------------------------------- */

/* The server as another process on the emulated host; it dies with this one. */
static void exec_server(const struct client *c, pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent || setenv("VIADUCT_HOST", c->options->host, 1))
		_exit(1);
	execl("/proc/self/exe", "vi_cp", "--quiet", "--once", "--anywhere", "--service", c->service,
	      "--serve", ".", (char *)NULL);
	fprintf(stderr, "vi_cp: the server cannot be started: %s; use --serve\n", strerror(errno));
	_exit(1);
}

static int spawn(struct client *c)
{
	pid_t parent = getpid();

	signal(SIGCHLD, SIG_DFL); /* where it is ignored no child can be waited for */
	c->server = fork();
	if (c->server < 0) {
		c->server = 0;
		session_complain(&c->session,
				 "a process for the server sought: %s; raise ulimit -u",
				 strerror(errno));
		return -EAGAIN;
	}
	if (!c->server)
		exec_server(c, parent);
	return 0;
}

/* The server that was started may have failed already. */
static bool server_gone(const struct client *c)
{
	siginfo_t info = { 0 };

	return c->server && !waitid(P_PID, (id_t)c->server, &info, WEXITED | WNOHANG | WNOWAIT) &&
	       info.si_pid;
}

/* Waits for the server that was started; returns its exit code. */
static int end_server(const struct client *c, bool failed)
{
	int status = 0;

	if (!c->server)
		return 0;
	if (failed)
		kill(c->server, SIGTERM);
	waitpid(c->server, &status, 0);
	return status != 0;
}

static int connect_within(struct client *c)
{
	struct timespec pause = { 0, 2000000 };
	time_t end = time(NULL) + (time_t)c->options->wait_seconds;
	int err;

	do {
		err = link_connect(&c->session.link, 2000);
		if (err != -EAGAIN && err != -ETIMEDOUT)
			return err;
		nanosleep(&pause, NULL);
		if (pause.tv_nsec < 20000000)
			pause.tv_nsec *= 2;
	} while (!server_gone(c) && time(NULL) <= end);
	return err;
}

static int find_server(struct client *c)
{
	const char *host = c->options->host;
	int err = link_find(&c->session.link, host);

	if (err)
		session_complain(
			&c->session,
			"host %s sought, no such name in the fabric; vi_info lists the hosts",
			host);
	else if (c->options->spawn)
		err = spawn(c);
	return err;
}

static int connect_or_complain(struct client *c)
{
	struct session *s = &c->session;
	const char *host = c->options->host;
	int err = connect_within(c);
	bool absent = err == -EAGAIN || err == -ETIMEDOUT;

	if (err == -EHOSTUNREACH)
		session_complain(s, "host %s sought, no path leads there; vi_info tells the routes",
				 host);
	else if (absent && server_gone(c))
		session_complain(
			s, "the server on %s sought, it has ended already; see its message", host);
	else if (absent)
		session_complain(
			s,
			"a server on %s sought for %u s, none answered; start vi_cp --serve DIR there",
			host, c->options->wait_seconds);
	else if (err == -EPROTO)
		session_complain(s, "the program on %s is no server of vi_cp; see --service", host);
	return err;
}

static int lost(struct client *c, int err)
{
	const char *host = c->options->host;

	if (err == -EPROTO)
		session_complain(
			&c->session,
			"%s broke the protocol; use the same version of vi_cp on both hosts", host);
	else
		session_complain(
			&c->session,
			"the connection to %s is lost; see what the server says and copy again",
			host);
	return err;
}

/* ---- asking --------------------------------------------------------------------------------- */

static int say_entry(struct client *c, enum cp_type type, const char *path, const char *target)
{
	int length = cp_entry_init(&c->entry, type, path, target);

	if (length < 0)
		return length;
	c->entry.flags = type == CP_HELLO ? c->flags : 0;
	return link_send(&c->session.link, &c->entry, (size_t)length);
}

/* Sends a request about `path` and reports a refusal with that name.  1: it was refused. */
static int ask(struct client *c, enum cp_type type, const char *path, const char *target)
{
	const struct cp_message *m = &c->session.message;
	struct link_event event;
	int err = say_entry(c, type, path, target);

	if (err == -ENAMETOOLONG) {
		session_complain(&c->session, "%s: %s", path, strerror(ENAMETOOLONG));
		return 1;
	}
	if (!err)
		err = session_next(&c->session, &event);
	if (!err && (event.is_data || (m->type != CP_RESULT && m->type != CP_WELCOME)))
		err = -EPROTO;
	if (err)
		return lost(c, err);
	if (m->type == CP_WELCOME || m->verdict == CP_DONE)
		return 0;
	session_complain(&c->session, "%s at %s: %s", *path ? path : ".", c->options->host,
			 m->path);
	return 1;
}

/* ---- push ----------------------------------------------------------------------------------- */

static int push(struct client *c)
{
	const struct client_options *o = c->options;
	struct session *s = &c->session;
	struct sender_options send = {
		.sources = c->sources,
		.source_count = o->source_count,
		.walk = { .root = -1,
			  .input = true,
			  .recursive = (c->flags & CP_RECURSIVE) != 0,
			  .follow_named = (c->flags & CP_ARCHIVE) == 0 },
		.no_clobber = (c->flags & CP_NO_CLOBBER) != 0,
	};
	struct cp_welcome window;
	int err = ask(c, CP_HELLO, o->dest, NULL);

	if (err)
		return err;
	if (s->message.type != CP_WELCOME)
		return lost(c, -EPROTO);
	window = s->message.welcome;
	if (*window.name && o->source_count != 1)
		return lost(c, -EPROTO);
	if (*window.name)
		c->sources[0].as = window.name;
	err = sender_run(s, &send, &window);
	return err ? lost(c, err) : 0;
}

/* ---- pull ----------------------------------------------------------------------------------- */

static const char *last_component(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static int receive_into(struct client *c, int base, const char *name)
{
	struct receiver_options receive = { .base = base, .flags = c->flags };
	const char **names = calloc((size_t)c->options->source_count, sizeof(*names));
	bool any = false, removed;
	int i, err = names ? 0 : -ENOMEM;

	for (i = 0; !err && i < c->options->source_count; i++) {
		const char *source = c->sources[i].name;

		any |= walk_is_contents(source);
		names[i] = *name ? name : last_component(source);
		err = ask(c, CP_SOURCE, source, *name ? name : NULL);
	}
	receive.names = any ? NULL : names;
	receive.name_count = c->options->source_count;
	if (!err)
		err = session_welcome(&c->session, "");
	if (!err)
		err = receiver_run(&c->session, &receive, &removed);
	if (err < 0)
		lost(c, err);
	free(names);
	return err;
}

static int pull(struct client *c)
{
	char name[NAME_MAX + 1];
	int base = dest_resolve(-1, c->options->dest, (c->flags & CP_DIRECTORY) != 0, name), err;

	if (base < 0) {
		session_complain(&c->session, "%s: %s", c->options->dest, strerror(-base));
		return 1;
	}
	err = ask(c, CP_HELLO, "", NULL);
	if (!err)
		err = receive_into(c, base, name);
	close(base);
	return err;
}

/* ---- the whole ------------------------------------------------------------------------------ */

static void print_spent(const char *side, const char *disk, const uint64_t spent_ns[CP_SPENT])
{
	printf("vi_cp: %s: %s %.3f s, SHA-256 %.3f s, until on disk %.3f s, waiting %.3f s\n", side,
	       disk, (double)spent_ns[CP_SPENT_DISK] / 1e9, (double)spent_ns[CP_SPENT_HASH] / 1e9,
	       (double)spent_ns[CP_SPENT_SYNC] / 1e9, (double)spent_ns[CP_SPENT_WAIT] / 1e9);
}

static void print_stats(const struct client *c)
{
	const struct session *s = &c->session;
	bool pulled = c->options->pull;

	printf("vi_cp: until connected %.3f s\n", (double)c->begin_ns / 1e9);
	print_spent("sender", "reading", pulled ? s->other_spent_ns : s->spent_ns);
	print_spent("receiver", "writing", pulled ? s->spent_ns : s->other_spent_ns);
}

static void summary(struct session *s)
{
	const struct copied *n = &s->copied;
	double seconds = progress_seconds(&s->progress);
	char bytes[32], rate[32];

	progress_bytes(seconds > 0 ? (uint64_t)((double)n->bytes / seconds) : 0, rate);
	printf("vi_cp: %u file%s, %u director%s, %u link%s, %s in %.3f s (%s/s), SHA-256 verified",
	       n->files, n->files == 1 ? "" : "s", n->dirs, n->dirs == 1 ? "y" : "ies", n->links,
	       n->links == 1 ? "" : "s", progress_bytes(n->bytes, bytes), seconds, rate);
	if (n->left_alone)
		printf(", %u left alone", n->left_alone);
	if (n->failures)
		printf(", %u failure%s", n->failures, n->failures == 1 ? "" : "s");
	putchar('\n');
}

static enum progress_mode progress_mode(const struct client_options *o)
{
	return o->progress ? PROGRESS_ALWAYS : o->quiet ? PROGRESS_NONE : PROGRESS_TERMINAL;
}

static int copy(struct client *c)
{
	const struct client_options *o = c->options;
	int err;

	progress_begin(&c->session.progress, progress_mode(o));
	err = o->pull ? pull(c) : push(c);
	progress_clear(&c->session.progress);
	if (!err && !o->quiet)
		summary(&c->session);
	if (!err && o->stats)
		print_stats(c);
	return err || c->session.copied.failures ? 1 : 0;
}

static int set_up(struct client *c)
{
	const struct client_options *o = c->options;
	int i;

	c->flags = o->flags | (o->pull ? CP_PULL : 0) | (o->spawn ? CP_ANYWHERE : 0) |
		   (o->source_count > 1 ? CP_DIRECTORY : 0);
	c->sources = calloc((size_t)o->source_count, sizeof(*c->sources));
	if (!c->sources)
		return -ENOMEM;
	for (i = 0; i < o->source_count; i++) {
		c->sources[i].name = o->sources[i];
		if (walk_is_contents(o->sources[i]))
			c->flags |= CP_DIRECTORY;
	}
	c->session.host = o->host;
	c->session.verbose = o->verbose;
	c->service = o->service;
	if (o->spawn) {
		snprintf(c->spawned_service, sizeof(c->spawned_service), "vi_cp.%d", (int)getpid());
		c->service = c->spawned_service;
	}
	return 0;
}

int client_run(const struct client_options *options)
{
	struct client *c = calloc(1, sizeof(*c));
	int result = 1;

	if (!c)
		return 1;
	c->options = options;
	c->begin_ns = session_now_ns();
	if (!set_up(c) && !link_open(&c->session.link, c->service, options->pull) &&
	    !find_server(c) && !connect_or_complain(c)) {
		c->begin_ns = session_now_ns() - c->begin_ns;
		result = copy(c);
	}
	link_close(&c->session.link);
	if (end_server(c, result))
		result = 1;
	free(c->sources);
	free(c);
	return result;
}
