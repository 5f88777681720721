/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The calls of the C library that this library replaces: for each its return type, name, parameters
 * and arguments.  VS_RAW: also known by the system call, which serves until the constructor has
 * found the original.  VS_LATE: the first call finds all originals.  Other spellings of a call
 * (hook_alias.c) are not listed: they lead to the original listed here.
 */
#ifndef VS_CALLS_H
#define VS_CALLS_H

/* clang-format off */
#define VS_CALLS(VS_RAW, VS_LATE)                                                                  \
	VS_RAW(ssize_t, read, (int fd, void *buf, size_t n), (fd, buf, n), SYS_read)               \
	VS_RAW(ssize_t, readv, (int fd, const struct iovec *v, int n), (fd, v, n), SYS_readv)      \
	VS_LATE(ssize_t, recv, (int fd, void *buf, size_t n, int flags), (fd, buf, n, flags))      \
	VS_RAW(ssize_t, recvfrom, (int fd, void *buf, size_t n, int flags, struct sockaddr *a,     \
		socklen_t *alen), (fd, buf, n, flags, a, alen), SYS_recvfrom)                      \
	VS_RAW(ssize_t, recvmsg, (int fd, struct msghdr *m, int flags), (fd, m, flags),            \
		SYS_recvmsg)                                                                       \
	VS_RAW(int, recvmmsg, (int fd, struct mmsghdr *m, unsigned int n, int flags,               \
		struct timespec *t), (fd, m, n, flags, t), SYS_recvmmsg)                           \
	VS_LATE(ssize_t, preadv2, (int fd, const struct iovec *v, int n, off_t at, int flags),     \
		(fd, v, n, at, flags))                                                             \
	VS_RAW(ssize_t, write, (int fd, const void *buf, size_t n), (fd, buf, n), SYS_write)       \
	VS_RAW(ssize_t, writev, (int fd, const struct iovec *v, int n), (fd, v, n), SYS_writev)    \
	VS_LATE(ssize_t, send, (int fd, const void *buf, size_t n, int flags),                     \
		(fd, buf, n, flags))                                                               \
	VS_RAW(ssize_t, sendto, (int fd, const void *buf, size_t n, int flags,                     \
		const struct sockaddr *a, socklen_t alen), (fd, buf, n, flags, a, alen),           \
		SYS_sendto)                                                                        \
	VS_RAW(ssize_t, sendmsg, (int fd, const struct msghdr *m, int flags), (fd, m, flags),      \
		SYS_sendmsg)                                                                       \
	VS_RAW(int, sendmmsg, (int fd, struct mmsghdr *m, unsigned int n, int flags),              \
		(fd, m, n, flags), SYS_sendmmsg)                                                   \
	VS_LATE(ssize_t, pwritev2, (int fd, const struct iovec *v, int n, off_t at, int flags),    \
		(fd, v, n, at, flags))                                                             \
	VS_RAW(ssize_t, sendfile64, (int out, int in, off64_t *at, size_t n), (out, in, at, n),    \
		SYS_sendfile)                                                                      \
	VS_RAW(ssize_t, splice, (int in, off64_t *in_at, int out, off64_t *out_at, size_t n,       \
		unsigned int flags), (in, in_at, out, out_at, n, flags), SYS_splice)               \
	VS_RAW(int, socket, (int family, int type, int protocol), (family, type, protocol),        \
		SYS_socket)                                                                        \
	VS_RAW(int, bind, (int fd, const struct sockaddr *a, socklen_t alen), (fd, a, alen),       \
		SYS_bind)                                                                          \
	VS_RAW(int, connect, (int fd, const struct sockaddr *a, socklen_t alen), (fd, a, alen),    \
		SYS_connect)                                                                       \
	VS_RAW(int, listen, (int fd, int backlog), (fd, backlog), SYS_listen)                      \
	VS_LATE(int, accept, (int fd, struct sockaddr *a, socklen_t *alen), (fd, a, alen))         \
	VS_RAW(int, accept4, (int fd, struct sockaddr *a, socklen_t *alen, int flags),             \
		(fd, a, alen, flags), SYS_accept4)                                                 \
	VS_RAW(int, shutdown, (int fd, int how), (fd, how), SYS_shutdown)                          \
	VS_RAW(int, close, (int fd), (fd), SYS_close)                                              \
	VS_RAW(int, getsockopt, (int fd, int level, int name, void *v, socklen_t *len),            \
		(fd, level, name, v, len), SYS_getsockopt)                                         \
	VS_RAW(int, setsockopt, (int fd, int level, int name, const void *v, socklen_t len),       \
		(fd, level, name, v, len), SYS_setsockopt)                                         \
	VS_RAW(int, dup, (int fd), (fd), SYS_dup)                                                  \
	VS_LATE(int, dup2, (int fd, int to), (fd, to))                                             \
	VS_RAW(int, dup3, (int fd, int to, int flags), (fd, to, flags), SYS_dup3)                  \
	VS_RAW(int, fcntl64, (int fd, int op, unsigned long arg), (fd, op, arg), SYS_fcntl)        \
	VS_RAW(int, ioctl, (int fd, unsigned long op, void *arg), (fd, op, arg), SYS_ioctl)        \
	VS_RAW(int, close_range, (unsigned int from, unsigned int to, int flags),                  \
		(from, to, flags), SYS_close_range)                                                \
	VS_LATE(int, poll, (struct pollfd *v, nfds_t n, int ms), (v, n, ms))                       \
	VS_LATE(int, ppoll, (struct pollfd *v, nfds_t n, const struct timespec *t,                 \
		const sigset_t *mask), (v, n, t, mask))                                            \
	VS_LATE(int, select, (int n, fd_set *r, fd_set *w, fd_set *e, struct timeval *t),          \
		(n, r, w, e, t))                                                                   \
	VS_LATE(int, pselect, (int n, fd_set *r, fd_set *w, fd_set *e, const struct timespec *t,   \
		const sigset_t *mask), (n, r, w, e, t, mask))                                      \
	VS_LATE(int, epoll_create, (int size), (size))                                             \
	VS_RAW(int, epoll_create1, (int flags), (flags), SYS_epoll_create1)                        \
	VS_RAW(int, epoll_ctl, (int set, int op, int fd, struct epoll_event *e),                   \
		(set, op, fd, e), SYS_epoll_ctl)                                                   \
	VS_LATE(int, epoll_wait, (int set, struct epoll_event *v, int n, int ms),                  \
		(set, v, n, ms))                                                                   \
	VS_LATE(int, epoll_pwait, (int set, struct epoll_event *v, int n, int ms,                  \
		const sigset_t *mask), (set, v, n, ms, mask))                                      \
	VS_LATE(int, epoll_pwait2, (int set, struct epoll_event *v, int n,                         \
		const struct timespec *t, const sigset_t *mask), (set, v, n, t, mask))             \
	VS_LATE(pid_t, fork, (void), ())                                                           \
	VS_LATE(pid_t, _Fork, (void), ())                                                          \
	VS_LATE(int, execve, (const char *path, char *const *argv, char *const *envp),             \
		(path, argv, envp))                                                                \
	VS_LATE(int, execv, (const char *path, char *const *argv), (path, argv))                   \
	VS_LATE(int, execvp, (const char *file, char *const *argv), (file, argv))                  \
	VS_LATE(int, execvpe, (const char *file, char *const *argv, char *const *envp),            \
		(file, argv, envp))                                                                \
	VS_LATE(int, fexecve, (int fd, char *const *argv, char *const *envp), (fd, argv, envp))    \
	VS_LATE(int, execveat, (int fd, const char *path, char *const *argv, char *const *envp,    \
		int flags), (fd, path, argv, envp, flags))                                         \
	VS_LATE(int, daemon, (int nochdir, int noclose), (nochdir, noclose))                       \
	VS_LATE(int, forkpty, (int *terminal, char *name, const struct termios *t,                 \
		const struct winsize *w), (terminal, name, t, w))                                  \
	VS_LATE(int, clone, (int (*run)(void *arg), void *stack, int flags, void *arg,             \
		pid_t *parents, void *tls, pid_t *theirs),                                         \
		(run, stack, flags, arg, parents, tls, theirs))                                    \
	VS_LATE(int, posix_spawn_file_actions_adddup2, (posix_spawn_file_actions_t *actions,       \
		int fd, int to), (actions, fd, to))                                                \
	VS_LATE(int, sigaction, (int number, const struct sigaction *act, struct sigaction *old),  \
		(number, act, old))                                                                \
	VS_LATE(sighandler_t, signal, (int number, sighandler_t handler), (number, handler))       \
	VS_LATE(sighandler_t, sysv_signal, (int number, sighandler_t handler), (number, handler))  \
	VS_LATE(FILE *, fdopen, (int fd, const char *mode), (fd, mode))                            \
	VS_LATE(int, fclose, (FILE *f), (f))                                                       \
	VS_LATE(FILE *, freopen, (const char *path, const char *mode, FILE *f), (path, mode, f))   \
	VS_LATE(FILE *, freopen64, (const char *path, const char *mode, FILE *f), (path, mode, f)) \
	VS_LATE(int, aio_read, (struct aiocb *c), (c))                                             \
	VS_LATE(int, aio_write, (struct aiocb *c), (c))                                            \
	VS_LATE(int, lio_listio, (int mode, struct aiocb *const *list, int n,                      \
		struct sigevent *event), (mode, list, n, event))                                   \
	VS_LATE(int, vdprintf, (int fd, const char *fmt, va_list ap), (fd, fmt, ap))
/* clang-format on */

#endif
