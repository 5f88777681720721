/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LINGERING_H
#define LINGERING_H

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>
#include <vector>

/*
 * A TCP socket that blocks the thread that closes it last: its send buffer is full, its peer does not read, and it
 * lingers for an hour.  Closing its peer, which is held here, ends that.
 */
class Lingering {
public:
	Lingering()
	{
		int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		sockaddr_in at = {};
		socklen_t len = sizeof(at);
		linger hour = { 1, 3600 };
		char block[65536] = {};

		at.sin_family = AF_INET;
		at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (bind(listening, reinterpret_cast<sockaddr *>(&at), len) == 0 &&
		    ::listen(listening, 1) == 0 &&
		    getsockname(listening, reinterpret_cast<sockaddr *>(&at), &len) == 0 &&
		    connect(fd, reinterpret_cast<sockaddr *>(&at), len) == 0)
			peer = accept(listening, nullptr, nullptr);
		close(listening);
		while (peer >= 0 && send(fd, block, sizeof(block), MSG_DONTWAIT) > 0)
			;
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &hour, sizeof(hour));
	}
	~Lingering()
	{
		/* The peer first, so that closing the other does not wait. */
		if (peer >= 0)
			close(peer);
		if (fd >= 0)
			close(fd);
	}
	Lingering(const Lingering &) = delete;

	bool ok() const { return peer >= 0; }

	/*
	 * Gives it away: after that the receiver holds the last reference.  If the receiver has dropped it already, the
	 * close here blocks; so a thread of its own makes it.  0 or an errno.
	 */
	int pass(int sock, const void *msg, size_t bytes, const std::vector<int> &more = {})
	{
		int rc = send_fds(sock, msg, bytes, fd, more);

		if (rc == 0) {
			std::thread([fd = fd] { close(fd); }).detach();
			fd = -1;
		}
		return rc;
	}

	static int send_fds(int sock, const void *msg, size_t bytes, int first,
			    const std::vector<int> &more = {})
	{
		std::vector<int> fds = { first };
		fds.insert(fds.end(), more.begin(), more.end());
		std::vector<char> control(CMSG_SPACE(fds.size() * sizeof(int)));
		iovec iov = { const_cast<void *>(msg), bytes };
		msghdr mh = {};

		mh.msg_iov = &iov;
		mh.msg_iovlen = 1;
		mh.msg_control = control.data();
		mh.msg_controllen = control.size();
		cmsghdr *h = CMSG_FIRSTHDR(&mh);
		h->cmsg_level = SOL_SOCKET;
		h->cmsg_type = SCM_RIGHTS;
		h->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
		memcpy(CMSG_DATA(h), fds.data(), fds.size() * sizeof(int));
		return sendmsg(sock, &mh, MSG_NOSIGNAL) < 0 ? errno : 0;
	}

	int fd = -1, peer = -1;
};

#endif
