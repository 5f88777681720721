// SPDX-License-Identifier: BSD-2-Clause
/*
 * Blocking and non-blocking calls over streams, which never block: MSG_WAITALL, low-water marks
 * and SIGPIPE are made here, their waits in vs_io_wait.c.
 */
#include "vs_io.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "vs_epoll.h"
#include "vs_io_wait.h"
#include "vs_ready.h"
#include "vs_real.h"
#include "vs_signal.h"
#include "vs_sock.h"
#include "vs_sock_promote.h"
#include "vs_table.h"
#include "vs_time.h"

#define WAIT_TCP_MS 1000
#define SWITCH_NS 100000000
#define MUCH_UNSENT 16384

/* The rest of a message's buffers; the first one may be used in part. */
struct rest {
	const struct iovec *v;
	size_t n;
	size_t done; /* bytes of v[0] */
	size_t left; /* bytes in all */
	size_t told; /* bytes that vs_sock_moved() knows of */
};

static ssize_t fail(int error)
{
	errno = error;
	return -1;
}

/* Begins a rest with all buffers: 0, or -EMSGSIZE, -EINVAL, as the kernel checks them. */
static int rest_init(struct rest *r, const struct iovec *v, size_t n)
{
	size_t i;

	if (n > IOV_MAX)
		return -EMSGSIZE;
	*r = (struct rest){ .v = v, .n = n };
	for (i = 0; i < n; i++) {
		if (v[i].iov_len > SSIZE_MAX - r->left)
			return -EINVAL;
		r->left += v[i].iov_len;
	}
	return 0;
}

/* Advances a rest by bytes that have moved. */
static void rest_take(struct rest *r, size_t bytes)
{
	r->left -= bytes;
	r->done += bytes;
	while (r->n > 0 && r->done >= r->v->iov_len) {
		r->done -= r->v->iov_len;
		r->v++;
		r->n--;
	}
}

/* Copies the buffers of a begun rest, at most `max`; how many. */
static int rest_vector(const struct rest *r, struct iovec *v, int max)
{
	int i, n = r->n < (size_t)max ? (int)r->n : max;

	for (i = 0; i < n; i++)
		v[i] = r->v[i];
	if (n > 0) {
		v[0].iov_base = (char *)v[0].iov_base + r->done;
		v[0].iov_len -= r->done;
	}
	return n;
}

/* `done` bytes of the call have moved: vs_sock_moved() is told those that it does not know of. */
static void moved(struct vs_obj *o, bool sent, struct rest *r, size_t done)
{
	if (done > r->told)
		vs_sock_moved(o, sent, done - r->told);
	r->told = done;
}

/* Takes an error that an earlier call has left: positive, or 0. */
static int take_error(struct vs_obj *o)
{
	if (vs_likely(atomic_load_explicit(&o->sock.error, memory_order_relaxed) == 0))
		return 0;
	return atomic_exchange(&o->sock.error, 0);
}

#define VECTOR 16

/* Receives into the first of `r`, and does not advance it.  Returns what st_recv() does. */
static ssize_t recv_some(struct st_stream *s, const struct rest *r, int flags)
{
	struct iovec v[VECTOR];

	return st_recv(s, v, rest_vector(r, v, VECTOR), flags & (MSG_PEEK | MSG_TRUNC));
}

/* Sends the first of `r`, as far as there is room, and does not advance it.  Returns what st_send() does. */
static ssize_t send_some(struct st_stream *s, const struct rest *r, int flags)
{
	struct iovec v[VECTOR];
	int n = rest_vector(r, v, VECTOR);

	if (r->n > VECTOR)
		flags |= MSG_MORE;
	return st_send(s, v, n, flags & MSG_MORE);
}

/* True: no more will come than is there.  For a stream on TCP the kernel tells that. */
static bool has_ended(struct st_stream *s, int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLRDHUP };
	struct st_ready ready;

	st_ready(s, &ready);
	if (ready.events & (ST_RDHUP | ST_HUP | ST_ERR))
		return true;
	return (ready.kernel & ST_IN) && vs_real.poll(&p, 1, 0) > 0;
}

/* Sleeps for a moment, as the stream tells of the first byte only: 0: look again; -EAGAIN: the time is over; -EINTR. */
static int wait_more(struct st_stream *s, int fd, size_t have, const struct timespec *until)
{
	uint32_t interrupts = vs_interrupts();
	int rc;

	if (has_ended(s, fd) || st_readable_bytes(s) > (int64_t)have)
		return 0;
	rc = vs_sleep_slice(NULL, 0, until, true, NULL);
	if (rc >= 0)
		return rc > 0 ? 0 : -EAGAIN;
	return !until && vs_restarts(interrupts) ? 0 : -EINTR;
}

/*
 * Receives with MSG_PEEK: bytes, 0 at the end, or -errno.  A peek takes nothing, so what it has found is asked for
 * again until there is enough.
 */
static ssize_t peek(struct vs_obj *o, struct st_stream *s, int fd, const struct rest *r, int flags,
		    size_t target, bool wait)
{
	struct timespec at;
	const struct timespec *until = vs_io_deadline(atomic_load(&o->sock.receive_ns), &at);
	bool ended = false;
	ssize_t n;
	int rc;

	for (;;) {
		n = recv_some(s, r, flags);
		if (n == 0 || (n > 0 && ((size_t)n >= target || !wait || ended)))
			return n;
		if (n < 0 && (n != -EAGAIN || !wait))
			return n;
		rc = n > 0 ? wait_more(s, fd, (size_t)n, until) : vs_io_wait(o, s, ST_IN, until);
		if (rc < 0)
			return n > 0 ? n : rc;
		/* Before the next look at the bytes: what came before the end is there then. */
		ended = n > 0 && has_ended(s, fd);
	}
}

/* True: the next byte of a stream that some bytes came from is after an urgent one, where the kernel ends a call. */
static bool at_mark(struct st_stream *s, int fd)
{
	int at = 0;

	/* An urgent byte is sent once both directions have left the VI, of which each end knows then. */
	if ((st_on_vi(s) & ST_IN) && st_why(s) == ST_WHY_NONE)
		return false;
	return vs_ready_at_mark(s, fd, &at) == 0 && at != 0;
}

/*
 * Receives until there are `target` bytes, or the stream ends or fails; advances `r`.  With `wait` it sleeps when none
 * are there.  Returns bytes, 0 at the end, or -errno; the next call returns an error that follows some bytes.
 */
static ssize_t take(struct vs_obj *o, struct st_stream *s, int fd, struct rest *r, int flags,
		    size_t target, bool wait)
{
	const struct timespec *until = NULL;
	struct timespec at;
	size_t done = 0;
	ssize_t n;

	for (;;) {
		n = recv_some(s, r, flags);
		if (n > 0) {
			done += (size_t)n;
			rest_take(r, (size_t)n);
			if (r->left == 0 || done >= target || at_mark(s, fd))
				return (ssize_t)done;
			continue;
		}
		if (n == -EAGAIN && wait) {
			if (!until)
				until = vs_io_deadline(atomic_load(&o->sock.receive_ns), &at);
			moved(o, false, r, done);
			n = vs_io_wait(o, s, ST_IN, until);
			if (n == 0)
				continue;
		}
		if (done == 0)
			return n;
		if (n < 0 && n != -EAGAIN && n != -EINTR) {
			atomic_store(&o->sock.error, (int)-n);
			vs_epoll_check(o);
		}
		return (ssize_t)done;
	}
}

/* May the call wait?  Asks for O_NONBLOCK where another process that has the socket may have changed it. */
static bool may_wait(struct vs_obj *o, int fd, int flags)
{
	if (flags & MSG_DONTWAIT)
		return false;
	if (vs_unlikely(vs_sock_shared()))
		vs_sock_see_nonblock(o, fd);
	return !atomic_load_explicit(&o->sock.nonblock, memory_order_relaxed);
}

/* recvmsg() of a stream: bytes, 0 at the end, or -errno, first an error that was kept. */
static ssize_t stream_recv(struct vs_obj *o, struct st_stream *s, int fd, struct msghdr *m,
			   int flags)
{
	bool wait = may_wait(o, fd, flags);
	size_t target, low = (size_t)atomic_load(&o->sock.low_water);
	int error = take_error(o);
	struct rest r;
	int rc = rest_init(&r, m->msg_iov, m->msg_iovlen);
	ssize_t n;

	if (error || rc < 0)
		return error ? -error : rc;
	target = (flags & MSG_WAITALL) ? r.left : low;
	if (target > r.left)
		target = r.left;
	if (flags & MSG_PEEK)
		return peek(o, s, fd, &r, flags, target, wait);
	n = take(o, s, fd, &r, flags, target, wait);
	moved(o, false, &r, n > 0 ? (size_t)n : 0);
	return n;
}

ssize_t vs_io_recv(struct vs_obj *o, int fd, struct msghdr *m, int flags)
{
	struct st_stream *s = vs_is_socket(o) ? vs_sock_stream(o, fd) : NULL;
	int before = errno;
	ssize_t n;

	if (s && (flags & (MSG_OOB | MSG_ERRQUEUE))) {
		if (flags & MSG_OOB)
			vs_sock_bar(o, VS_WHY_URGENT);
		return vs_real.recvmsg(fd, m, flags);
	}
	if (!s) {
		n = vs_real.recvmsg(fd, m, flags);
		if (n > 0 && vs_is_socket(o) && !(flags & MSG_PEEK))
			vs_stat_add(VS_TCP_RX, (uint64_t)n);
		return n;
	}
	n = stream_recv(o, s, fd, m, flags);
	if (n < 0)
		return fail((int)-n);
	m->msg_namelen = 0;
	m->msg_controllen = 0;
	m->msg_flags = flags & MSG_CMSG_CLOEXEC;
	errno = before;
	return n;
}

/* True: the call of a stream only moves bytes.  False: the longer way, which is right for all calls. */
static bool is_plain(struct vs_obj *o, size_t n, int flags)
{
	return vs_likely(n > 0 && !(flags & ~(MSG_DONTWAIT | MSG_NOSIGNAL)) &&
			 !atomic_load_explicit(&o->sock.error, memory_order_relaxed) &&
			 !atomic_load_explicit(&o->sock.cork, memory_order_relaxed) &&
			 atomic_load_explicit(&o->sock.low_water, memory_order_relaxed) <= 1);
}

/* recv() of an object without a stream. */
static ssize_t kernel_recv(struct vs_obj *o, int fd, void *buf, size_t n, int flags)
{
	ssize_t rc = vs_real.recv(fd, buf, n, flags);

	if (rc > 0 && vs_is_socket(o) && !(flags & MSG_PEEK))
		vs_stat_add(VS_TCP_RX, (uint64_t)rc);
	return rc;
}

ssize_t vs_io_recv1(struct vs_obj *o, int fd, void *buf, size_t n, int flags)
{
	struct st_stream *s = vs_is_socket(o) ? vs_sock_stream(o, fd) : NULL;
	struct iovec v = { .iov_base = buf, .iov_len = n };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1 };
	int before = errno;
	bool plain = s && is_plain(o, n, flags);
	ssize_t rc = plain ? st_recv(s, &v, 1, 0) : -EAGAIN;

	if (vs_likely(rc > 0)) {
		vs_sock_moved(o, false, (size_t)rc);
		errno = before;
		return rc;
	}
	if (!s)
		return kernel_recv(o, fd, buf, n, flags);
	if (plain && (rc != -EAGAIN || !may_wait(o, fd, flags)))
		return rc == 0 ? 0 : fail((int)-rc);
	/* It was looked just now: first the sleep, whose time limit the longer way measures, then the bytes. */
	if (plain && atomic_load(&o->sock.receive_ns) == 0) {
		rc = vs_io_wait(o, s, ST_IN, NULL);
		if (rc < 0)
			return fail((int)-rc);
		errno = before;
	}
	return vs_io_recv(o, fd, &m, flags);
}

/* ---- sending ---- */

/* Sends SIGPIPE to this thread unless MSG_NOSIGNAL is set. */
static void broken_pipe(int flags)
{
	if (!(flags & MSG_NOSIGNAL))
		syscall(SYS_tgkill, getpid(), gettid(), SIGPIPE);
}

/*
 * True: the direction was moving to a VI, and takes bytes now.  It takes none until the other end has agreed, where the
 * kernel would have room if little is unsent; so a call that must not block waits for a moment, too.
 */
static bool between_paths(struct vs_obj *o, struct st_stream *s)
{
	struct timespec until = vs_in_ns(SWITCH_NS);
	struct st_ready ready;

	st_ready(s, &ready);
	if ((ready.kernel & ST_OUT) || (st_on_vi(s) & ST_OUT) || st_unsent_bytes(s) > MUCH_UNSENT)
		return false;
	return vs_io_wait_once(o, s, ST_OUT, &until) > 0;
}

/* Sends the rest, with `wait` all of it: the bytes sent, also where an error ends it; or -errno if there are none. */
static ssize_t give(struct vs_obj *o, struct st_stream *s, struct rest *r, int flags, bool wait)
{
	const struct timespec *until = NULL;
	struct timespec at;
	size_t done = 0;
	ssize_t n = 0;

	while (r->left > 0) {
		n = send_some(s, r, flags);
		if (n == -EAGAIN && done == 0 && between_paths(o, s))
			n = send_some(s, r, flags);
		if (n > 0) {
			done += (size_t)n;
			rest_take(r, (size_t)n);
			continue;
		}
		if (n == -EAGAIN && wait) {
			if (!until)
				until = vs_io_deadline(atomic_load(&o->sock.send_ns), &at);
			moved(o, true, r, done); /* the call may go on for long */
			n = vs_io_wait(o, s, ST_OUT, until);
			if (n == 0)
				continue;
		}
		break;
	}
	if (done > 0 || r->left == 0)
		return (ssize_t)done;
	return n;
}

/*
 * MSG_OOB: sends by the kernel, once the stream is back on TCP for ever; -1 and EAGAIN if that takes too long, a second
 * where the call may wait.
 */
static ssize_t urgent_send(struct vs_obj *o, int fd, const struct msghdr *m, int flags)
{
	bool wait = may_wait(o, fd, flags);

	vs_sock_bar(o, VS_WHY_URGENT);
	if (vs_sock_wait_tcp(o, wait ? WAIT_TCP_MS : 0) != 0)
		return fail(EAGAIN);
	return vs_real.sendmsg(fd, m, flags);
}

/* sendmsg() of a stream: bytes, or -errno, first an error that was kept. */
static ssize_t stream_send(struct vs_obj *o, struct st_stream *s, int fd, const struct msghdr *m,
			   int flags)
{
	bool wait = may_wait(o, fd, flags);
	int error = take_error(o);
	struct rest r;
	int rc = rest_init(&r, m->msg_iov, m->msg_iovlen);
	ssize_t n;

	if (error || rc < 0)
		return error ? -error : rc;
	if (atomic_load_explicit(&o->sock.cork, memory_order_relaxed))
		flags |= MSG_MORE;
	if (r.left == 0)
		return atomic_load(&o->sock.shut) ? -EPIPE : 0;
	n = give(o, s, &r, flags, wait);
	moved(o, true, &r, n > 0 ? (size_t)n : 0);
	return n;
}

ssize_t vs_io_send(struct vs_obj *o, int fd, const struct msghdr *m, int flags)
{
	struct st_stream *s;
	int before = errno;
	ssize_t n;

	if (vs_is_socket(o) && (flags & MSG_FASTOPEN))
		vs_sock_bar(o, VS_WHY_OPTION);
	s = vs_is_socket(o) ? vs_sock_stream(o, fd) : NULL;
	if (s && (flags & MSG_OOB))
		return urgent_send(o, fd, m, flags);
	if (!s) {
		n = vs_real.sendmsg(fd, m, flags);
		if (n > 0 && vs_is_socket(o))
			vs_stat_add(VS_TCP_TX, (uint64_t)n);
		return n;
	}
	n = stream_send(o, s, fd, m, flags);
	if (n < 0) {
		if (n == -EPIPE)
			broken_pipe(flags);
		return fail((int)-n);
	}
	errno = before;
	return n;
}

/* Goes on with a call of which `done` bytes are sent; returns all that are sent then, whatever ends it. */
static ssize_t send_rest(struct vs_obj *o, struct st_stream *s, int fd, struct msghdr *m,
			 size_t done, int flags)
{
	struct rest r;
	ssize_t n;

	if (rest_init(&r, m->msg_iov, m->msg_iovlen) < 0)
		return (ssize_t)done;
	rest_take(&r, done);
	n = give(o, s, &r, flags, may_wait(o, fd, flags));
	n = n > 0 ? n : 0;
	moved(o, true, &r, (size_t)n);
	return (ssize_t)done + n;
}

/* send() of an object without a stream, and without MSG_FASTOPEN, which vs_io_send() sees to. */
static ssize_t kernel_send(struct vs_obj *o, int fd, const void *buf, size_t n, int flags)
{
	ssize_t rc = vs_real.send(fd, buf, n, flags);

	if (rc > 0 && vs_is_socket(o))
		vs_stat_add(VS_TCP_TX, (uint64_t)rc);
	return rc;
}

ssize_t vs_io_send1(struct vs_obj *o, int fd, const void *buf, size_t n, int flags)
{
	struct st_stream *s = vs_is_socket(o) ? vs_sock_stream(o, fd) : NULL;
	struct iovec v = { .iov_base = (void *)(uintptr_t)buf, .iov_len = n };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1 };
	int before = errno;
	ssize_t rc = s && is_plain(o, n, flags) ? st_send(s, &v, 1, 0) : -EAGAIN;

	if (vs_unlikely(!s) && !(flags & MSG_FASTOPEN))
		return kernel_send(o, fd, buf, n, flags);
	if (rc == -EAGAIN)
		return vs_io_send(o, fd, &m, flags);
	if (vs_unlikely(rc < 0)) {
		if (rc == -EPIPE)
			broken_pipe(flags);
		return fail((int)-rc);
	}
	vs_sock_moved(o, true, (size_t)rc);
	if (vs_unlikely((size_t)rc < n))
		rc = send_rest(o, s, fd, &m, (size_t)rc, flags);
	errno = before;
	return rc;
}
