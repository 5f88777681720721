/* SPDX-License-Identifier: BSD-2-Clause */
/* Probes of features of the kernel, or of an emulator, that tests need; each is found by trying. */
#ifndef PROBES_H
#define PROBES_H

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>

#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "open_fds.h"

inline bool try_refused_fds_are_closed()
{
	enum { FDS = 16 };
	char byte = 0;
	union {
		cmsghdr header;
		char room[CMSG_SPACE(FDS * sizeof(int))];
	} out = {}, in = {};
	iovec iov = { &byte, 1 };
	msghdr mh = {};
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
		return false;
	int before = open_fds(), closed = open("/dev/null", O_RDONLY | O_CLOEXEC);
	mh.msg_iov = &iov;
	mh.msg_iovlen = 1;
	mh.msg_control = &out;
	mh.msg_controllen = sizeof(out);
	out.header.cmsg_level = SOL_SOCKET;
	out.header.cmsg_type = SCM_RIGHTS;
	out.header.cmsg_len = CMSG_LEN(FDS * sizeof(int));
	for (size_t i = 0; i < FDS; i++)
		memcpy(CMSG_DATA(&out.header) + i * sizeof(int), &closed, sizeof(int));
	sendmsg(pair[0], &mh, 0);
	close(closed);
	mh.msg_control = &in;
	mh.msg_controllen = CMSG_SPACE(sizeof(int));
	recvmsg(pair[1], &mh, MSG_CMSG_CLOEXEC);
	for (cmsghdr *c = CMSG_FIRSTHDR(&mh); c != nullptr; c = CMSG_NXTHDR(&mh, c)) {
		for (size_t at = 0; at + sizeof(int) <= c->cmsg_len - CMSG_LEN(0);
		     at += sizeof(int)) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + at, sizeof(fd));
			close(fd);
		}
	}
	bool yes = open_fds() == before;
	close(pair[0]);
	close(pair[1]);
	return yes;
}

/*
 * Are descriptors closed for which a receiver has no room?  Emulators of user programs take more of
 * them from the kernel than they pass on, and those stay open, also those of the first call here.
 */
inline bool probe_refused_fds_are_closed()
{
	static const bool yes = try_refused_fds_are_closed();

	return yes;
}

/* Does the kernel remove pages of memory when it is asked to, or refuse?  Emulators of user programs do nothing. */
inline bool probe_madvise_remove()
{
	void *at = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bool refused = madvise(at, 4096, MADV_REMOVE) != 0; /* private memory cannot be removed */

	munmap(at, 4096);
	return refused;
}

/*
 * May a process fork whatever its other threads do?  Emulators of user programs have locks of their own,
 * which may be held in the child.  That cannot be tried, as it fails only now and then.
 */
inline bool probe_fork_among_threads()
{
	return probe_madvise_remove();
}

/*
 * Does the kernel tell that a file ends before its mapping (MADV_POPULATE_READ, Linux 5.14)?  Older kernels
 * only send the signal.
 */
inline bool probe_ends_of_files()
{
	const int populate_read = 22;
	int fd = memfd_create("probe", MFD_CLOEXEC);
	void *at = mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fd, 0);
	bool before = madvise(at, 4096, populate_read) == 0;
	bool after = ftruncate(fd, 1) == 0 && madvise(at, 4096, populate_read) == 0;

	munmap(at, 4096);
	close(fd);
	return !before && after;
}

/* Does the kernel tell of a mapping by its address (PROCMAP_QUERY, Linux 6.11)? */
inline bool probe_map_queries()
{
	uint64_t query[13] = { sizeof(query), 0, reinterpret_cast<uintptr_t>(&query) };
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	bool yes = ioctl(fd, _IOWR('f', 17, query), query) == 0;

	close(fd);
	return yes;
}

/*
 * Are addresses without memory free?  Emulators of user programs keep a table of all pages of a mapping: one of
 * 8 TiB takes all memory of the machine.
 */
inline bool probe_reservations()
{
	const size_t len = size_t(4) << 30;
	auto resident = [] {
		size_t pages = 0;
		std::ifstream("/proc/self/statm") >> pages >> pages;
		return pages;
	};
	const size_t before = resident();
	void *at =
		mmap(nullptr, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	const size_t after = resident();

	if (at == MAP_FAILED)
		return false;
	munmap(at, len);
	return before > 0 && after > 0 && after < before + 256;
}

/* May a process have its own system calls refused (seccomp)?  Emulators of user programs cannot. */
inline bool probe_filters()
{
	return prctl(PR_GET_SECCOMP) >= 0 &&
	       syscall(SYS_seccomp, 2 /* is the action there? */, 0, nullptr) && errno == EFAULT;
}

/* Does the kernel empty memory of MADV_WIPEONFORK in a child?  Emulators of user programs do nothing. */
inline bool probe_wipe_on_fork()
{
	auto at = static_cast<volatile char *>(
		mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	int status = -1;

	*at = 1;
	madvise(const_cast<char *>(at), 4096, MADV_WIPEONFORK);
	pid_t pid = fork();
	if (pid == 0)
		_exit(*at);
	waitpid(pid, &status, 0);
	munmap(const_cast<char *>(at), 4096);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Does a socket tell the groups of its peer (SO_PEERGROUPS)?  Needs root, which may set groups. */
inline bool probe_peer_groups()
{
	pid_t pid = fork();
	int status = -1;

	if (pid == 0) {
		const gid_t groups[2] = { 11, 4242 };
		gid_t told[2] = {};
		socklen_t len = sizeof(told);
		int pair[2];

		if (setgroups(2, groups) != 0 ||
		    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
			_exit(1);
		_exit(getsockopt(pair[0], SOL_SOCKET, SO_PEERGROUPS, told, &len) == 0 &&
				      len == sizeof(told) && memcmp(told, groups, len) == 0
			      ? 0
			      : 1);
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Can a child end without a signal to its parent? */
inline bool probe_silent_children()
{
	long pid = syscall(SYS_clone, 0L, 0L, 0L, 0L, 0L);

	if (pid == 0)
		for (;;)
			syscall(SYS_exit_group, 0);
	return pid > 0 && waitpid(static_cast<pid_t>(pid), nullptr, __WALL) == pid;
}

#endif
