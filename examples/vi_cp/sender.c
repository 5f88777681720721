/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <linux/magic.h>

#include <openssl/evp.h>

#include "sender.h"

struct sender {
	struct session *session;
	const struct sender_options *options;
	struct cp_welcome window;    /* the receiver's */
	uint64_t filled[CP_BUFFERS]; /* bytes that wait for credit; 0: the buffer is free */
	uint32_t next_buffer;
	struct cp_entry entry;
	bool unsized; /* its size is not known before its end */
	EVP_MD_CTX *hash;
	const char *name; /* of the file being copied */
};

/* ---- answers of the receiver ---------------------------------------------------------------- */

static int on_credit(struct sender *s)
{
	uint32_t buffer = s->session->message.buffer;

	if (!s->filled[buffer])
		return -EPROTO;
	progress_add(&s->session->progress, s->filled[buffer], s->name);
	s->filled[buffer] = 0;
	return 0;
}

/* Receives one message; is it the RESULT? */
static int listen_once(struct sender *s, bool *result_out)
{
	struct link_event event;
	int err = session_next(s->session, &event);

	*result_out = false;
	if (err)
		return err;
	if (!event.is_data && s->session->message.type == CP_CREDIT)
		return on_credit(s);
	*result_out = !event.is_data && s->session->message.type == CP_RESULT;
	return *result_out ? 0 : -EPROTO;
}

/* Waits for RESULT.  1: the receiver refused, and both sides have reported why. */
static int await_result(struct sender *s)
{
	const struct cp_message *m = &s->session->message;
	bool result = false;
	int err = 0;

	while (!err && !result)
		err = listen_once(s, &result);
	if (err || m->verdict == CP_DONE)
		return err;
	if (m->verdict == CP_LEFT_ALONE) {
		s->session->copied.left_alone++;
	} else {
		s->session->copied.failures++;
		if (s->session->host)
			session_complain(s->session, "%s at %s: %s", s->name, s->session->host,
					 m->path);
	}
	return 1;
}

/* A file is not copied: reports it, on the client's side.  0 or a lost session. */
static int __attribute__((format(printf, 2, 3))) fail(struct sender *s, const char *format, ...)
{
	char text[2 * PATH_MAX];
	va_list args;
	int err = 0;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	s->session->copied.failures++;
	if (s->session->host)
		session_complain(s->session, "%s", text);
	else
		err = session_tell(s->session, CP_NOTE, CP_FAILED, text);
	if (!err && !s->session->host)
		err = await_result(s);
	return err < 0 ? err : 0;
}

/* 0, 1 if it cannot be asked, or a lost session. */
static int ask(struct sender *s, enum cp_type type, const struct walk_entry *at, const char *target)
{
	int length = cp_entry_init(&s->entry, type, at->path, target);

	if (length < 0) {
		length = fail(s, "%s: its path is longer than %u bytes; not copied", at->shown,
			      CP_PATH_MAX);
		return length < 0 ? length : 1;
	}
	if (at->st) {
		s->entry.size = (uint64_t)at->st->st_size;
		s->entry.room = (uint64_t)at->st->st_blocks * 512;
		s->entry.mode = at->st->st_mode & 07777;
		s->entry.uid = at->st->st_uid;
		s->entry.gid = at->st->st_gid;
		s->entry.mtime_sec = at->st->st_mtim.tv_sec;
		s->entry.mtime_nsec = (uint32_t)at->st->st_mtim.tv_nsec;
	}
	if (at->kind == WALK_STREAM) {
		s->entry.size = s->entry.room = 0;
		s->entry.mode = 0666;
	}
	if (s->unsized)
		s->entry.flags = CP_STREAM;
	return link_send(&s->session->link, &s->entry, (size_t)length);
}

/* ---- contents ------------------------------------------------------------------------------- */

struct contents {
	int fd;
	bool stream;
	uint64_t at;	   /* bytes sent, holes included */
	uint64_t data_end; /* no hole is before this */
};

/* The next buffer, when the receiver has emptied it and the NIC no longer reads ours. */
static int next_buffer(struct sender *s, uint32_t *out)
{
	uint32_t buffer = s->next_buffer;
	uint64_t begin_ns = session_now_ns();
	bool result = false;
	int err = 0;

	while (!err && s->filled[buffer]) {
		err = listen_once(s, &result);
		if (!err && result)
			err = -EPROTO;
	}
	if (!err && s->session->link.write_busy[buffer]) {
		begin_ns = session_now_ns();
		err = link_write_wait(&s->session->link, buffer);
		session_spent(s->session, CP_SPENT_WAIT, &begin_ns);
	}
	*out = buffer;
	return err;
}

static void took_buffer(struct sender *s, struct contents *c, uint32_t buffer, uint64_t bytes)
{
	s->filled[buffer] = bytes;
	s->next_buffer = (buffer + 1) % CP_BUFFERS;
	c->at += bytes;
}

static int hash(struct sender *s, const void *bytes, size_t length)
{
	uint64_t begin_ns = session_now_ns();
	bool good = EVP_DigestUpdate(s->hash, bytes, length) == 1;

	session_spent(s->session, CP_SPENT_HASH, &begin_ns);
	return good ? 0 : -ENOMEM;
}

static int hash_zeros(struct sender *s, uint64_t length)
{
	static const char zeros[1 << 16];
	int err = 0;

	for (; !err && length > sizeof(zeros); length -= sizeof(zeros))
		err = hash(s, zeros, sizeof(zeros));
	return err ? err : hash(s, zeros, (size_t)length);
}

/* The length of the hole at this place, if the file system reports holes. */
static uint64_t hole_length(struct contents *c, uint64_t size)
{
	off_t data, hole;

	if (c->stream || c->at < c->data_end || c->at >= size)
		return 0;
	data = lseek(c->fd, (off_t)c->at, SEEK_DATA);
	if (data < 0 && errno == ENXIO)
		return size - c->at; /* up to the end */
	if (data < 0) {
		c->data_end = UINT64_MAX;
		return 0;
	}
	hole = lseek(c->fd, data, SEEK_HOLE);
	c->data_end = hole > data ? (uint64_t)hole : UINT64_MAX;
	return (uint64_t)data - c->at;
}

static int send_hole(struct sender *s, struct contents *c, uint64_t length)
{
	struct cp_hole message;
	uint32_t buffer;
	int err = 0;

	while (!err && length) {
		uint64_t part = length < CP_HOLE_MAX ? length : CP_HOLE_MAX;

		err = next_buffer(s, &buffer);
		if (!err)
			err = hash_zeros(s, part);
		if (err)
			break;
		memset(&message, 0, sizeof(message));
		cp_header_init(&message.header, CP_HOLE, sizeof(message));
		message.size = part;
		message.buffer = buffer;
		took_buffer(s, c, buffer, part);
		length -= part;
		err = link_send(&s->session->link, &message, sizeof(message));
	}
	return err;
}

/* Fills a buffer, at most up to the next hole; returns the bytes, 0 at the end, or -errno. */
static int64_t read_buffer(struct sender *s, const struct contents *c, char *buffer)
{
	uint64_t begin_ns = session_now_ns(), most = CP_BUFFER_BYTES;
	size_t have = 0;
	ssize_t n = 1;

	if (c->data_end > c->at && c->data_end - c->at < most)
		most = c->data_end - c->at;
	while (have < most && n > 0) {
		if (c->stream)
			n = read(c->fd, buffer + have, most - have);
		else
			n = pread(c->fd, buffer + have, most - have, (off_t)(c->at + have));
		if (n < 0 && errno == EINTR && !(s->session->stop && *s->session->stop))
			n = 1;
		else if (n > 0)
			have += (size_t)n;
	}
	if (n < 0)
		n = -errno;
	session_spent(s->session, CP_SPENT_DISK, &begin_ns);
	return n < 0 ? n : (int64_t)have;
}

static int send_data(struct sender *s, struct contents *c, uint32_t buffer, uint32_t length)
{
	struct link *link = &s->session->link;
	int err = hash(s, link_buffer(link, buffer), length);

	if (err)
		return err;
	took_buffer(s, c, buffer, length);
	return link_write(link, buffer, length, &s->window);
}

/* Streams the contents.  1: the file cannot be read; negative: the session is lost. */
static int send_contents(struct sender *s, struct contents *c, uint64_t size)
{
	uint32_t buffer;
	int64_t n = 1;
	int err = 0;

	while (!err && n > 0) {
		err = send_hole(s, c, hole_length(c, size));
		if (!err)
			err = next_buffer(s, &buffer);
		if (err)
			break;
		n = read_buffer(s, c, link_buffer(&s->session->link, buffer));
		if (n > 0)
			err = send_data(s, c, buffer, (uint32_t)n);
	}
	if (err || n == 0)
		return err;
	err = fail(s, "%s: %s; not copied", s->name, strerror((int)-n));
	return err ? err : 1;
}

/* ---- files ---------------------------------------------------------------------------------- */

static int send_abort(struct sender *s)
{
	int err = session_say(s->session, CP_ABORT);

	return err ? err : await_result(s);
}

static int send_end(struct sender *s, uint64_t size)
{
	uint8_t digest[EVP_MAX_MD_SIZE];
	struct cp_end end;
	int err;

	if (EVP_DigestFinal_ex(s->hash, digest, NULL) != 1)
		return -ENOMEM;
	memset(&end, 0, sizeof(end));
	cp_header_init(&end.header, CP_END, sizeof(end));
	end.size = size;
	memcpy(end.digest, digest, sizeof(end.digest));
	err = link_send(&s->session->link, &end, sizeof(end));
	if (!err)
		err = await_result(s);
	if (err)
		return err;
	s->session->copied.files++;
	s->session->copied.bytes += size;
	if (s->session->verbose)
		session_print_digest(s->session, digest, s->name);
	return 0;
}

/* Is the file unchanged since its size was sent? */
static bool unchanged(const struct contents *c, const struct stat *before)
{
	struct stat now;

	return c->stream ||
	       (!fstat(c->fd, &now) && c->at == (uint64_t)before->st_size &&
		now.st_size == before->st_size && now.st_mtim.tv_sec == before->st_mtim.tv_sec &&
		now.st_mtim.tv_nsec == before->st_mtim.tv_nsec);
}

/* Does the kernel make the contents only when they are read, so that the size it tells is not theirs? */
static bool is_generated(int fd, const struct stat *st)
{
	struct statfs fs;
	char byte;

	if (!S_ISREG(st->st_mode))
		return false;
	if (fstatfs(fd, &fs) == 0 && fs.f_type == SYSFS_MAGIC)
		return true;
	return st->st_size == 0 && pread(fd, &byte, 1, 0) == 1;
}

static int send_opened(struct sender *s, const struct walk_entry *entry, int fd)
{
	struct contents c = { .fd = fd, .stream = entry->kind == WALK_STREAM };
	struct walk_entry opened = *entry;
	struct stat st;
	int err;

	if (fstat(fd, &st) || (!c.stream && !S_ISREG(st.st_mode)))
		return fail(s, "%s: a file sought, something else found; not copied", entry->shown);
	if (is_generated(fd, &st)) {
		c.stream = true;
		st.st_size = st.st_blocks = 0;
	}
	opened.st = &st;
	s->unsized = c.stream;
	err = ask(s, CP_FILE, &opened, NULL);
	s->unsized = false;
	if (!err && s->options->no_clobber)
		err = await_result(s);
	if (err)
		return err;
	if (EVP_DigestInit_ex(s->hash, EVP_sha256(), NULL) != 1)
		return -ENOMEM;
	err = send_contents(s, &c, (uint64_t)st.st_size);
	if (!err && !unchanged(&c, &st)) {
		err = fail(s, "%s: changed while it was copied; copy it again", entry->shown);
		err = err ? err : 1;
	}
	if (err < 0)
		return err;
	return err ? send_abort(s) : send_end(s, c.at);
}

static int send_file(struct sender *s, const struct walk_entry *entry)
{
	int fd = walk_open(entry), err;

	if (fd < 0)
		return fail(s, "%s: %s; not copied", entry->shown, strerror(-fd));
	err = send_opened(s, entry, fd);
	close(fd);
	return err;
}

/* ---- everything else ------------------------------------------------------------------------ */

static int send_link(struct sender *s, const struct walk_entry *entry)
{
	char target[PATH_MAX];
	ssize_t length = walk_readlink(entry, target, sizeof(target));
	int err;

	if (length < 0)
		return fail(s, "%s: %s; not copied", entry->shown, strerror((int)-length));
	err = ask(s, CP_LINK, entry, target);
	if (!err)
		err = await_result(s);
	s->session->copied.links += !err;
	return err;
}

static int send_dir(struct sender *s, const struct walk_entry *entry, enum cp_type type)
{
	int err = ask(s, type, entry, NULL);

	if (!err)
		err = await_result(s);
	s->session->copied.dirs += !err && type == CP_DIR;
	return err;
}

static int send_any(struct sender *s, const struct walk_entry *entry)
{
	switch (entry->kind) {
	case WALK_DIR:
		return send_dir(s, entry, CP_DIR);
	case WALK_DIR_END:
		return send_dir(s, entry, CP_DIR_END);
	case WALK_LINK:
		return send_link(s, entry);
	case WALK_FILE:
	case WALK_STREAM:
		return send_file(s, entry);
	default:
		return fail(s, "%s: %s; not copied", entry->shown, entry->why);
	}
}

static int send_entry(void *context, const struct walk_entry *entry)
{
	struct sender *s = context;
	int err;

	s->name = entry->path;
	err = send_any(s, entry);
	return err < 0 ? err : 0;
}

static int add_size(void *context, const struct walk_entry *entry)
{
	if (entry->kind == WALK_FILE)
		*(uint64_t *)context += (uint64_t)entry->st->st_size;
	return 0;
}

static int send_all(struct sender *s)
{
	const struct sender_options *o = s->options;
	struct walk_entry none = { .path = "" };
	struct session *session = s->session;
	uint64_t total = 0;
	int err;

	walk(&o->walk, o->sources, o->source_count, add_size, &total);
	session->progress.total = total;
	cp_entry_init(&s->entry, CP_TOTAL, none.path, NULL);
	s->entry.size = total;
	err = link_send(&session->link, &s->entry, offsetof(struct cp_entry, text));
	if (!err)
		err = walk(&o->walk, o->sources, o->source_count, send_entry, s);
	s->name = "the end";
	if (!err)
		err = session_tell(session, CP_BYE, CP_DONE, NULL);
	if (!err)
		err = await_result(s);
	memcpy(session->other_spent_ns, session->message.spent_ns, sizeof(session->other_spent_ns));
	return err < 0 ? err : 0;
}

int sender_run(struct session *session, const struct sender_options *options,
	       const struct cp_welcome *window)
{
	struct sender s = { .session = session, .options = options, .window = *window };
	int err;

	s.hash = EVP_MD_CTX_new();
	err = s.hash ? send_all(&s) : -ENOMEM;
	EVP_MD_CTX_free(s.hash);
	return err;
}
