// SPDX-License-Identifier: BSD-2-Clause
/* sendfile() and splice() with a stream at one end: the bytes pass through a buffer of the thread. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "vs_io.h"
#include "vs_io_wait.h"
#include "vs_real.h"
#include "vs_sock.h"

#define PIECE 65536

static ssize_t fail(int error)
{
	errno = error;
	return -1;
}

/* Bytes that were moved are reported instead of the failure that came after them. */
static ssize_t outcome(size_t done, ssize_t last)
{
	return done > 0 ? (ssize_t)done : last;
}

/* ---- sendfile ---- */

/* Reads at *at, or at `base` if at is NULL; moves no offset. */
static ssize_t read_piece(int in, off64_t *at, off64_t base, char *buf, size_t n)
{
	return at ? pread64(in, buf, n, *at) : pread64(in, buf, n, base);
}

/* False: `in` cannot be read at an offset, and the kernel is to say so. */
static bool has_offsets(int in, off64_t *base)
{
	int before = errno;

	*base = lseek64(in, 0, SEEK_CUR);
	errno = before;
	return *base >= 0;
}

/* Sends up to n bytes of the file, and moves *at: the bytes sent, or what the first failure gives. */
static ssize_t send_pieces(struct vs_obj *o, int out, int in, off64_t *at, off64_t base, size_t n,
			   char *buf)
{
	size_t done = 0, want;
	ssize_t got, sent;

	while (done < n) {
		want = n - done < PIECE ? n - done : PIECE;
		got = read_piece(in, at, base + (off64_t)done, buf, want);
		if (got <= 0)
			return outcome(done, got);
		sent = vs_io_send1(o, out, buf, (size_t)got, 0);
		if (sent <= 0)
			return outcome(done, sent);
		done += (size_t)sent;
		if (at)
			*at += sent;
		if (sent < got)
			break;
	}
	return (ssize_t)done;
}

ssize_t vs_io_sendfile(struct vs_obj *o, int out, int in, off64_t *at, size_t n)
{
	struct st_stream *s = vs_is_socket(o) ? vs_sock_stream(o, out) : NULL;
	off64_t base = 0;
	ssize_t done;
	char *buf;

	if (!s || !has_offsets(in, &base)) {
		done = vs_real.sendfile64(out, in, at, n);
		if (done > 0 && vs_is_socket(o) && !s)
			vs_stat_add(VS_TCP_TX, (uint64_t)done);
		return done;
	}
	buf = malloc(PIECE);
	if (!buf)
		return fail(ENOMEM);
	done = send_pieces(o, out, in, at, base, n, buf);
	if (!at && done > 0)
		lseek64(in, base + done, SEEK_SET);
	free(buf);
	return done;
}

/* ---- splice ---- */

static bool is_pipe(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode);
}

#define PAGE 4096

/* Pages of a pipe that are free for sure, in bytes: each byte of it may have a page of its own. */
static size_t pipe_room(int out)
{
	int size = vs_real.fcntl64(out, F_GETPIPE_SZ, 0), have = 0;

	if (size < 0 || vs_real.ioctl(out, FIONREAD, &have) != 0)
		return PAGE;
	return size - have < 2 * PAGE ? PAGE : (size_t)(size - have) / PAGE * PAGE;
}

/* As much as the pipe takes without waiting; kernels before 6.4 cannot be asked for that. */
static ssize_t write_pipe(int out, const char *buf, size_t n)
{
	struct iovec v = { (void *)(uintptr_t)buf, n };
	ssize_t put = vs_real.pwritev2(out, &v, 1, -1, RWF_NOWAIT);
	size_t most;

	if (put >= 0 || (errno != EOPNOTSUPP && errno != ENOSYS && errno != EINVAL))
		return put;
	most = pipe_room(out);
	return vs_real.write(out, buf, n < most ? n : most);
}

/*
 * Waits for room in the pipe, if the call may: 0; -1 and EAGAIN or another error.  As the kernel, which does so before
 * it looks at the socket.
 */
static int await_room(int out, bool wait)
{
	struct pollfd p = { .fd = out, .events = POLLOUT };
	int rc = vs_real.poll(&p, 1, wait ? -1 : 0);

	if (rc == 0)
		errno = EAGAIN;
	return rc > 0 ? 0 : -1;
}

/* Moves bytes that the pipe takes; bytes, 0 at the stream's end, or -1 with errno. */
static ssize_t stream_to_pipe(struct vs_obj *o, int fd, int out, char *buf, size_t n, int flags)
{
	bool wait = !(flags & MSG_DONTWAIT) && !(vs_real.fcntl64(out, F_GETFL, 0) & O_NONBLOCK);
	ssize_t got, put;

	do {
		if (await_room(out, wait) != 0)
			return -1;
		got = vs_io_recv1(o, fd, buf, n, MSG_PEEK | flags);
		if (got <= 0)
			return got;
		put = write_pipe(out, buf, (size_t)got);
	} while (put < 0 && errno == EAGAIN && wait);
	if (put > 0)
		vs_io_recv1(o, fd, buf, (size_t)put, MSG_DONTWAIT);
	return put;
}

/*
 * Moves up to PIECE bytes from the stream into a pipe, and takes from the stream only what the pipe took.  Without a
 * stream, with `at`, or if `out` is no pipe, the kernel's splice() is called.  Returns bytes, or -1 and errno.
 */
ssize_t vs_io_splice_in(struct vs_obj *o, int fd, int out, off64_t *at, size_t n,
			unsigned int flags)
{
	struct st_stream *s = vs_is_socket(o) ? vs_sock_stream(o, fd) : NULL;
	int dontwait = (flags & SPLICE_F_NONBLOCK) ? MSG_DONTWAIT : 0;
	ssize_t got;
	char *buf;

	if (!s || at || !is_pipe(out)) {
		got = vs_real.splice(fd, NULL, out, at, n, flags);
		if (got > 0 && vs_is_socket(o))
			vs_stat_add(VS_TCP_RX, (uint64_t)got);
		return got;
	}
	buf = malloc(PIECE);
	if (!buf)
		return fail(ENOMEM);
	got = stream_to_pipe(o, fd, out, buf, n < PIECE ? n : PIECE, dontwait);
	free(buf);
	return got;
}

/* How many bytes the stream has room for, after a wait if the call may; or -errno. */
static int64_t room(struct vs_obj *o, struct st_stream *s, bool wait)
{
	struct timespec at;
	const struct timespec *until = vs_io_deadline(atomic_load(&o->sock.send_ns), &at);
	int64_t n;
	int rc;

	for (;;) {
		n = st_writable_bytes(s);
		if (n > 0)
			return n;
		if (!wait)
			return -EAGAIN;
		rc = vs_io_wait(o, s, ST_OUT, until);
		if (rc < 0)
			return rc;
	}
}

/* Reads the pipe; -1 and EAGAIN where it is empty and the call must not wait. */
static ssize_t read_pipe(int in, char *buf, size_t n, bool wait)
{
	struct pollfd p = { .fd = in, .events = POLLIN };

	if (!wait && vs_real.poll(&p, 1, 0) == 0)
		return fail(EAGAIN);
	return vs_real.read(in, buf, n);
}

/*
 * Sends all, and waits for room: the bytes sent, or -1 with errno.  Bytes that were taken from the pipe cannot be put
 * back, so they are sent whatever the socket's mode.
 */
static ssize_t send_all(struct vs_obj *o, struct st_stream *s, int fd, const char *buf, size_t n,
			int flags)
{
	size_t done = 0;
	ssize_t sent;

	while (done < n) {
		sent = vs_io_send1(o, fd, buf + done, n - done, flags);
		if (sent < 0 && (errno != EAGAIN || vs_io_wait(o, s, ST_OUT, NULL) != 0))
			return outcome(done, -1);
		if (sent > 0)
			done += (size_t)sent;
	}
	return (ssize_t)done;
}

/* Moves bytes from the pipe, as many as the stream has room for: bytes, 0 at the pipe's end, or -1 with errno. */
static ssize_t pipe_to_stream(struct vs_obj *o, struct st_stream *s, int in, int fd, size_t n,
			      unsigned int flags)
{
	bool wait = !(flags & SPLICE_F_NONBLOCK);
	int64_t most = room(o, s, wait && !atomic_load(&o->sock.nonblock));
	ssize_t got;
	char *buf;

	if (most < 0)
		return fail((int)-most);
	if (n > (size_t)most)
		n = (size_t)most;
	buf = malloc(PIECE);
	if (!buf)
		return fail(ENOMEM);
	got = read_pipe(in, buf, n < PIECE ? n : PIECE, wait);
	if (got > 0)
		got = send_all(o, s, fd, buf, (size_t)got, flags & SPLICE_F_MORE ? MSG_MORE : 0);
	free(buf);
	return got;
}

/* From a pipe into the stream: no more is taken from the pipe than the stream has room for. */
ssize_t vs_io_splice_out(struct vs_obj *o, int in, off64_t *at, int fd, size_t n,
			 unsigned int flags)
{
	struct st_stream *s = vs_is_socket(o) ? vs_sock_stream(o, fd) : NULL;
	ssize_t done;

	if (s && !at && is_pipe(in))
		return pipe_to_stream(o, s, in, fd, n, flags);
	done = vs_real.splice(in, at, fd, NULL, n, flags);
	if (done > 0 && vs_is_socket(o))
		vs_stat_add(VS_TCP_TX, (uint64_t)done);
	return done;
}
