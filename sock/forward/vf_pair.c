// SPDX-License-Identifier: BSD-2-Clause
#include "vf_pair.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "vf_loop.h"
#include "vf_target.h"

#define BACKLOG 4096
#define WAIT_MS 100

/* Listeners: on 127.0.0.1, on the same as an IPv6 address, on ::1. */
enum { V4, MAPPED, V6, KINDS };
static struct listener {
	int fd;
	struct sockaddr_storage at;
	socklen_t length;
} listeners[KINDS] = { { .fd = -1 }, { .fd = -1 }, { .fd = -1 } };

/* The library replaces socket() and accept4(), and keeps account of what they return; not so of these. */
int vf_pair_socket(sa_family_t family)
{
	int fd = (int)syscall(SYS_socket, family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
			      IPPROTO_TCP);

	return fd < 0 ? -errno : fd;
}

static int take(const struct listener *l, struct sockaddr_storage *peer)
{
	socklen_t n = sizeof(*peer);

	return (int)syscall(SYS_accept4, l->fd, peer, &n, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

static int listen_at(struct listener *l, const char *text16, sa_family_t family)
{
	struct vs_addr a = { 0 };

	memcpy(a.b, text16, 16);
	vs_addr_make(&l->at, family, &a, 0);
	l->length = vf_target_length(&l->at);
	l->fd = vf_pair_socket(family);
	if (l->fd < 0)
		return l->fd;
	if (bind(l->fd, (struct sockaddr *)&l->at, l->length) == 0 && listen(l->fd, BACKLOG) == 0 &&
	    getsockname(l->fd, (struct sockaddr *)&l->at, &l->length) == 0)
		return 0;
	close(l->fd);
	l->fd = -1;
	return -errno;
}

int vf_pair_init(void)
{
	static const char v4[16] = "\0\0\0\0\0\0\0\0\0\0\xff\xff\x7f\0\0\1";
	static const char v6[16] = "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1";
	int rc = listen_at(&listeners[V4], v4, AF_INET);

	/* A host may have no IPv6: then no program has such a socket. */
	listen_at(&listeners[MAPPED], v4, AF_INET6);
	listen_at(&listeners[V6], v6, AF_INET6);
	return rc;
}

/* Begins to connect.  0 or -errno. */
static int begin(int fd, const struct listener *l)
{
	bool nonblock = vf_target_nonblock(fd);
	int rc;

	if (!nonblock)
		vf_target_set_nonblock(fd, true);
	rc = connect(fd, (const struct sockaddr *)&l->at, l->length) == 0 || errno == EINPROGRESS
		     ? 0
		     : -errno;
	if (!nonblock)
		vf_target_set_nonblock(fd, false);
	return rc;
}

static bool same(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	struct vs_addr one, other;

	return vs_addr_of((const struct sockaddr *)a, sizeof(*a), &one) &&
	       vs_addr_of((const struct sockaddr *)b, sizeof(*b), &other) &&
	       memcmp(one.b, other.b, 16) == 0 && one.port == other.port;
}

/* Takes the connection that comes from this address; closes all others, which are none of ours.  It, or -errno. */
static int take_from(const struct listener *l, const struct sockaddr_storage *from)
{
	int64_t end = vf_loop_now() + WAIT_MS, left = WAIT_MS;
	struct pollfd p = { .fd = l->fd, .events = POLLIN };
	struct sockaddr_storage peer;
	int fd;

	while (left >= 0) {
		fd = take(l, &peer);
		if (fd >= 0 && same(&peer, from))
			return fd;
		if (fd >= 0)
			close(fd);
		else if (errno == EAGAIN)
			poll(&p, 1, (int)left);
		else if (errno != EINTR && errno != ECONNABORTED)
			return -errno;
		left = end - vf_loop_now();
	}
	return -ETIMEDOUT;
}

int vf_pair_join(int fd, sa_family_t family, bool mapped, bool *used)
{
	const struct listener *l = &listeners[V4];
	struct sockaddr_storage mine;
	socklen_t n = sizeof(mine);
	int rc;

	*used = false;
	if (family == AF_INET6)
		l = &listeners[mapped ? MAPPED : V6];
	if (l->fd < 0)
		return -EAFNOSUPPORT;
	rc = begin(fd, l);
	if (rc != 0)
		return rc;
	*used = true;
	if (getsockname(fd, (struct sockaddr *)&mine, &n) != 0)
		return -errno;
	return take_from(l, &mine);
}
