/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "st_sys.h"

#define SPINS 64
#define NAP_NS 1000000 /* where no membarrier can be had: a wake may be missed */
#define MOVED_LOOKS 8

/* A system call that leaves errno alone: its result, or -errno. */
static long call(long number, long a, long b, long c, long d, long e, long f)
{
	int saved = errno;
	long rc = syscall(number, a, b, c, d, e, f);

	if (rc < 0)
		rc = -errno;
	errno = saved;
	return rc;
}

/* ---- locks --------------------------------------------------------------------------------------------------- */

ST_COLD int st_lock_held_error(void)
{
	return -EDEADLK;
}

/* The kernel compares the lower half of the word, which it is told by its address. */
static uint32_t *half(struct st_lock *lock)
{
	return (uint32_t *)(void *)&lock->word + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
}

/*
 * Returns when each other thread of this process has passed a fence since the call began.  False: the kernel cannot
 * do that.
 */
static bool fence_all(void)
{
	if (call(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0, 0, 0, 0) == 0)
		return true;
	call(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0, 0, 0, 0);
	return call(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0, 0, 0, 0) == 0;
}

ST_COLD void st_lock_slow(struct st_lock *lock)
{
	struct timespec nap = { .tv_nsec = NAP_NS };
	uint64_t holder;
	bool fenced;

	for (int i = 0; i < SPINS; i++) {
		if (st_trylock(lock))
			return;
	}
	atomic_fetch_add(&lock->waiters, 1);
	fenced = fence_all();
	while (!st_trylock(lock)) {
		holder = atomic_load_explicit(&lock->word, memory_order_relaxed);
		if (holder != 0)
			call(SYS_futex, (long)half(lock), FUTEX_WAIT_PRIVATE,
			     (long)(uint32_t)holder, fenced ? 0 : (long)&nap, 0, 0);
	}
	atomic_fetch_sub(&lock->waiters, 1);
}

ST_COLD void st_unlock_slow(struct st_lock *lock)
{
	call(SYS_futex, (long)half(lock), FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
}

/* ---- time, chance -------------------------------------------------------------------------------------------- */

uint64_t st_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t st_random64(void)
{
	uint64_t value = 0;

	/* Fewer bytes come only before the system has gathered any; never on one that runs programs. */
	while (call(SYS_getrandom, (long)&value, sizeof(value), 0, 0, 0, 0) != sizeof(value))
		;
	return value;
}

/* ---- sockets ------------------------------------------------------------------------------------------------- */

ssize_t st_sys_send(int fd, const struct iovec *iov, int count, int flags)
{
	struct msghdr msg = { .msg_iov = (struct iovec *)iov, .msg_iovlen = (size_t)count };

	flags |= MSG_DONTWAIT | MSG_NOSIGNAL;
	if (count == 1)
		return call(SYS_sendto, fd, (long)iov->iov_base, (long)iov->iov_len, flags, 0, 0);
	return call(SYS_sendmsg, fd, (long)&msg, flags, 0, 0, 0);
}

ssize_t st_sys_recv(int fd, const struct iovec *iov, int count, int flags)
{
	struct msghdr msg = { .msg_iov = (struct iovec *)iov, .msg_iovlen = (size_t)count };

	flags |= MSG_DONTWAIT;
	if (count == 1)
		return call(SYS_recvfrom, fd, (long)iov->iov_base, (long)iov->iov_len, flags, 0, 0);
	return call(SYS_recvmsg, fd, (long)&msg, flags, 0, 0, 0);
}

int st_sys_shutdown(int fd, int how)
{
	return (int)call(SYS_shutdown, fd, how, 0, 0, 0, 0);
}

int st_sys_close(int fd)
{
	return (int)call(SYS_close, fd, 0, 0, 0, 0, 0);
}

int st_sys_dup(int fd, int least)
{
	int copy = (int)call(SYS_fcntl, fd, F_DUPFD_CLOEXEC, least, 0, 0, 0);

	return copy < 0 && least > 0 ? (int)call(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 0, 0, 0, 0) : copy;
}

int st_sys_ioctl_int(int fd, unsigned long what, int *value)
{
	return (int)call(SYS_ioctl, fd, (long)what, (long)value, 0, 0, 0);
}

static int get_int(int fd, int level, int name, int *value)
{
	socklen_t len = sizeof(*value);

	return (int)call(SYS_getsockopt, fd, level, name, (long)value, (long)&len, 0);
}

int st_sys_error(int fd)
{
	int error = 0;

	return get_int(fd, SOL_SOCKET, SO_ERROR, &error) == 0 ? error : 0;
}

int st_sys_reset(int fd)
{
	struct sockaddr none = { .sa_family = AF_UNSPEC };

	return (int)call(SYS_connect, fd, (long)&none, sizeof(none), 0, 0, 0);
}

int st_sys_get_linger(int fd, struct linger *linger)
{
	socklen_t size = sizeof(*linger);

	return (int)call(SYS_getsockopt, fd, SOL_SOCKET, SO_LINGER, (long)linger, (long)&size, 0);
}

int st_sys_set_linger(int fd, const struct linger *linger)
{
	return (int)call(SYS_setsockopt, fd, SOL_SOCKET, SO_LINGER, (long)linger, sizeof(*linger),
			 0);
}

int st_sys_linger_reset(int fd)
{
	struct linger now = { 1, 0 };

	return st_sys_set_linger(fd, &now);
}

/* TCP_INFO with both counts of bytes: 0 or -errno. */
static int get_info(int fd, struct tcp_info *info)
{
	socklen_t len = sizeof(*info);
	int rc = (int)call(SYS_getsockopt, fd, IPPROTO_TCP, TCP_INFO, (long)info, (long)&len, 0);
	size_t least =
		offsetof(struct tcp_info, tcpi_bytes_received) + sizeof(info->tcpi_bytes_received);

	return rc == 0 && len < least ? -EOPNOTSUPP : rc;
}

/* States of tcpi_state in which the peer's FIN has been received, and that after both or a reset. */
enum { TIMED_WAIT = 6, CLOSED = 7, CLOSE_WAIT = 8, LAST_ACK = 9, CLOSING = 11 };

/* How many of the bytes received are the peer's FIN; FIONREAD leaves it out. */
static uint64_t fin_received(const struct tcp_info *info)
{
	return info->tcpi_state == CLOSE_WAIT || info->tcpi_state == LAST_ACK ||
	       info->tcpi_state == CLOSING || info->tcpi_state == TIMED_WAIT;
}

int st_sys_moved(int fd, bool connector, uint64_t *given, uint64_t *taken)
{
	struct tcp_info before = { 0 }, after = { 0 };
	int i, queued = 0, unread = 0, rc = get_info(fd, &before);

	for (i = 0; rc == 0 && i < MOVED_LOOKS; i++) {
		rc = st_sys_ioctl_int(fd, SIOCOUTQ, &queued);
		if (rc == 0)
			rc = st_sys_ioctl_int(fd, FIONREAD, &unread);
		if (rc == 0)
			rc = get_info(fd, &after);
		if (rc == 0 && before.tcpi_bytes_acked == after.tcpi_bytes_acked &&
		    before.tcpi_bytes_received == after.tcpi_bytes_received) {
			/* The end that connects counts its SYN as acknowledged. */
			*given = after.tcpi_bytes_acked - (connector ? 1 : 0) + (uint64_t)queued;
			*taken =
				after.tcpi_bytes_received - fin_received(&after) - (uint64_t)unread;
			return after.tcpi_state == CLOSED ? -ENOTCONN : 0;
		}
		before = after;
	}
	return rc == 0 ? -EAGAIN : rc;
}

bool st_sys_peer_ended(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLRDHUP };
	struct timespec none = { 0, 0 };

	return st_sys_poll(&p, 1, &none) > 0;
}

int st_sys_room(int fd)
{
	int size = 0, used = 0;

	if (get_int(fd, SOL_SOCKET, SO_SNDBUF, &size) != 0 ||
	    st_sys_ioctl_int(fd, SIOCOUTQ, &used) != 0)
		return 0;
	return size / 2 > used ? size / 2 - used : 0;
}

int st_sys_poll(struct pollfd *fds, unsigned count, const struct timespec *timeout)
{
	struct timespec left;

	if (timeout != NULL)
		left = *timeout; /* the kernel writes into it */
	return (int)call(SYS_ppoll, (long)fds, count, (long)(timeout ? &left : NULL), 0, 0, 0);
}

/* ---- eventfds and sets --------------------------------------------------------------------------------------- */

/* Moves a descriptor to a number from `least` on, where one is left; errors pass. */
static int raised(int fd, int least)
{
	int high;

	if (fd < 0 || fd >= least)
		return fd;
	high = st_sys_dup(fd, least);
	if (high < 0)
		return fd;
	st_sys_close(fd);
	return high;
}

int st_sys_processors(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 0;
}

int st_sys_read_line(const char *path, char *out, int room)
{
	long fd = call(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0, 0, 0), n;

	if (fd < 0)
		return (int)fd;
	n = call(SYS_read, fd, (long)out, room - 1, 0, 0, 0);
	call(SYS_close, fd, 0, 0, 0, 0, 0);
	if (n >= 0)
		out[n] = '\0';
	return (int)n;
}

int st_sys_eventfd(int least)
{
	return raised((int)call(SYS_eventfd2, 0, EFD_CLOEXEC | EFD_NONBLOCK, 0, 0, 0, 0), least);
}

int st_sys_epoll(int least)
{
	return raised((int)call(SYS_epoll_create1, EPOLL_CLOEXEC, 0, 0, 0, 0, 0), least);
}

int st_sys_epoll_add(int set, int fd)
{
	struct epoll_event event = { .events = EPOLLIN };

	return (int)call(SYS_epoll_ctl, set, EPOLL_CTL_ADD, fd, (long)&event, 0, 0);
}

int st_sys_epoll_want(int set, int fd, void *data)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLONESHOT, .data.ptr = data };
	int rc = (int)call(SYS_epoll_ctl, set, EPOLL_CTL_MOD, fd, (long)&event, 0, 0);

	if (rc == -ENOENT)
		rc = (int)call(SYS_epoll_ctl, set, EPOLL_CTL_ADD, fd, (long)&event, 0, 0);
	return rc;
}

int st_sys_epoll_drop(int set, int fd)
{
	return (int)call(SYS_epoll_ctl, set, EPOLL_CTL_DEL, fd, 0, 0, 0);
}

int st_sys_epoll_take(int set, void **data, int max)
{
	struct epoll_event events[16];
	int n = (int)call(SYS_epoll_pwait, set, (long)events, max < 16 ? max : 16, 0, 0, 8);

	for (int i = 0; i < n; i++)
		data[i] = events[i].data.ptr;
	return n;
}

void st_sys_signal(int eventfd)
{
	uint64_t one = 1;

	call(SYS_write, eventfd, (long)&one, sizeof(one), 0, 0, 0);
}

void st_sys_clear(int eventfd)
{
	uint64_t count;

	call(SYS_read, eventfd, (long)&count, sizeof(count), 0, 0, 0);
}
