// SPDX-License-Identifier: BSD-2-Clause
/* Calls that make, name, change and end descriptors. */
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "hook.h"
#include "vs_ask.h"
#include "vs_bind.h"
#include "vs_init.h"
#include "vs_opts.h"
#include "vs_sock.h"
#include "vs_table.h"

/*
 * As the original.  A TCP socket gets an object; with a number of 0 to 2 it stays with the kernel, as stdio may use it.
 */
VS_HOOK int socket(int family, int type, int protocol)
{
	int fd = vs_real.socket(family, type, protocol);

	if (fd >= 0) {
		if (vs_unlikely(vs_peek(fd) != NULL)) /* closed unseen */
			vs_forget_fd(fd);
		vs_sock_made(fd, family, type, protocol);
		vs_stdio_fd(fd);
	}
	return fd;
}

/* As the original, but a TCP socket that is bound to any address gets this host's, if the process stands for a host. */
VS_HOOK int bind(int fd, const struct sockaddr *a, socklen_t alen)
{
	struct sockaddr_storage ours;

	if (vs_bind_any(fd, a, alen, &ours))
		a = (struct sockaddr *)&ours;
	return vs_real.bind(fd, a, alen);
}

/* As the original; the socket stays with the kernel. */
VS_HOOK int listen(int fd, int backlog)
{
	int rc = vs_real.listen(fd, backlog);

	if (rc == 0 && vs_peek(fd))
		vs_sock_listens(fd);
	return rc;
}

/* As the original.  A stream may be made then; AF_UNSPEC, which ends a connection, moves that to the kernel first. */
VS_HOOK int connect(int fd, const struct sockaddr *a, socklen_t alen)
{
	struct vs_obj *o;
	int rc;

	vs_bind_source(fd, a, alen);
	/* Ends a connection; the descriptor may get another one then. */
	if (vs_unlikely(vs_peek(fd) && a && alen >= sizeof(a->sa_family) &&
			a->sa_family == AF_UNSPEC))
		vs_give_kernel(fd, VS_WHY_OPTION);
	rc = vs_real.connect(fd, a, alen);
	o = vs_get(fd);
	if (vs_unlikely(o != NULL)) {
		int error = rc == 0 ? 0 : errno;

		vs_sock_connect(o, fd, error);
		vs_put(o);
		if (rc != 0)
			errno = error;
	}
	return rc;
}

/*
 * After accept(): gives the new descriptor an object if it needs one; returns that descriptor, or the error.  One with
 * a number of 0 to 2 stays with the kernel.
 */
static int accepted(int listener, int fd, bool nonblock)
{
	if (fd >= 0 && vs_sock_is_accepted(listener, fd)) {
		if (vs_unlikely(vs_peek(fd) != NULL))
			vs_forget_fd(fd);
		vs_sock_accepted(listener, fd, nonblock);
		vs_stdio_fd(fd);
	}
	return fd;
}

VS_HOOK int accept(int fd, struct sockaddr *a, socklen_t *alen)
{
	return accepted(fd, vs_real.accept(fd, a, alen), false);
}

VS_HOOK int accept4(int fd, struct sockaddr *a, socklen_t *alen, int flags)
{
	return accepted(fd, vs_real.accept4(fd, a, alen, flags), flags & SOCK_NONBLOCK);
}

/* As the original, of the stream if there is one. */
VS_HOOK int shutdown(int fd, int how)
{
	struct vs_obj *o = vs_get(fd);
	int rc;

	if (vs_likely(!o))
		return vs_real.shutdown(fd, how);
	rc = vs_opts_shutdown(o, fd, how);
	vs_put(o);
	return rc;
}

/*
 * As the original.  The descriptor loses its object before, also if the kernel then gives an error; the last one ends
 * the connection, which may wait as SO_LINGER says.
 */
VS_HOOK int close(int fd)
{
	if (vs_unlikely(vs_peek(fd) != NULL))
		vs_forget_fd(fd);
	return vs_real.close(fd);
}

/* As the original; SO_ERROR and SO_LINGER of a stream come from the stream. */
VS_HOOK int getsockopt(int fd, int level, int name, void *v, socklen_t *len)
{
	struct vs_obj *o = vs_get(fd);
	int rc;

	if (vs_likely(!o))
		return vs_real.getsockopt(fd, level, name, v, len);
	rc = vs_opts_get(o, fd, level, name, v, len);
	vs_put(o);
	return rc;
}

/* As the original.  An option that only the kernel serves moves a connection to it first. */
VS_HOOK int setsockopt(int fd, int level, int name, const void *v, socklen_t len)
{
	struct vs_obj *o = vs_get(fd);
	int rc;

	if (vs_likely(!o))
		return vs_real.setsockopt(fd, level, name, v, len);
	rc = vs_opts_set(o, fd, level, name, v, len);
	vs_put(o);
	return rc;
}

/* As the original.  FIONREAD and SIOCOUTQ count the bytes of a stream; FIOASYNC moves it to the kernel. */
VS_HOOK int ioctl(int fd, unsigned long op, ...)
{
	struct vs_obj *o = vs_get(fd);
	va_list ap;
	void *arg;
	int rc;

	va_start(ap, op);
	arg = va_arg(ap, void *);
	va_end(ap);
	if (vs_likely(!o))
		return vs_real.ioctl(fd, op, arg);
	rc = vs_opts_ioctl(o, fd, op, arg);
	vs_put(o);
	return rc;
}

/* As the original, which asks the kernel by an ioctl() of its own. */
VS_HOOK int sockatmark(int fd)
{
	int at = 0;

	return ioctl(fd, SIOCATMARK, &at) < 0 ? -1 : at;
}

/* As the original.  O_ASYNC moves a connection to the kernel, and so does a copy with a number of 0 to 2. */
VS_HOOK int fcntl64(int fd, int op, ...)
{
	struct vs_obj *o = vs_get(fd);
	unsigned long arg;
	va_list ap;
	int rc;

	va_start(ap, op);
	arg = va_arg(ap, unsigned long);
	va_end(ap);
	if (vs_likely(!o))
		return vs_real.fcntl64(fd, op, arg);
	rc = vs_opts_fcntl(o, fd, op, arg);
	vs_put(o);
	return rc;
}

/* ---- copies ---- */

/* As the original; the copy shares the object, and with a number of 0 to 2 moves a connection to the kernel. */
VS_HOOK int dup(int fd)
{
	int made = vs_real.dup(fd);

	if (made >= 0 && vs_unlikely(vs_peek(fd) != NULL))
		vs_dup_made(fd, made);
	return made;
}

/*
 * dup2(), or dup3() with `three`.  The object of `to` ends as by close().  If another thread sleeps in a call on it,
 * the kernel's descriptor changes during that call, and the end of the object wakes the thread.
 */
static int onto(int fd, int to, int flags, bool three)
{
	struct vs_obj *o;
	int made;

	if (vs_likely(!vs_peek(fd) && !vs_peek(to)))
		return three ? vs_real.dup3(fd, to, flags) : vs_real.dup2(fd, to);
	if (fd == to || (flags & ~O_CLOEXEC) || vs_real.fcntl64(fd, F_GETFD, 0) < 0)
		return three ? vs_real.dup3(fd, to, flags) : vs_real.dup2(fd, to);
	o = vs_get(fd);
	vs_forget_fd(to);
	made = three ? vs_real.dup3(fd, to, flags) : vs_real.dup2(fd, to);
	if (made >= 0 && o) {
		vs_table_set(made, o);
		vs_ask_for(o);
	}
	if (o)
		vs_put(o);
	vs_stdio_fd(made);
	return made;
}

VS_HOOK int dup2(int fd, int to)
{
	return onto(fd, to, 0, false);
}

VS_HOOK int dup3(int fd, int to, int flags)
{
	return onto(fd, to, flags, true);
}

/*
 * As the original.  Ends the objects of these descriptors, and spares those of this library and the fabric; with
 * CLOSE_RANGE_CLOEXEC it does neither.
 */
VS_HOOK int close_range(unsigned int from, unsigned int to, int flags)
{
	int fd = (int)from - 1;

	if (from > to || (flags & ~CLOSE_RANGE_UNSHARE) || from > INT32_MAX)
		return vs_real.close_range(from, to, flags);
	while ((fd = vs_table_next(fd + 1)) >= 0 && (unsigned int)fd <= to) {
		vs_forget_fd(fd);
		if (fd >= vs_ours_from && flags == 0) /* else it might be spared */
			vs_real.close(fd);
	}
	return vs_close_all(from, to, flags);
}

VS_HOOK void closefrom(int from)
{
	close_range(from < 0 ? 0 : (unsigned int)from, ~0u, 0);
}

VS_ALSO(__close, close);
VS_ALSO(__connect, connect);
VS_ALSO(fcntl, fcntl64);
VS_ALSO(__fcntl, fcntl64);
VS_ALSO(__dup2, dup2);
