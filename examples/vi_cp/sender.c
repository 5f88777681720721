/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <openssl/evp.h>

#include "link.h"
#include "progress.h"
#include "proto.h"
#include "sender.h"
#include "walk.h"

struct sender {
	struct link link;
	const struct sender_options *options;
	struct cp_welcome window;    /* the receiver's */
	uint32_t filled[CP_BUFFERS]; /* bytes in a buffer without credit yet; 0: free */
	uint32_t next_buffer;
	struct cp_message message;
	bool have_result;
	struct cp_entry entry;
	EVP_MD_CTX *hash;
	struct progress progress;
	const char *name; /* of what is being copied */
	uint64_t bytes;
	unsigned int files, dirs, links, skipped, failures;
};

static void __attribute__((format(printf, 2, 3)))
complain(struct sender *s, const char *format, ...)
{
	va_list args;

	progress_clear(&s->progress);
	fputs("vi_cp: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
}

static int lost(struct sender *s, int err)
{
	if (err == -EPROTO)
		complain(
			s,
			"the receiver broke the protocol; use the same version of vi_cp on both hosts");
	else
		complain(s,
			 "the connection to %s is lost; see what the receiver says and copy again",
			 s->options->host);
	return err;
}

/* ---- what the receiver says ----------------------------------------------------------------- */

static int on_credit(struct sender *s)
{
	uint32_t buffer = s->message.buffer;

	if (!s->filled[buffer])
		return -EPROTO;
	progress_add(&s->progress, s->filled[buffer], s->name);
	s->filled[buffer] = 0;
	return 0;
}

/* Takes one message of the receiver. */
static int listen_once(struct sender *s)
{
	struct link_event event;
	int err = link_receive(&s->link, 60000, &event);

	if (err == -ETIMEDOUT)
		return 0;
	if (err)
		return err;
	if (event.is_data)
		return -EPROTO;
	err = cp_parse(event.bytes, event.length, &s->message);
	if (!err)
		err = link_release(&s->link, &event);
	if (!err && s->message.type == CP_CREDIT)
		return on_credit(s);
	if (!err && s->message.type != CP_RESULT && s->message.type != CP_WELCOME)
		err = -EPROTO;
	s->have_result = !err;
	return err;
}

/* Waits for RESULT; prints what went wrong with `name`.  1: the receiver refused it. */
static int await_result(struct sender *s)
{
	int err = 0;

	s->have_result = false;
	while (!err && !s->have_result)
		err = listen_once(s);
	if (!err && s->message.type != CP_RESULT)
		err = -EPROTO;
	if (err)
		return lost(s, err);
	if (!s->message.failed)
		return 0;
	complain(s, "%s at %s: %s", s->name, s->options->host, s->message.path);
	s->failures++;
	return 1;
}

static int ask(struct sender *s, enum cp_type type, const struct walk_entry *at, const char *target)
{
	int length = cp_entry_init(&s->entry, type, at->path, target);

	if (length < 0) {
		complain(s, "%s: path of at most %u bytes sought, found more; not copied",
			 at->source, CP_PATH_MAX);
		s->failures++;
		return 1;
	}
	s->entry.size = (uint64_t)at->st->st_size;
	s->entry.mode = at->st->st_mode & 07777;
	s->entry.mtime_sec = at->st->st_mtim.tv_sec;
	s->entry.mtime_nsec = (uint32_t)at->st->st_mtim.tv_nsec;
	length = link_send(&s->link, &s->entry, (size_t)length);
	return length ? lost(s, length) : 0;
}

/* ---- files --------------------------------------------------------------------------------- */

/* Fills a buffer from the file; returns the bytes, less than the buffer only at the end, or -errno. */
static int64_t read_buffer(int fd, char *buffer)
{
	size_t have = 0;

	while (have < CP_BUFFER_BYTES) {
		ssize_t n = read(fd, buffer + have, CP_BUFFER_BYTES - have);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n == 0)
			break;
		if (n > 0)
			have += (size_t)n;
	}
	return (int64_t)have;
}

/* The next buffer, when the receiver has emptied it and the NIC has let go of ours. */
static int next_buffer(struct sender *s, uint32_t *out)
{
	uint32_t buffer = s->next_buffer;
	int err = 0;

	while (!err && s->filled[buffer]) {
		s->have_result = false;
		err = listen_once(s);
		if (!err && s->have_result)
			err = -EPROTO;
	}
	if (!err)
		err = link_write_wait(&s->link, buffer);
	*out = buffer;
	return err;
}

/* Streams the contents.  1: the file cannot be read; negative: the connection is lost. */
static int send_contents(struct sender *s, int fd, uint64_t *size_out)
{
	uint64_t size = 0;
	int64_t n;
	uint32_t buffer;
	int err;

	for (;;) {
		err = next_buffer(s, &buffer);
		if (err)
			return lost(s, err);
		n = read_buffer(fd, link_buffer(&s->link, buffer));
		if (n <= 0)
			break;
		if (EVP_DigestUpdate(s->hash, link_buffer(&s->link, buffer), (size_t)n) != 1)
			return 1;
		s->filled[buffer] = (uint32_t)n;
		s->next_buffer = (buffer + 1) % CP_BUFFERS;
		size += (uint64_t)n;
		err = link_write(&s->link, buffer, (uint32_t)n, &s->window);
		if (err)
			return lost(s, err);
	}
	if (n < 0)
		complain(s, "%s: %s; not copied", s->name, strerror((int)-n));
	*size_out = size;
	return n < 0;
}

static int send_abort(struct sender *s)
{
	struct cp_header header;
	int err;

	s->failures++;
	cp_header_init(&header, CP_ABORT, sizeof(header));
	err = link_send(&s->link, &header, sizeof(header));
	return err ? lost(s, err) : await_result(s) < 0 ? -EIO : 0;
}

static void print_digest(const struct sender *s, const uint8_t *digest)
{
	unsigned int i;

	progress_clear(&s->progress);
	for (i = 0; i < CP_DIGEST_BYTES; i++)
		printf("%02x", digest[i]);
	printf("  %s\n", s->name);
}

static int send_end(struct sender *s, uint64_t size)
{
	uint8_t digest[EVP_MAX_MD_SIZE];
	struct cp_end end;
	int err;

	if (EVP_DigestFinal_ex(s->hash, digest, NULL) != 1)
		return send_abort(s);
	memset(&end, 0, sizeof(end));
	cp_header_init(&end.header, CP_END, sizeof(end));
	end.size = size;
	memcpy(end.digest, digest, sizeof(end.digest));
	err = link_send(&s->link, &end, sizeof(end));
	if (err)
		return lost(s, err);
	err = await_result(s);
	if (err)
		return err;
	s->files++;
	s->bytes += size;
	if (s->options->verbose)
		print_digest(s, digest);
	return 0;
}

/* Is it still the file it was when its size was told? */
static bool unchanged(int fd, const struct stat *before, uint64_t size)
{
	struct stat now;

	return !fstat(fd, &now) && size == (uint64_t)before->st_size &&
	       now.st_size == before->st_size && now.st_mtim.tv_sec == before->st_mtim.tv_sec &&
	       now.st_mtim.tv_nsec == before->st_mtim.tv_nsec;
}

static int send_opened(struct sender *s, const struct walk_entry *entry, int fd)
{
	struct walk_entry opened = *entry;
	struct stat st;
	uint64_t size = 0;
	int err;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		complain(s, "%s: a file sought, something else found; not copied", entry->source);
		s->failures++;
		return 0;
	}
	opened.st = &st;
	err = ask(s, CP_FILE, &opened, NULL);
	if (err)
		return err < 0 ? err : 0;
	if (EVP_DigestInit_ex(s->hash, EVP_sha256(), NULL) != 1)
		return send_abort(s);
	err = send_contents(s, fd, &size);
	if (err < 0)
		return err;
	if (!err && !unchanged(fd, &st, size)) {
		complain(s, "%s: changed while it was copied; copy it again", entry->source);
		err = 1;
	}
	err = err ? send_abort(s) : send_end(s, size);
	return err < 0 ? err : 0;
}

static int send_file(struct sender *s, const struct walk_entry *entry)
{
	int fd = open(entry->source, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC), err;

	if (fd < 0) {
		complain(s, "%s: %s; not copied", entry->source, strerror(errno));
		s->failures++;
		return 0;
	}
	err = send_opened(s, entry, fd);
	close(fd);
	return err;
}

/* ---- everything else ------------------------------------------------------------------------ */

static int send_link(struct sender *s, const struct walk_entry *entry)
{
	char target[PATH_MAX];
	ssize_t length = readlink(entry->source, target, sizeof(target) - 1);
	int err;

	if (length < 0) {
		complain(s, "%s: %s; not copied", entry->source, strerror(errno));
		s->failures++;
		return 0;
	}
	target[length] = 0;
	err = ask(s, CP_LINK, entry, target);
	if (!err)
		err = await_result(s);
	s->links += !err;
	return err < 0 ? err : 0;
}

static int send_dir(struct sender *s, const struct walk_entry *entry, enum cp_type type)
{
	int err = ask(s, type, entry, NULL);

	if (!err)
		err = await_result(s);
	s->dirs += !err && type == CP_DIR;
	return err < 0 ? err : 0;
}

static int send_entry(void *context, const struct walk_entry *entry)
{
	struct sender *s = context;

	s->name = entry->path;
	switch (entry->kind) {
	case WALK_DIR:
		return send_dir(s, entry, CP_DIR);
	case WALK_DIR_END:
		return send_dir(s, entry, CP_DIR_END);
	case WALK_LINK:
		return send_link(s, entry);
	case WALK_FILE:
		return send_file(s, entry);
	case WALK_SPECIAL:
		complain(s, "%s: not copied, it is no file, directory or symbolic link",
			 entry->source);
		s->skipped++;
	}
	return 0;
}

static int add_size(void *context, const struct walk_entry *entry)
{
	if (entry->kind == WALK_FILE)
		*(uint64_t *)context += (uint64_t)entry->st->st_size;
	return 0;
}

/* ---- the session ---------------------------------------------------------------------------- */

static int hello(struct sender *s)
{
	struct stat none = { 0 };
	struct walk_entry base = { .path = s->options->dir,
				   .source = s->options->dir,
				   .st = &none };
	int err;

	s->name = *s->options->dir ? s->options->dir : ".";
	err = ask(s, CP_HELLO, &base, NULL);
	s->have_result = false;
	while (!err && !s->have_result) {
		err = listen_once(s);
		if (err)
			return lost(s, err);
	}
	if (err)
		return -EINVAL;
	if (s->message.type == CP_WELCOME) {
		s->window = s->message.welcome;
		return 0;
	}
	complain(s, "directory %s sought at %s: %s; make it first", s->name, s->options->host,
		 s->message.path);
	return -ENOENT;
}

static int bye(struct sender *s)
{
	struct cp_header header;
	int err;

	s->name = "the end";
	cp_header_init(&header, CP_BYE, sizeof(header));
	err = link_send(&s->link, &header, sizeof(header));
	return err ? lost(s, err) : await_result(s) < 0 ? -EIO : 0;
}

/* The receiver that --spawn started may have failed already. */
static bool receiver_gone(const struct sender_options *options)
{
	siginfo_t info = { 0 };

	return options->receiver &&
	       !waitid(P_PID, (id_t)options->receiver, &info, WEXITED | WNOHANG | WNOWAIT) &&
	       info.si_pid;
}

static int connect_within(struct sender *s)
{
	struct timespec pause = { 0, 20000000 };
	time_t end = time(NULL) + (time_t)s->options->wait_seconds;
	int err;

	do {
		err = link_connect(&s->link, s->options->host, 2000);
		if (err != -EAGAIN && err != -ETIMEDOUT)
			return err;
		nanosleep(&pause, NULL);
	} while (!receiver_gone(s->options) && time(NULL) <= end);
	return err;
}

static int connect_or_complain(struct sender *s)
{
	const char *host = s->options->host;
	int err = connect_within(s);

	if (err == -ENOENT)
		complain(s, "host %s sought, no such name in the fabric; vi_info lists the hosts",
			 host);
	else if (err == -EHOSTUNREACH)
		complain(s, "host %s sought, no path leads there; vi_info tells the routes", host);
	else if ((err == -EAGAIN || err == -ETIMEDOUT) && receiver_gone(s->options))
		complain(s, "the receiver on %s sought, it has ended already; see its message",
			 host);
	else if (err == -EAGAIN || err == -ETIMEDOUT)
		complain(
			s,
			"a receiver on %s sought for %u s, none answered; start vi_cp --serve DIR there",
			host, s->options->wait_seconds);
	else if (err == -EPROTO)
		complain(s, "the program on %s is no receiver of vi_cp; see --service", host);
	return err;
}

static void summary(struct sender *s)
{
	double seconds = progress_seconds(&s->progress);
	char bytes[32], rate[32];

	progress_clear(&s->progress);
	progress_bytes(seconds > 0 ? (uint64_t)((double)s->bytes / seconds) : 0, rate);
	printf("vi_cp: %u file%s, %u director%s, %u link%s, %s in %.3f s (%s/s), SHA-256 verified",
	       s->files, s->files == 1 ? "" : "s", s->dirs, s->dirs == 1 ? "y" : "ies", s->links,
	       s->links == 1 ? "" : "s", progress_bytes(s->bytes, bytes), seconds, rate);
	if (s->skipped)
		printf(", %u special file%s skipped", s->skipped, s->skipped == 1 ? "" : "s");
	if (s->failures)
		printf(", %u failure%s", s->failures, s->failures == 1 ? "" : "s");
	putchar('\n');
}

static int copy_all(struct sender *s)
{
	const struct sender_options *o = s->options;
	unsigned int unread = 0;
	uint64_t total = 0;
	int err;

	walk(o->sources, o->source_count, add_size, &total, 0, &unread);
	unread = 0;
	progress_begin(&s->progress, total, o->quiet);
	err = walk(o->sources, o->source_count, send_entry, s, 1, &unread);
	s->failures += unread;
	if (!err)
		err = bye(s);
	if (!err && !o->quiet)
		summary(s);
	progress_clear(&s->progress);
	return err || s->failures || s->skipped ? 1 : 0;
}

int sender_run(const struct sender_options *options)
{
	struct sender *s = calloc(1, sizeof(*s));
	int result = 1;

	if (!s)
		return 1;
	s->options = options;
	s->hash = EVP_MD_CTX_new();
	if (s->hash && !link_open(&s->link, options->service, false)) {
		if (!connect_or_complain(s) && !hello(s))
			result = copy_all(s);
	}
	link_close(&s->link);
	EVP_MD_CTX_free(s->hash);
	free(s);
	return result;
}
