/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/evp.h>

#include "dest.h"
#include "receiver.h"

#define LINGER_MS 5000u

struct receiver {
	struct session *session;
	const struct receiver_options *options;
	EVP_MD_CTX *hash;
	mode_t umask;
	struct dest_file file;
	struct dest_attrs file_attrs;
	char file_path[CP_PATH_MAX + 1];
	bool in_file;	/* between FILE and END or ABORT */
	int file_error; /* why the current file fails; reported at END */
	uint64_t file_bytes;
	uint32_t next_buffer;
	bool done;
};

static int answer(struct receiver *r, int err, const char *text)
{
	enum cp_verdict verdict = !err ? CP_DONE : err == -EEXIST ? CP_LEFT_ALONE : CP_FAILED;

	if (err && !text)
		text = err == -EPERM ? "not a path below the served directory" : strerror(-err);
	if (verdict == CP_LEFT_ALONE) {
		r->session->copied.left_alone++;
	} else if (err) {
		r->session->copied.failures++;
		if (r->session->host)
			session_complain(r->session, "%s: %s", r->session->message.path, text);
	}
	return session_tell(r->session, CP_RESULT, verdict, text);
}

/* Set-user-id and set-group-id bits would pass on the receiver's rights. */
static struct dest_attrs attrs_of(const struct receiver *r)
{
	const struct cp_message *m = &r->session->message;
	uint32_t flags = r->options->flags;

	return (struct dest_attrs){
		.mode = m->mode & 01777u,
		.mtime = { .tv_sec = m->mtime_sec, .tv_nsec = m->mtime_nsec },
		.uid = m->uid,
		.gid = m->gid,
		.preserve = (flags & CP_PRESERVE) != 0,
		.owner = (flags & CP_ARCHIVE) != 0 && geteuid() == 0,
		.no_clobber = (flags & CP_NO_CLOBBER) != 0,
		.umask = r->umask,
	};
}

/* Does the server send a file that the client asked for? */
static bool asked_for(const struct receiver *r, const char *path)
{
	size_t length = strcspn(path, "/");
	int i;

	if (!r->options->names)
		return true;
	for (i = 0; i < r->options->name_count; i++)
		if (strlen(r->options->names[i]) == length &&
		    !memcmp(path, r->options->names[i], length))
			return true;
	return false;
}

static int on_dir(struct receiver *r)
{
	struct dest_attrs attrs = attrs_of(r);
	int err = dest_dir(r->options->base, r->session->message.path, &attrs);

	r->session->copied.dirs += !err;
	return answer(r, err, NULL);
}

static int on_dir_end(struct receiver *r)
{
	struct dest_attrs attrs = attrs_of(r);

	return answer(r, dest_dir_finish(r->options->base, r->session->message.path, &attrs), NULL);
}

static int on_link(struct receiver *r)
{
	const struct cp_message *m = &r->session->message;
	struct dest_attrs attrs = attrs_of(r);
	int err = dest_link(r->options->base, m->path, m->target, &attrs);

	r->session->copied.links += !err;
	return answer(r, err, NULL);
}

/* A sparse file gets room when it needs it. */
static int on_file(struct receiver *r)
{
	const struct cp_message *m = &r->session->message;
	uint64_t room = m->room < m->size ? 0 : m->size;
	int err;

	r->file_attrs = attrs_of(r);
	r->file_bytes = 0;
	memcpy(r->file_path, m->path, sizeof(r->file_path));
	if (EVP_DigestInit_ex(r->hash, EVP_sha256(), NULL) != 1)
		return -ENOMEM;
	if (m->size > INT64_MAX)
		room = m->size; /* impossible, and refused as such */
	err = dest_file_create(r->options->base, m->path, room, &r->file_attrs, &r->file);
	if (r->options->flags & CP_NO_CLOBBER) {
		r->in_file = !err;
		r->file_error = 0;
		return answer(r, err, NULL);
	}
	r->in_file = true;
	r->file_error = err;
	return 0;
}

static void fail_file(struct receiver *r, int err)
{
	if (r->file_error || !err)
		return;
	r->file_error = err;
	dest_file_discard(&r->file);
}

static int credit(struct receiver *r, uint64_t bytes)
{
	struct cp_credit message;

	r->file_bytes += bytes;
	progress_add(&r->session->progress, bytes, r->file_path);
	memset(&message, 0, sizeof(message));
	cp_header_init(&message.header, CP_CREDIT, sizeof(message));
	message.buffer = r->next_buffer;
	r->next_buffer = (r->next_buffer + 1) % CP_BUFFERS;
	return link_send(&r->session->link, &message, sizeof(message));
}

static void hash(struct receiver *r, const void *bytes, size_t length)
{
	uint64_t begin_ns = session_now_ns();

	if (!r->file_error && EVP_DigestUpdate(r->hash, bytes, length) != 1)
		fail_file(r, -ENOMEM);
	session_spent(r->session, CP_SPENT_HASH, &begin_ns);
}

/* The peer may change the buffer during this; then file and digest differ, which harms only the peer. */
static int on_data(struct receiver *r, const struct link_event *event)
{
	uint64_t begin_ns = session_now_ns();
	char *bytes;

	if (!r->in_file || event->buffer != r->next_buffer || event->length == 0 ||
	    event->length > CP_BUFFER_BYTES)
		return -EPROTO;
	bytes = link_buffer(&r->session->link, event->buffer);
	if (!r->file_error)
		fail_file(r, dest_file_write(&r->file, bytes, event->length));
	session_spent(r->session, CP_SPENT_DISK, &begin_ns);
	hash(r, bytes, event->length);
	return credit(r, event->length);
}

static int on_hole(struct receiver *r)
{
	static const char zeros[1 << 16];
	const struct cp_message *m = &r->session->message;
	uint64_t left = m->size;

	if (m->buffer != r->next_buffer)
		return -EPROTO;
	if (!r->file_error)
		fail_file(r, dest_file_hole(&r->file, m->size));
	while (left && !r->file_error) {
		size_t part = left < sizeof(zeros) ? (size_t)left : sizeof(zeros);

		hash(r, zeros, part);
		left -= part;
	}
	return credit(r, m->size);
}

static int finish_file(struct receiver *r)
{
	uint64_t begin_ns = session_now_ns();
	int err = dest_file_commit(&r->file, &r->file_attrs);

	session_spent(r->session, CP_SPENT_DISK, &begin_ns);
	if (err)
		return err;
	r->session->copied.files++;
	r->session->copied.bytes += r->file_bytes;
	if (r->session->verbose)
		session_print_digest(r->session, r->session->message.digest, r->file_path);
	return 0;
}

static int on_end(struct receiver *r)
{
	const struct cp_message *m = &r->session->message;
	uint8_t digest[EVP_MAX_MD_SIZE];

	memcpy(r->session->message.path, r->file_path, sizeof(r->file_path));
	if (EVP_DigestFinal_ex(r->hash, digest, NULL) != 1)
		fail_file(r, -ENOMEM);
	r->in_file = false;
	if (r->file_error)
		return answer(r, r->file_error, NULL);
	if (m->size != r->file_bytes || memcmp(digest, m->digest, CP_DIGEST_BYTES) != 0) {
		dest_file_discard(&r->file);
		return answer(r, -EIO,
			      "the SHA-256 of what arrived is not the sender's; copy it again");
	}
	return answer(r, finish_file(r), NULL);
}

/* The sender reports the reason, on its own side or in a NOTE before. */
static int on_abort(struct receiver *r)
{
	r->in_file = false;
	fail_file(r, -ECANCELED);
	if (!r->session->host)
		r->session->copied.failures++;
	return session_tell(r->session, CP_RESULT, CP_DONE, NULL);
}

static int on_note(struct receiver *r)
{
	r->session->copied.failures++;
	if (r->session->host)
		session_complain(r->session, "%s: %s", r->session->host, r->session->message.path);
	return session_tell(r->session, CP_RESULT, CP_DONE, NULL);
}

/* Everything is on disk before the sender may say that it is copied. */
static int on_bye(struct receiver *r)
{
	struct session *s = r->session;
	uint64_t begin_ns = session_now_ns();
	int err = s->copied.files ? dest_sync(r->options->base) : 0;

	session_spent(s, CP_SPENT_SYNC, &begin_ns);
	memcpy(s->other_spent_ns, s->message.spent_ns, sizeof(s->other_spent_ns));
	r->done = true;
	return answer(r, err, NULL);
}

static int on_entry(struct receiver *r)
{
	if (!asked_for(r, r->session->message.path))
		return -EPROTO;
	switch (r->session->message.type) {
	case CP_DIR:
		return on_dir(r);
	case CP_DIR_END:
		return on_dir_end(r);
	case CP_LINK:
		return on_link(r);
	default:
		return on_file(r);
	}
}

/* Which message is allowed when. */
static int on_message(struct receiver *r)
{
	enum cp_type type = r->session->message.type;

	if (type == CP_NOTE)
		return on_note(r);
	if (r->in_file != (type == CP_END || type == CP_ABORT || type == CP_HOLE))
		return -EPROTO;
	switch (type) {
	case CP_TOTAL:
		r->session->progress.total = r->session->message.size;
		return 0;
	case CP_DIR:
	case CP_DIR_END:
	case CP_LINK:
	case CP_FILE:
		return on_entry(r);
	case CP_HOLE:
		return on_hole(r);
	case CP_END:
		return on_end(r);
	case CP_ABORT:
		return on_abort(r);
	case CP_BYE:
		return on_bye(r);
	default:
		return -EPROTO;
	}
}

/* The last answer is under way: the sender leaves first. */
static void linger(struct session *s)
{
	struct link_event event;

	s->idle_ms = LINGER_MS;
	while (!session_next(s, &event))
		;
}

int receiver_run(struct session *s, const struct receiver_options *options, bool *removed_out)
{
	struct receiver r = { .session = s, .options = options, .file.fd = -1 };
	struct link_event event;
	int err;

	r.umask = umask(077);
	umask(r.umask);
	r.hash = EVP_MD_CTX_new();
	err = r.hash ? 0 : -ENOMEM;
	while (!err && !r.done) {
		err = s->stop && *s->stop ? -EINTR : session_next(s, &event);
		if (!err)
			err = event.is_data ? on_data(&r, &event) : on_message(&r);
	}
	*removed_out = r.file.fd >= 0;
	dest_file_discard(&r.file);
	EVP_MD_CTX_free(r.hash);
	if (!err)
		linger(s);
	return err;
}
