/* SPDX-License-Identifier: BSD-2-Clause */
/* Control messages: the socket calls. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "u_close.h"
#include "u_fd.h"
#include "w_ctl.h"

/*
 * Sends a message without SIGPIPE, and again after a signal; may wait for room unless `flags` has MSG_DONTWAIT.
 * 0 or -errno.
 */
static int send_uninterrupted(int sock, const struct msghdr *mh, int flags)
{
	ssize_t n;

	do {
		n = sendmsg(sock, mh, MSG_NOSIGNAL | flags);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

int w_ctl_try(int sock, const void *msg)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)msg };
	struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct w_ctl_hdr hdr;

	memcpy(&hdr, msg, sizeof(hdr));
	iov.iov_len = hdr.len;
	return hdr.len > W_CTL_MAX ? -EINVAL : send_uninterrupted(sock, &mh, MSG_DONTWAIT);
}

/*
 * Sends a message with descriptors, which stay open here; never raises SIGPIPE.  -EAGAIN when the socket is
 * non-blocking and full.
 */
int w_ctl_send(int sock, const void *msg, const int *fds, unsigned int nfds)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(W_CTL_FDS * sizeof(int))];
	} control = { 0 };
	struct w_ctl_hdr hdr;
	struct iovec iov = { .iov_base = (void *)(uintptr_t)msg };
	struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *cmsg;

	memcpy(&hdr, msg, sizeof(hdr));
	if (nfds > W_CTL_FDS || hdr.len > W_CTL_MAX)
		return -EINVAL;
	iov.iov_len = hdr.len;
	if (nfds > 0) {
		mh.msg_control = &control;
		mh.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
		cmsg = CMSG_FIRSTHDR(&mh);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(nfds * sizeof(int));
		memcpy(CMSG_DATA(cmsg), fds, nfds * sizeof(int));
	}
	return send_uninterrupted(sock, &mh, 0);
}

/*
 * The most descriptors of one message, SCM_MAX_FD: with less room, the kernel would close the
 * surplus ones in this thread.
 */
#define RECV_FDS 253u

/* Copies the numbers of the descriptors that came with a message, which are open from now on.  Returns how many. */
static unsigned int fds_take(struct msghdr *mh, int fds[RECV_FDS])
{
	struct cmsghdr *cmsg;
	unsigned int n = 0;
	size_t bytes;

	for (cmsg = CMSG_FIRSTHDR(mh); cmsg != NULL; cmsg = CMSG_NXTHDR(mh, cmsg)) {
		if (cmsg->cmsg_level != SOL_SOCKET || cmsg->cmsg_type != SCM_RIGHTS)
			continue;
		bytes = cmsg->cmsg_len - CMSG_LEN(0);
		if (bytes > (RECV_FDS - n) * sizeof(int))
			bytes = (RECV_FDS - n) * sizeof(int);
		memcpy(fds + n, CMSG_DATA(cmsg), bytes);
		n += (unsigned int)(bytes / sizeof(int));
	}
	return n;
}

/*
 * Are all descriptors of memory, which alone has seals, or made by the kernel module?  Closing
 * these waits for no process.
 */
static bool all_tame(const int *fds, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++) {
		if (fcntl(fds[i], F_GET_SEALS) < 0 && !u_fd_of_module(fds[i], NULL))
			return false;
	}
	return true;
}

/*
 * What all_tame() refuses is not used: closing such a descriptor, or a query about it, may take as long as its sender
 * likes.
 */
int w_ctl_recv(int sock, void *buf, uint32_t size, int fds[W_CTL_FDS], unsigned int *nfds_out)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(RECV_FDS * sizeof(int))];
	} control;
	struct iovec iov = { .iov_base = buf, .iov_len = size };
	struct msghdr mh = { .msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control) };
	int got[RECV_FDS];
	unsigned int i, n;
	ssize_t len;
	bool bad;

	do {
		len = recvmsg(sock, &mh, MSG_CMSG_CLOEXEC);
	} while (len < 0 && errno == EINTR);
	if (len < 0)
		return -errno;
	n = fds_take(&mh, got);
	bad = n > W_CTL_FDS || (mh.msg_flags & MSG_TRUNC) != 0 || !all_tame(got, n);
	if (bad || (mh.msg_flags & MSG_CTRUNC) != 0) {
		for (i = 0; i < n; i++)
			u_close_foreign(got[i]);
		if (bad)
			return -EPROTO;
		n = 0; /* no descriptor numbers are left here: the message is returned without its descriptors */
	}
	if (n > 0)
		memcpy(fds, got, n * sizeof(int));
	*nfds_out = n;
	return (int)len;
}

/*
 * Reads or peeks at one message without taking descriptors, and again after a signal.  Returns its bytes, 0 at
 * hang-up, or -errno; *flags_out has MSG_TRUNC or MSG_CTRUNC if bytes or descriptors were cut off.
 */
static ssize_t recv_bare(int sock, struct iovec *iov, int flags, int *flags_out)
{
	struct msghdr mh = { .msg_iov = iov, .msg_iovlen = 1 };
	ssize_t len;

	do {
		len = recvmsg(sock, &mh, flags);
	} while (len < 0 && errno == EINTR);
	*flags_out = mh.msg_flags;
	return len < 0 ? -errno : len;
}

int w_ctl_recv_bare(int sock, void *buf, uint32_t size, bool peek)
{
	struct iovec iov = { .iov_base = buf, .iov_len = size };
	int flags = 0;
	ssize_t len = 0;

	if (peek)
		len = recv_bare(sock, &iov, MSG_PEEK, &flags);
	if (len >= 0 && (flags & MSG_CTRUNC) == 0)
		len = recv_bare(sock, &iov, 0, &flags);
	if (len < 0)
		return (int)len;
	if ((flags & MSG_CTRUNC) != 0)
		return -EBADMSG;
	return (flags & MSG_TRUNC) != 0 ? -EPROTO : (int)len;
}
