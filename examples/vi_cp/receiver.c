/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/evp.h>

#include "dest.h"
#include "link.h"
#include "proto.h"
#include "receiver.h"

#define TURN_MS 200u /* how soon a signal is noticed */

static volatile sig_atomic_t stop;

/* One sender. */
struct session {
	struct link *link;
	const struct receiver_options *options;
	EVP_MD_CTX *hash;
	int root, base; /* the directory served, and the one of HELLO; -1 before */
	struct cp_message message;
	struct dest_file file;
	struct timespec file_mtime;
	mode_t file_mode;
	bool in_file;	/* between FILE and END or ABORT */
	int file_error; /* why the file of this moment fails; told at END */
	uint64_t file_bytes;
	uint32_t next_buffer;
	unsigned int files, failures;
	bool done;
};

static void on_signal(int sig)
{
	(void)sig;
	stop = 1;
}

static int answer(struct session *s, int err, const char *text)
{
	struct cp_result result;
	size_t length;

	if (err && !text)
		text = err == -EPERM ? "not a path below the served directory" : strerror(-err);
	memset(&result, 0, sizeof(result));
	result.failed = err != 0;
	result.text_length = err ? (uint32_t)strnlen(text, CP_TEXT_MAX) : 0;
	if (err) {
		memcpy(result.text, text, result.text_length);
		s->failures++;
	}
	length = offsetof(struct cp_result, text) + result.text_length;
	cp_header_init(&result.header, CP_RESULT, length);
	return link_send(s->link, &result, length);
}

static struct timespec mtime_of(const struct cp_message *m)
{
	return (struct timespec){ .tv_sec = m->mtime_sec, .tv_nsec = m->mtime_nsec };
}

/* Set-user-id and set-group-id bits would give the receiver's rights away. */
static mode_t mode_of(const struct cp_message *m)
{
	return m->mode & 01777u;
}

static int on_hello(struct session *s)
{
	struct cp_welcome welcome;

	if (s->base >= 0)
		return -EPROTO;
	s->base = dest_open(s->root, s->message.path);
	if (s->base < 0)
		return answer(s, s->base, NULL);
	memset(&welcome, 0, sizeof(welcome));
	cp_header_init(&welcome.header, CP_WELCOME, sizeof(welcome));
	welcome.address = (uintptr_t)s->link->window;
	welcome.handle = s->link->window_handle;
	welcome.buffers = CP_BUFFERS;
	welcome.buffer_bytes = CP_BUFFER_BYTES;
	return link_send(s->link, &welcome, sizeof(welcome));
}

static int on_dir(struct session *s)
{
	return answer(s, dest_dir(s->base, s->message.path), NULL);
}

static int on_dir_end(struct session *s)
{
	struct timespec mtime = mtime_of(&s->message);

	return answer(s, dest_dir_finish(s->base, s->message.path, mode_of(&s->message), &mtime),
		      NULL);
}

static int on_link(struct session *s)
{
	struct timespec mtime = mtime_of(&s->message);

	return answer(s, dest_link(s->base, s->message.path, s->message.target, &mtime), NULL);
}

static int on_file(struct session *s)
{
	s->in_file = true;
	s->file_bytes = 0;
	s->file_mode = mode_of(&s->message);
	s->file_mtime = mtime_of(&s->message);
	s->file_error = dest_file_create(s->base, s->message.path, s->message.size, &s->file);
	if (EVP_DigestInit_ex(s->hash, EVP_sha256(), NULL) != 1)
		return -ENOMEM;
	return 0;
}

static void fail_file(struct session *s, int err)
{
	if (s->file_error || !err)
		return;
	s->file_error = err;
	dest_file_discard(&s->file);
}

/* The peer may still change the buffer, so that file and digest differ; the file is its own. */
static int on_data(struct session *s, const struct link_event *event)
{
	struct cp_credit credit;
	char *bytes;

	if (!s->in_file || event->buffer != s->next_buffer || event->length == 0 ||
	    event->length > CP_BUFFER_BYTES)
		return -EPROTO;
	bytes = link_buffer(s->link, event->buffer);
	if (!s->file_error)
		fail_file(s, dest_file_write(&s->file, bytes, event->length));
	if (!s->file_error && EVP_DigestUpdate(s->hash, bytes, event->length) != 1)
		fail_file(s, -ENOMEM);
	s->file_bytes += event->length;
	memset(&credit, 0, sizeof(credit));
	cp_header_init(&credit.header, CP_CREDIT, sizeof(credit));
	credit.buffer = event->buffer;
	s->next_buffer = (s->next_buffer + 1) % CP_BUFFERS;
	return link_send(s->link, &credit, sizeof(credit));
}

static int on_end(struct session *s)
{
	uint8_t digest[EVP_MAX_MD_SIZE];

	if (EVP_DigestFinal_ex(s->hash, digest, NULL) != 1)
		fail_file(s, -ENOMEM);
	s->in_file = false;
	if (s->file_error)
		return answer(s, s->file_error, NULL);
	if (s->message.size != s->file_bytes ||
	    memcmp(digest, s->message.digest, CP_DIGEST_BYTES) != 0) {
		dest_file_discard(&s->file);
		return answer(s, -EIO,
			      "the SHA-256 of what arrived is not the sender's; copy it again");
	}
	s->files++;
	return answer(s, dest_file_commit(&s->file, s->file_mode, &s->file_mtime), NULL);
}

static int on_abort(struct session *s)
{
	s->in_file = false;
	fail_file(s, -ECANCELED);
	s->failures++;
	return answer(s, 0, NULL);
}

static int on_bye(struct session *s)
{
	s->done = true;
	return answer(s, 0, NULL);
}

/* Which message is allowed when. */
static int on_message(struct session *s, const struct link_event *event)
{
	int err = cp_parse(event->bytes, event->length, &s->message);

	if (err)
		return err;
	if (s->message.type == CP_HELLO)
		return on_hello(s);
	if (s->base < 0 || s->in_file != (s->message.type == CP_END || s->message.type == CP_ABORT))
		return -EPROTO;
	switch (s->message.type) {
	case CP_DIR:
		return on_dir(s);
	case CP_DIR_END:
		return on_dir_end(s);
	case CP_LINK:
		return on_link(s);
	case CP_FILE:
		return on_file(s);
	case CP_END:
		return on_end(s);
	case CP_ABORT:
		return on_abort(s);
	case CP_BYE:
		return on_bye(s);
	default:
		return -EPROTO;
	}
}

/* The receive is posted again before the answer lets the sender go on. */
static int step(struct session *s)
{
	struct link_event event;
	char copy[CP_MESSAGE_MAX];
	int err = link_receive(s->link, TURN_MS, &event);

	if (err)
		return err;
	if (!event.is_data) {
		memcpy(copy, event.bytes, event.length);
		event.bytes = copy;
	}
	err = link_release(s->link, &event);
	if (err)
		return err;
	return event.is_data ? on_data(s, &event) : on_message(s, &event);
}

/* `removed`: a file was under way. */
static void complain(const struct session *s, int err, bool removed)
{
	const char *more = removed ? "; the file under way was removed" : "";

	if (err == -EPROTO)
		fputs("vi_cp: a sender broke the protocol and was dropped; "
		      "use the same version of vi_cp on both hosts\n",
		      stderr);
	else if (err == -ETIMEDOUT)
		fprintf(stderr,
			"vi_cp: a message from the sender sought within %u s, none came; it was dropped%s\n",
			s->options->idle_ms / 1000, more);
	else if (err == -EINTR)
		fprintf(stderr, "vi_cp: stopped by a signal%s\n", more);
	else if (err == -ENOTCONN)
		fprintf(stderr, "vi_cp: the sender is gone before its end%s\n", more);
	else
		fprintf(stderr, "vi_cp: the session ended: %s; copy again%s\n", strerror(-err),
			more);
}

/* Steps until the sender says goodbye; 0 or -errno. */
static int converse(struct session *s)
{
	unsigned int silent_ms = 0;
	int err = 0;

	while (!s->done && !stop) {
		err = step(s);
		silent_ms = err == -ETIMEDOUT ? silent_ms + TURN_MS : 0;
		if (err && (err != -ETIMEDOUT || silent_ms >= s->options->idle_ms))
			return err;
	}
	return s->done ? 0 : -EINTR;
}

/* The last answer is on its way: let the sender leave first. */
static void linger(struct session *s)
{
	struct link_event event;
	unsigned int turns;

	for (turns = 0; turns < 25 && link_receive(s->link, TURN_MS, &event) == -ETIMEDOUT; turns++)
		;
}

static int serve_one(struct link *link, int root, const struct receiver_options *options)
{
	struct session s = { .link = link, .options = options, .root = root, .base = -1 };
	bool removed;
	int err;

	s.file.fd = -1;
	s.hash = EVP_MD_CTX_new();
	err = s.hash ? converse(&s) : -ENOMEM;
	removed = s.file.fd >= 0;
	dest_file_discard(&s.file);
	if (err)
		complain(&s, err, removed);
	else
		linger(&s);
	if (!options->quiet)
		printf("vi_cp: a sender left: %u file%s arrived, %u failure%s\n", s.files,
		       s.files == 1 ? "" : "s", s.failures, s.failures == 1 ? "" : "s");
	fflush(stdout);
	EVP_MD_CTX_free(s.hash);
	if (s.base >= 0)
		close(s.base);
	return err || s.failures ? 1 : 0;
}

static int serve(struct link *link, int root, const struct receiver_options *options)
{
	int err, result = 0;

	while (!stop) {
		err = link_serve(link, TURN_MS);
		if (err == -ETIMEDOUT)
			continue;
		if (err)
			return 1;
		result = serve_one(link, root, options);
		if (options->once)
			return result;
		if (link_reset(link))
			return 1;
	}
	return options->once ? 1 : 0;
}

int receiver_run(const struct receiver_options *options)
{
	struct sigaction act = { .sa_handler = on_signal };
	int root, result = 1;
	struct link link;
	unsigned int stale;

	root = open(options->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (root < 0) {
		fprintf(stderr, "vi_cp: directory %s sought to copy into: %s; make it first\n",
			options->dir, strerror(errno));
		return 1;
	}
	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
	stale = dest_clean(root);
	if (stale)
		fprintf(stderr,
			"vi_cp: %u unfinished files of killed receivers were removed from %s\n",
			stale, options->dir);
	if (!link_open(&link, options->service, true)) {
		if (!options->quiet)
			printf("vi_cp: ready, copies go into %s\n", options->dir);
		fflush(stdout);
		result = serve(&link, root, options);
	}
	link_close(&link);
	close(root);
	return result;
}
