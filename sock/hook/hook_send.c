// SPDX-License-Identifier: BSD-2-Clause
/* Calls that send. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "hook.h"
#include "vs_init.h"
#include "vs_io.h"
#include "vs_table.h"

/* As writev(): -1 and errno, of which too many buffers are EINVAL. */
static ssize_t send_vector(struct vs_obj *o, int fd, const struct iovec *v, int n, int flags)
{
	struct msghdr m = { .msg_iov = (struct iovec *)(uintptr_t)v, .msg_iovlen = (size_t)n };
	ssize_t rc = vs_io_send(o, fd, &m, flags);

	if (rc < 0 && errno == EMSGSIZE)
		errno = EINVAL;
	return rc;
}

VS_HOOK ssize_t write(int fd, const void *buf, size_t n)
{
	struct vs_obj *o = vs_get(fd);
	ssize_t rc;

	if (vs_likely(!o))
		return vs_real.write(fd, buf, n);
	rc = o->kind == VS_SOCKET ? vs_io_send1(o, fd, buf, n, 0) : vs_real.write(fd, buf, n);
	vs_put(o);
	return rc;
}

/* As the original: too many buffers are EINVAL.  A NULL or empty vector, and a set, are for the kernel. */
VS_HOOK ssize_t writev(int fd, const struct iovec *v, int n)
{
	struct vs_obj *o = vs_get(fd);
	ssize_t rc;

	if (vs_likely(!o))
		return vs_real.writev(fd, v, n);
	rc = o->kind == VS_SOCKET && n > 0 && v ? send_vector(o, fd, v, n, 0)
						: vs_real.writev(fd, v, n);
	vs_put(o);
	return rc;
}

/* Without an offset, at -1, to a stream as writev().  All else, and flags that sockets refuse, is the kernel's. */
VS_HOOK ssize_t pwritev2(int fd, const struct iovec *v, int n, off_t at, int flags)
{
	struct vs_obj *o = at == -1 ? vs_get(fd) : NULL;
	ssize_t rc;

	if (vs_likely(!o))
		return vs_real.pwritev2(fd, v, n, at, flags);
	if (o->kind != VS_SOCKET || n <= 0 || !v || (flags & ~VS_RWF_SOCKET))
		rc = vs_real.pwritev2(fd, v, n, at, flags);
	else
		rc = send_vector(o, fd, v, n, flags & RWF_NOWAIT ? MSG_DONTWAIT : 0);
	vs_put(o);
	return rc;
}

VS_ALSO(pwritev64v2, pwritev2);

VS_HOOK ssize_t send(int fd, const void *buf, size_t n, int flags)
{
	struct vs_obj *o = vs_get(fd);
	ssize_t rc;

	if (vs_likely(!o))
		return vs_real.send(fd, buf, n, flags);
	rc = vs_io_send1(o, fd, buf, n, flags);
	vs_put(o);
	return rc;
}

/* As the original; a stream ignores the address. */
VS_HOOK ssize_t sendto(int fd, const void *buf, size_t n, int flags, const struct sockaddr *a,
		       socklen_t alen)
{
	struct iovec v = { .iov_base = (void *)(uintptr_t)buf, .iov_len = n };
	struct msghdr m = { .msg_name = (void *)(uintptr_t)a, .msg_iov = &v, .msg_iovlen = 1 };
	struct vs_obj *o = vs_get(fd);
	ssize_t rc;

	if (vs_likely(!o))
		return vs_real.sendto(fd, buf, n, flags, a, alen);
	m.msg_namelen = a ? alen : 0;
	rc = vs_io_send(o, fd, &m, flags);
	vs_put(o);
	return rc;
}

/* Moves the connections of the descriptors in a message to the kernel: another process gets them. */
static void give_passed(const struct msghdr *m)
{
	struct cmsghdr *c;
	size_t i, n;
	int fd;

	for (c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR((struct msghdr *)(uintptr_t)m, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS ||
		    c->cmsg_len < CMSG_LEN(0))
			continue;
		n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(fd);
		for (i = 0; i < n; i++) {
			memcpy(&fd, CMSG_DATA(c) + i * sizeof(fd), sizeof(fd));
			vs_give_kernel(fd, VS_WHY_PASSED);
		}
	}
}

/* The message has control data, which may have a descriptor with an object. */
static inline bool may_pass(const struct msghdr *m)
{
	return vs_unlikely(vs_table_count() > 0) && m && m->msg_control && m->msg_controllen > 0;
}

/*
 * As the original.  A stream goes to the kernel for ever if the message has control data; so do descriptors that
 * another socket passes.
 */
VS_HOOK ssize_t sendmsg(int fd, const struct msghdr *m, int flags)
{
	struct vs_obj *o = vs_get(fd);
	ssize_t rc;

	if (vs_likely(!o)) {
		if (may_pass(m))
			give_passed(m);
		return vs_real.sendmsg(fd, m, flags);
	}
	rc = m && m->msg_controllen == 0 ? vs_io_send(o, fd, m, flags) : -2;
	if (rc == -2) { /* control data: the kernel checks it, and for TCP it means nothing to us */
		vs_give_kernel(fd, VS_WHY_OPTION);
		rc = vs_real.sendmsg(fd, m, flags);
	}
	vs_put(o);
	return rc;
}

/* The bytes of a message whose buffers vs_io_send() has taken. */
static size_t bytes_of(const struct msghdr *m)
{
	size_t i, n = 0;

	for (i = 0; i < m->msg_iovlen; i++)
		n += m->msg_iov[i].iov_len;
	return n;
}

/*
 * As the original.  From the first message with control data on the kernel sends, and a stream goes to it for ever;
 * descriptors that another socket passes go to the kernel first.
 */
VS_HOOK int sendmmsg(int fd, struct mmsghdr *m, unsigned int n, int flags)
{
	struct vs_obj *o = vs_get(fd);
	unsigned int done = 0;
	bool whole = true; /* a message that was sent in part is the last, as in the kernel */
	ssize_t rc = 0;

	if (vs_likely(!o)) {
		for (; vs_table_count() > 0 && m && done < n; done++) {
			if (may_pass(&m[done].msg_hdr))
				give_passed(&m[done].msg_hdr);
		}
		return vs_real.sendmmsg(fd, m, n, flags);
	}
	while (m && done < n && whole && m[done].msg_hdr.msg_controllen == 0) {
		rc = vs_io_send(o, fd, &m[done].msg_hdr, flags);
		if (rc < 0)
			break;
		whole = (size_t)rc == bytes_of(&m[done].msg_hdr);
		m[done++].msg_len = (unsigned int)rc;
	}
	if (m && done < n && whole && rc >= 0) {
		vs_give_kernel(fd, VS_WHY_OPTION);
		rc = vs_real.sendmmsg(fd, m + done, n - done, flags);
		done += rc > 0 ? (unsigned int)rc : 0;
	}
	vs_put(o);
	return done > 0 || rc == 0 ? (int)done : -1;
}

/* As the original.  To a stream the bytes pass through a buffer, and only what was sent counts as read. */
VS_HOOK ssize_t sendfile64(int out, int in, off64_t *at, size_t n)
{
	struct vs_obj *o = vs_get(out);
	ssize_t rc;

	if (vs_likely(!o))
		return vs_real.sendfile64(out, in, at, n);
	rc = o->kind == VS_SOCKET ? vs_io_sendfile(o, out, in, at, n)
				  : vs_real.sendfile64(out, in, at, n);
	vs_put(o);
	return rc;
}

VS_HOOK ssize_t sendfile(int out, int in, off_t *at, size_t n)
{
	_Static_assert(sizeof(off_t) == sizeof(off64_t), "a machine of 64 bits");
	return sendfile64(out, in, (off64_t *)at, n);
}

/* From a stream, or to one; between two sockets that have objects the kernel does it. */
VS_HOOK ssize_t splice(int in, off64_t *in_at, int out, off64_t *out_at, size_t n,
		       unsigned int flags)
{
	struct vs_obj *from = vs_get(in), *to = vs_get(out);
	ssize_t rc;

	if (from && !to && from->kind == VS_SOCKET && !in_at)
		rc = vs_io_splice_in(from, in, out, out_at, n, flags);
	else if (to && !from && to->kind == VS_SOCKET && !out_at)
		rc = vs_io_splice_out(to, in, in_at, out, n, flags);
	else
		rc = vs_real.splice(in, in_at, out, out_at, n, flags);
	if (from)
		vs_put(from);
	if (to)
		vs_put(to);
	return rc;
}

VS_ALSO(__write, write);
VS_ALSO(__send, send);
