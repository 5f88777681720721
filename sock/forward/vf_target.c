// SPDX-License-Identifier: BSD-2-Clause
#include "vf_target.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

bool vf_target_read(pid_t thread, uint64_t at, void *to, size_t n)
{
	struct iovec here = { .iov_base = to, .iov_len = n };
	struct iovec there = { .iov_base = (void *)(uintptr_t)at, .iov_len = n };

	return process_vm_readv(thread, &here, 1, &there, 1, 0) == (ssize_t)n;
}

bool vf_target_write(pid_t thread, uint64_t at, const void *from, size_t n)
{
	struct iovec here = { .iov_base = (void *)(uintptr_t)from, .iov_len = n };
	struct iovec there = { .iov_base = (void *)(uintptr_t)at, .iov_len = n };

	return process_vm_writev(thread, &here, 1, &there, 1, 0) == (ssize_t)n;
}

socklen_t vf_target_length(const struct sockaddr_storage *a)
{
	return a->ss_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
}

int vf_target_write_name(pid_t thread, uint64_t at, uint64_t len_at,
			 const struct sockaddr_storage *a)
{
	int32_t has = (int32_t)vf_target_length(a), room;

	if (!vf_target_read(thread, len_at, &room, sizeof(room)))
		return -EFAULT;
	if (room < 0)
		return -EINVAL;
	if (room > has)
		room = has;
	if (!vf_target_write(thread, at, a, (size_t)room) ||
	    !vf_target_write(thread, len_at, &has, sizeof(has)))
		return -EFAULT;
	return 0;
}

/* A number of the kernel's account of a thread; 0: there is none. */
static uint64_t status_of(pid_t thread, const char *name, int base)
{
	char path[48], line[128];
	uint64_t found = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", thread);
	f = fopen(path, "re");
	while (f && found == 0 && fgets(line, sizeof(line), f)) {
		if (strncmp(line, name, strlen(name)) == 0)
			found = strtoull(line + strlen(name), NULL, base);
	}
	if (f)
		fclose(f);
	return found;
}

bool vf_target_may_reserve(pid_t thread)
{
	char path[48];
	struct stat its, mine;

	snprintf(path, sizeof(path), "/proc/%d/ns/user", thread);
	return stat(path, &its) == 0 && stat("/proc/self/ns/user", &mine) == 0 &&
	       its.st_ino == mine.st_ino &&
	       (status_of(thread, "CapEff:", 16) >> CAP_NET_BIND_SERVICE & 1);
}

int vf_target_fd(pid_t thread, int fd)
{
	int process = (int)syscall(SYS_pidfd_open, thread, 0), copy;

	if (process < 0) /* not the first thread of its process */
		process = (int)syscall(SYS_pidfd_open, (pid_t)status_of(thread, "Tgid:", 10), 0);
	if (process < 0)
		return -1;
	copy = (int)syscall(SYS_pidfd_getfd, process, fd, 0);
	close(process);
	return copy;
}

void vf_target_name(pid_t thread, char name[VS_NAME_MAX])
{
	char path[48], line[4096];
	const char *slash;
	ssize_t n = 0;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", thread);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, line, sizeof(line) - 1);
		close(fd);
	}
	line[n > 0 ? n : 0] = '\0';
	slash = strrchr(line, '/');
	snprintf(name, VS_NAME_MAX, "%.*s", VS_NAME_MAX - 1, slash ? slash + 1 : line);
}

/* The protocol of a stream socket; 0: it is none. */
static int protocol_of(int fd)
{
	int type = 0, protocol = 0;
	socklen_t n = sizeof(type), m = sizeof(protocol);

	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n) != 0 || type != SOCK_STREAM ||
	    getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &m) != 0)
		return 0;
	return protocol;
}

bool vf_target_is_tcp(int fd)
{
	return protocol_of(fd) == IPPROTO_TCP;
}

bool vf_target_may_be_tcp(int fd)
{
	int protocol = protocol_of(fd);

	return protocol == IPPROTO_TCP || protocol == IPPROTO_MPTCP;
}

uint64_t vf_target_inode(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode) ? st.st_ino : 0;
}

bool vf_target_nonblock(int fd)
{
	return (fcntl(fd, F_GETFL) & O_NONBLOCK) != 0;
}

void vf_target_set_nonblock(int fd, bool on)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags >= 0)
		fcntl(fd, F_SETFL, on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK);
}
