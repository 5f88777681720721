/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dest.h"
#include "receiver.h"
#include "sender.h"
#include "server.h"

#define TURN_MS 200u
#define SOURCES_MAX 65536

static volatile sig_atomic_t stop;

struct server {
	struct session session;
	const struct server_options *options;
	int root;		     /* the directory served */
	struct walk_source *sources; /* of a pull; the strings are ours */
	int source_count, source_room;
};

static void on_signal(int sig)
{
	(void)sig;
	stop = 1;
}

static int refuse(struct server *v, const char *text)
{
	v->session.copied.failures++;
	return session_tell(&v->session, CP_RESULT, CP_FAILED, text);
}

/* ---- push ----------------------------------------------------------------------------------- */

static int push(struct server *v, uint32_t flags, bool *removed_out)
{
	struct session *s = &v->session;
	struct receiver_options receive = { .flags = flags };
	char name[NAME_MAX + 1];
	int err;

	receive.base = dest_resolve(flags & CP_ANYWHERE ? -1 : v->root, s->message.path,
				    (flags & CP_DIRECTORY) != 0, name);
	if (receive.base < 0)
		return refuse(v, receive.base == -EPERM ? "not a path below the served directory"
							: strerror(-receive.base));
	err = session_welcome(s, name);
	if (!err)
		err = receiver_run(s, &receive, removed_out);
	close(receive.base);
	return err;
}

/* ---- pull ----------------------------------------------------------------------------------- */

static void forget_sources(struct server *v)
{
	int i;

	for (i = 0; i < v->source_count; i++) {
		free((char *)v->sources[i].name);
		free((char *)v->sources[i].as);
	}
	free(v->sources);
	v->sources = NULL;
	v->source_count = v->source_room = 0;
}

static int make_room(struct server *v)
{
	struct walk_source *more;
	int room = v->source_room ? 2 * v->source_room : 16;

	if (v->source_count < v->source_room)
		return 0;
	if (v->source_room >= SOURCES_MAX)
		return -E2BIG;
	more = realloc(v->sources, (size_t)room * sizeof(*more));
	if (!more)
		return -ENOMEM;
	v->sources = more;
	v->source_room = room;
	return 0;
}

static int on_source(struct server *v)
{
	const struct cp_message *m = &v->session.message;
	struct walk_source *source;
	int err = make_room(v);

	if (*m->target && (strchr(m->target, '/') || !cp_path_safe(m->target)))
		return -EPROTO;
	if (err)
		return refuse(v, strerror(-err));
	source = &v->sources[v->source_count];
	source->name = strdup(*m->path ? m->path : ".");
	source->as = *m->target ? strdup(m->target) : NULL;
	v->source_count++;
	if (!source->name || (*m->target && !source->as))
		return -ENOMEM;
	return session_tell(&v->session, CP_RESULT, CP_DONE, NULL);
}

static int pull(struct server *v, uint32_t flags)
{
	struct session *s = &v->session;
	struct sender_options send = {
		.walk = { .root = flags & CP_ANYWHERE ? -1 : v->root,
			  .recursive = (flags & CP_RECURSIVE) != 0,
			  .follow_named = (flags & CP_ARCHIVE) == 0 },
		.no_clobber = (flags & CP_NO_CLOBBER) != 0,
	};
	struct link_event event;
	int err = session_tell(s, CP_RESULT, CP_DONE, NULL);

	while (!err) {
		err = session_next(s, &event);
		if (!err && (event.is_data ||
			     (s->message.type != CP_SOURCE && s->message.type != CP_WELCOME)))
			err = -EPROTO;
		if (err || s->message.type == CP_WELCOME)
			break;
		err = on_source(v);
	}
	send.sources = v->sources;
	send.source_count = v->source_count;
	if (!err)
		err = sender_run(s, &send, &s->message.welcome);
	forget_sources(v);
	return err;
}

/* ---- a session ------------------------------------------------------------------------------ */

static int converse(struct server *v, bool *removed_out)
{
	const struct server_options *o = v->options;
	struct session *s = &v->session;
	struct link_event event;
	uint32_t flags;
	int err = session_next(s, &event);

	if (err)
		return err;
	flags = s->message.flags;
	if (event.is_data || s->message.type != CP_HELLO || ((flags & CP_ANYWHERE) && !o->anywhere))
		return -EPROTO;
	if (flags & CP_PULL)
		return o->no_pull ? refuse(v, "this server gives nothing (--write-only)")
				  : pull(v, flags);
	return o->no_push ? refuse(v, "this server takes nothing (--read-only)")
			  : push(v, flags, removed_out);
}

/* `removed`: a file was under way. */
static void complain(struct server *v, int err, bool removed)
{
	struct session *s = &v->session;
	const char *more = removed ? "; the file under way was removed" : "";

	if (err == -EPROTO)
		session_complain(s, "a client broke the protocol and was dropped; "
				    "use the same version of vi_cp on both hosts");
	else if (err == -ETIMEDOUT)
		session_complain(
			s,
			"a message from the client sought within %u s, none came; it was dropped%s",
			s->idle_ms / 1000, more);
	else if (err == -EINTR)
		session_complain(s, "stopped by a signal%s", more);
	else if (err == -ENOTCONN)
		session_complain(s, "the client is gone before its end%s", more);
	else
		session_complain(s, "the session ended: %s; copy again%s", strerror(-err), more);
}

static int serve_one(struct server *v)
{
	const struct server_options *o = v->options;
	struct session *s = &v->session;
	bool removed = false;
	int err;

	memset(&s->copied, 0, sizeof(s->copied));
	memset(s->spent_ns, 0, sizeof(s->spent_ns));
	s->idle_ms = o->idle_ms;
	err = converse(v, &removed);
	if (err)
		complain(v, err, removed);
	if (!o->quiet)
		printf("vi_cp: a client left: %u file%s copied, %u failure%s\n", s->copied.files,
		       s->copied.files == 1 ? "" : "s", s->copied.failures,
		       s->copied.failures == 1 ? "" : "s");
	fflush(stdout);
	return err || s->copied.failures ? 1 : 0;
}

static int serve(struct server *v)
{
	struct link *link = &v->session.link;
	int err, result = 0;

	while (!stop) {
		err = link_serve(link, TURN_MS);
		if (err == -ETIMEDOUT)
			continue;
		if (err)
			return 1;
		result = serve_one(v);
		if (v->options->once)
			return result;
		if (link_reset(link))
			return 1;
	}
	return v->options->once ? 1 : 0;
}

static void clean(struct server *v)
{
	unsigned int stale = v->options->anywhere ? 0 : dest_clean(v->root);

	if (stale)
		session_complain(&v->session,
				 "%u unfinished files of killed receivers were removed from %s",
				 stale, v->options->dir);
}

static int run(struct server *v)
{
	const struct server_options *o = v->options;
	struct sigaction act = { .sa_handler = on_signal };
	int result = 1;

	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
	v->session.stop = &stop;
	clean(v);
	if (!link_open(&v->session.link, o->service, true)) {
		if (!o->quiet)
			printf("vi_cp: ready, serving %s\n", o->dir);
		fflush(stdout);
		result = serve(v);
	}
	link_close(&v->session.link);
	return result;
}

int server_run(const struct server_options *options)
{
	struct server *v = calloc(1, sizeof(*v));
	int result = 1;

	if (!v)
		return 1;
	v->options = options;
	v->root = open(options->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (v->root < 0) {
		fprintf(stderr, "vi_cp: directory %s sought to serve: %s; make it first\n",
			options->dir, strerror(errno));
	} else {
		result = run(v);
		close(v->root);
	}
	free(v);
	return result;
}
