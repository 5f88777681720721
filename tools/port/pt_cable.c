/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cable of an emulated port: a socket between two processes of one user.
 *
 * Its name is in the abstract namespace, so nothing has to be removed: the first process listens,
 * the second finds the name taken and connects.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "pt.h"
#include "u_poll.h"
#include "u_time.h"

#define RETRY_NS 5000000 /* while the name is taken and nobody listens */

static socklen_t address(const char *name, struct sockaddr_un *out)
{
	int n;

	*out = (struct sockaddr_un){ .sun_family = AF_UNIX };
	n = snprintf(out->sun_path + 1, sizeof(out->sun_path) - 1, "viaduct-vi_port-%s", name);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

/* The first comer's end: waits for the other. */
static int await(int sock, int64_t deadline, int *fd_out)
{
	struct pollfd p = { .fd = sock, .events = POLLIN };
	int n;

	if (listen(sock, 1) != 0)
		return -errno;
	n = u_poll(&p, 1, deadline);
	if (n <= 0)
		return n == 0 ? -ETIMEDOUT : n;
	*fd_out = accept4(sock, NULL, NULL, SOCK_CLOEXEC);
	return *fd_out < 0 ? -errno : 0;
}

/* 1: a name that is taken, and no one listens there now. */
static int join(const struct sockaddr_un *a, socklen_t len, int64_t deadline, int *fd_out)
{
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	int err;

	if (sock < 0)
		return -errno;
	if (bind(sock, (const struct sockaddr *)a, len) == 0) {
		err = await(sock, deadline, fd_out);
		close(sock);
		return err;
	}
	close(sock);
	if (errno != EADDRINUSE)
		return -errno;
	sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (sock < 0)
		return -errno;
	if (connect(sock, (const struct sockaddr *)a, len) == 0) {
		*fd_out = sock;
		return 0;
	}
	err = errno == ECONNREFUSED ? 1 : -errno;
	close(sock);
	return err;
}

static int check_user(int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) != 0)
		return -errno;
	return peer.uid == geteuid() ? 0 : -EPERM;
}

int pt_cable(const char *name, int64_t deadline, int *fd_out)
{
	struct sockaddr_un a;
	socklen_t len = address(name, &a);
	int err, fd = -1;

	while ((err = join(&a, len, deadline, &fd)) == 1) {
		if (u_time_left(deadline) == 0)
			return -ETIMEDOUT;
		u_nap_ns(RETRY_NS);
	}
	if (err != 0)
		return err;
	err = check_user(fd);
	if (err != 0)
		close(fd);
	else
		*fd_out = fd;
	return err;
}
