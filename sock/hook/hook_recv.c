// SPDX-License-Identifier: BSD-2-Clause
/* Calls that receive. */
#include <errno.h>
#include <unistd.h>

#include "hook.h"
#include "vs_io.h"
#include "vs_table.h"
#include "vs_time.h"

/* True for a NULL vector, too. */
static bool all_empty(const struct iovec *v, int n)
{
	int i;

	for (i = 0; v && i < n; i++) {
		if (v[i].iov_len > 0)
			return false;
	}
	return true;
}

/* As the original.  Without a byte to read, or for a set, the kernel is called. */
VS_HOOK ssize_t read(int fd, void *buf, size_t n)
{
	struct vs_obj *o = vs_get(fd);
	ssize_t rc;

	if (vs_likely(!o))
		return vs_real.read(fd, buf, n);
	/* The kernel gives an error for an epoll set, and 0 at once for no bytes. */
	rc = n == 0 || o->kind != VS_SOCKET ? vs_real.read(fd, buf, n)
					    : vs_io_recv1(o, fd, buf, n, 0);
	vs_put(o);
	return rc;
}

/* As the original.  Without a byte to read, or for a set, the kernel is called; too many buffers are EINVAL. */
VS_HOOK ssize_t readv(int fd, const struct iovec *v, int n)
{
	struct msghdr m = { .msg_iov = (struct iovec *)(uintptr_t)v, .msg_iovlen = (size_t)n };
	struct vs_obj *o = vs_get(fd);
	ssize_t rc;

	if (vs_likely(!o))
		return vs_real.readv(fd, v, n);
	rc = n <= 0 || all_empty(v, n) || o->kind != VS_SOCKET ? vs_real.readv(fd, v, n)
							       : vs_io_recv(o, fd, &m, 0);
	if (rc < 0 && errno == EMSGSIZE)
		errno = EINVAL;
	vs_put(o);
	return rc;
}

/* Without an offset, at -1, from a stream as readv().  All else, and flags that sockets refuse, is the kernel's. */
VS_HOOK ssize_t preadv2(int fd, const struct iovec *v, int n, off_t at, int flags)
{
	struct msghdr m = { .msg_iov = (struct iovec *)(uintptr_t)v, .msg_iovlen = (size_t)n };
	struct vs_obj *o = at == -1 ? vs_get(fd) : NULL;
	ssize_t rc;

	if (vs_likely(!o))
		return vs_real.preadv2(fd, v, n, at, flags);
	if (n <= 0 || all_empty(v, n) || o->kind != VS_SOCKET || (flags & ~VS_RWF_SOCKET))
		rc = vs_real.preadv2(fd, v, n, at, flags);
	else
		rc = vs_io_recv(o, fd, &m, flags & RWF_NOWAIT ? MSG_DONTWAIT : 0);
	vs_put(o);
	return rc;
}

VS_ALSO(preadv64v2, preadv2);

VS_HOOK ssize_t recv(int fd, void *buf, size_t n, int flags)
{
	struct vs_obj *o = vs_get(fd);
	ssize_t rc;

	if (vs_likely(!o))
		return vs_real.recv(fd, buf, n, flags);
	rc = vs_io_recv1(o, fd, buf, n, flags);
	vs_put(o);
	return rc;
}

/*
 * As the original.  For a socket that has an object *alen becomes 0, and `a` is not written, as TCP gives no address.
 */
VS_HOOK ssize_t recvfrom(int fd, void *buf, size_t n, int flags, struct sockaddr *a,
			 socklen_t *alen)
{
	struct vs_obj *o = vs_get(fd);
	ssize_t rc;

	if (vs_likely(!o))
		return vs_real.recvfrom(fd, buf, n, flags, a, alen);
	if (a && !alen) {
		rc = vs_real.recvfrom(fd, buf, n, flags, a, alen);
	} else {
		rc = vs_io_recv1(o, fd, buf, n, flags);
		if (rc >= 0 && a)
			*alen = 0; /* TCP gives no address */
	}
	vs_put(o);
	return rc;
}

/* As the original.  For a stream the lengths of name and control data become 0. */
VS_HOOK ssize_t recvmsg(int fd, struct msghdr *m, int flags)
{
	struct vs_obj *o = vs_get(fd);
	ssize_t rc;

	if (vs_likely(!o))
		return vs_real.recvmsg(fd, m, flags);
	rc = m ? vs_io_recv(o, fd, m, flags) : vs_real.recvmsg(fd, m, flags);
	vs_put(o);
	return rc;
}

/*
 * recvmmsg() as the kernel does it: one by one; -1 and errno if the first fails, an error after it is left for the next
 * call.  `until`, or NULL, is looked at after each message, and ends no wait.
 */
static int receive_many(struct vs_obj *o, int fd, struct mmsghdr *m, unsigned int n, int flags,
			const struct timespec *until)
{
	unsigned int done = 0;
	ssize_t rc;

	while (done < n) {
		rc = vs_io_recv(o, fd, &m[done].msg_hdr, flags & ~MSG_WAITFORONE);
		if (rc < 0)
			break;
		m[done++].msg_len = (unsigned int)rc;
		if (flags & MSG_WAITFORONE)
			flags |= MSG_DONTWAIT;
		if (until && vs_time_left(until).tv_sec == 0 && vs_time_left(until).tv_nsec == 0)
			break;
	}
	return done > 0 ? (int)done : n == 0 ? 0 : -1;
}

/* As the original: `t` is looked at after each message, and ends no wait. */
VS_HOOK int recvmmsg(int fd, struct mmsghdr *m, unsigned int n, int flags, struct timespec *t)
{
	struct vs_obj *o = vs_get(fd);
	struct timespec until;
	int rc;

	if (vs_likely(!o))
		return vs_real.recvmmsg(fd, m, n, flags, t);
	if (!m || (t && (t->tv_sec < 0 || t->tv_nsec < 0 || t->tv_nsec >= 1000000000))) {
		rc = vs_real.recvmmsg(fd, m, n, flags, t);
	} else {
		if (t)
			until = vs_in_ns((uint64_t)t->tv_sec * 1000000000 + (uint64_t)t->tv_nsec);
		rc = receive_many(o, fd, m, n, flags, t ? &until : NULL);
	}
	vs_put(o);
	return rc;
}

/* ---- other names ---- */

VS_ALSO(__read, read);
VS_HOOK ssize_t __read_chk(int fd, void *buf, size_t n, size_t room);
VS_HOOK ssize_t __read_chk(int fd, void *buf, size_t n, size_t room)
{
	vs_check_room(n, room);
	return read(fd, buf, n);
}

VS_HOOK ssize_t __recv_chk(int fd, void *buf, size_t n, size_t room, int flags);
VS_HOOK ssize_t __recv_chk(int fd, void *buf, size_t n, size_t room, int flags)
{
	vs_check_room(n, room);
	return recv(fd, buf, n, flags);
}

VS_HOOK ssize_t __recvfrom_chk(int fd, void *buf, size_t n, size_t room, int flags,
			       struct sockaddr *a, socklen_t *alen);
VS_HOOK ssize_t __recvfrom_chk(int fd, void *buf, size_t n, size_t room, int flags,
			       struct sockaddr *a, socklen_t *alen)
{
	vs_check_room(n, room);
	return recvfrom(fd, buf, n, flags, a, alen);
}
