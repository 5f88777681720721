/* SPDX-License-Identifier: BSD-2-Clause */
#include "vr_filter.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vs_all.h"

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define ARCH AUDIT_ARCH_AARCH64
#else
#define ARCH 0
#endif

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define LOAD(offset) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset)
#define RETURN(action) BPF_STMT(BPF_RET | BPF_K, action)
/* The next step if equal, else the one after `by` more. */
#define ELSE_SKIP(value, by) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, by)
#define IF_SKIP(value, by) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, by, 0)

/* Installs the filter; its descriptor if `flags` asks for one, else 0; or -1 and errno. */
static int install(struct sock_filter *steps, size_t count, unsigned int flags)
{
	struct sock_fprog filter = { .len = (unsigned short)count, .filter = steps };
	long rc = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &filter);

	/* Without the right to do so, only a process that can gain no rights may filter. */
	if (rc < 0 && errno == EACCES && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0)
		rc = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &filter);
	return (int)rc;
}

/* The call has one number in all of a processor's modes, but x32's. */
bool vr_filter_refuse_uring(void)
{
	static struct sock_filter steps[] = {
		LOAD(offsetof(struct seccomp_data, nr)),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xbfffffff),
		ELSE_SKIP(SYS_io_uring_setup, 1),
		RETURN(SECCOMP_RET_ERRNO | ENOSYS),
		RETURN(SECCOMP_RET_ALLOW),
	};

	return install(steps, COUNT(steps), 0) == 0;
}

bool vr_filter_can_ask(void)
{
	return ARCH != 0;
}

int vr_filter_ask(bool bind)
{
	size_t mark = offsetof(struct seccomp_data, args[5]);
	struct sock_filter steps[] = {
		LOAD(offsetof(struct seccomp_data, arch)),
		ELSE_SKIP(ARCH, 7),
		LOAD(offsetof(struct seccomp_data, nr)),
		IF_SKIP(SYS_connect, 6),
		IF_SKIP(SYS_accept, 5),
		IF_SKIP(SYS_accept4, 4),
		IF_SKIP(SYS_getpeername, 3),
		IF_SKIP(SYS_getsockname, 2),
		IF_SKIP(bind ? SYS_bind : SYS_connect, 1),
		RETURN(SECCOMP_RET_ALLOW),
		LOAD((uint32_t)mark),
		ELSE_SKIP((uint32_t)VS_ALL_MARK, 3),
		LOAD((uint32_t)mark + 4),
		ELSE_SKIP((uint32_t)(VS_ALL_MARK >> 32), 1),
		RETURN(SECCOMP_RET_ALLOW),
		RETURN(SECCOMP_RET_USER_NOTIF),
	};

	return install(steps, COUNT(steps), SECCOMP_FILTER_FLAG_NEW_LISTENER);
}

int vr_filter_inspect(pid_t process)
{
	char byte;
	struct iovec here = { .iov_base = &byte, .iov_len = 1 };
	struct iovec there = { .iov_base = NULL, .iov_len = 1 };
	int fd = (int)syscall(SYS_pidfd_open, process, 0), rc = 0;

	/* Neither that descriptor nor that address exists: the kernel says so to those that may look. */
	if (fd < 0 || (syscall(SYS_pidfd_getfd, fd, -1, 0) < 0 && errno != EBADF) ||
	    (process_vm_readv(process, &here, 1, &there, 1, 0) < 0 && errno != EFAULT))
		rc = -errno;
	if (fd >= 0)
		close(fd);
	return rc;
}

/* vr_filter_inspect() of a child. */
static int try_inspect(void)
{
	pid_t child = fork();
	int rc;

	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	if (child < 0)
		return -errno;
	rc = vr_filter_inspect(child);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	return rc;
}

/* In a child: 0 or an errno value. */
static int try_here(void)
{
	struct seccomp_notif_addfd probe = { .id = UINT64_MAX, .flags = SECCOMP_ADDFD_FLAG_SEND };
	int rc = try_inspect(), fd;

	if (rc != 0)
		return -rc;
	fd = vr_filter_ask(false);
	if (fd < 0)
		return errno;
	/* No call has this number: a kernel that knows the flag, of 5.14 or later, says so. */
	probe.srcfd = (uint32_t)fd;
	ioctl(fd, SECCOMP_IOCTL_NOTIF_ADDFD, &probe);
	return errno == ENOENT ? 0 : EOPNOTSUPP;
}

int vr_filter_try(void)
{
	int status = 0;
	pid_t child;

	if (!vr_filter_can_ask())
		return -EOPNOTSUPP;
	child = fork();
	if (child == 0)
		_exit(try_here());
	if (child < 0 || waitpid(child, &status, 0) != child)
		return -errno;
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -EPERM;
}
