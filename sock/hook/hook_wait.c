// SPDX-License-Identifier: BSD-2-Clause
/* poll, select and epoll. */
#include <errno.h>
#include <unistd.h>

#pragma GCC diagnostic ignored                                                                     \
	"-Wmaybe-uninitialized" /* poll() is declared as one that only writes */

#include "hook.h"
#include "vs_env.h"
#include "vs_epoll.h"
#include "vs_init.h"
#include "vs_item.h"
#include "vs_poll.h"
#include "vs_signal.h"
#include "vs_sock.h"
#include "vs_table.h"

/* The time of poll(): NULL, no end, where ms is negative. */
static const struct timespec *from_ms(int ms, struct timespec *t)
{
	if (ms < 0)
		return NULL;
	t->tv_sec = ms / 1000;
	t->tv_nsec = ms % 1000 * 1000000L;
	return t;
}

VS_HOOK int poll(struct pollfd *v, nfds_t n, int ms)
{
	struct timespec t;

	if (vs_likely(!v || !vs_poll_concerns(v, n)))
		return vs_real.poll(v, n, ms);
	return vs_poll(v, n, from_ms(ms, &t), NULL);
}

VS_HOOK int ppoll(struct pollfd *v, nfds_t n, const struct timespec *t, const sigset_t *mask)
{
	if (vs_likely(!v || !vs_poll_concerns(v, n)))
		return vs_real.ppoll(v, n, t, mask);
	return vs_poll(v, n, t, mask);
}

/* As the original; `t` becomes the time that is left. */
VS_HOOK int select(int n, fd_set *r, fd_set *w, fd_set *e, struct timeval *t)
{
	struct timespec at, left;
	int rc;

	if (vs_likely(!vs_select_concerns(n, r, w, e)))
		return vs_real.select(n, r, w, e, t);
	if (!t)
		return vs_select(n, r, w, e, NULL, NULL, NULL);
	if (t->tv_sec < 0 || t->tv_usec < 0) {
		errno = EINVAL;
		return -1;
	}
	at.tv_sec = t->tv_sec + t->tv_usec / 1000000;
	at.tv_nsec = t->tv_usec % 1000000 * 1000;
	left = at;
	rc = vs_select(n, r, w, e, &at, NULL, &left);
	t->tv_sec = left.tv_sec;
	t->tv_usec = left.tv_nsec / 1000;
	return rc;
}

/* As the original; `t` stays as it is. */
VS_HOOK int pselect(int n, fd_set *r, fd_set *w, fd_set *e, const struct timespec *t,
		    const sigset_t *mask)
{
	if (vs_likely(!vs_select_concerns(n, r, w, e)))
		return vs_real.pselect(n, r, w, e, t, mask);
	return vs_select(n, r, w, e, t, mask, NULL);
}

/* As the original; the set gets an object if a connection may be promoted, and is left as it is without memory. */
VS_HOOK int epoll_create(int size)
{
	int fd = vs_real.epoll_create(size);

	if (fd >= 0)
		vs_epoll_made(fd);
	return fd;
}

/* As the original; the set gets an object if a connection may be promoted, and is left as it is without memory. */
VS_HOOK int epoll_create1(int flags)
{
	int fd = vs_real.epoll_create1(flags);

	if (fd >= 0)
		vs_epoll_made(fd);
	return fd;
}

/* The object of an epoll set, with a reference; NULL: it has none, or is no set. */
static struct vs_obj *get_set(int fd)
{
	struct vs_obj *o = vs_get(fd);

	if (vs_likely(!o) || o->kind == VS_EPOLL)
		return o;
	vs_put(o);
	return NULL;
}

/*
 * True, with EDEADLK: this is a handler, and a use of the set could wait for a thread that waits for a lock of the
 * interrupted call.
 */
static bool is_interrupted(void)
{
	if (vs_likely(!vs_in_handler()) || (!vs_items_held() && !vs_sock_any_interrupted()))
		return false;
	errno = EDEADLK;
	return true;
}

/*
 * As the original; EDEADLK in a handler that has interrupted a use of a set or stream.  A socket in a set that is not
 * known here goes to the kernel; in one that is, this may be its first use, at which `eager` promotes it.
 */
VS_HOOK int epoll_ctl(int set, int op, int fd, struct epoll_event *e)
{
	struct vs_obj *o = get_set(set), *target;
	int rc, before;

	if (vs_likely(!o)) {
		/* One that was made by a system call, or by another process, tells of the kernel's events only. */
		if (vs_unlikely(vs_env.possible && op != EPOLL_CTL_DEL && vs_peek(fd) != NULL))
			vs_give_kernel(fd, VS_WHY_SET);
		return vs_real.epoll_ctl(set, op, fd, e);
	}
	rc = is_interrupted() ? -1 : vs_epoll_ctl(o, set, op, fd, e);
	before = errno;
	target = vs_in_handler() ? NULL : vs_get(fd);
	if (target) {
		/* This may be its first use: promoted while in the set, it shares the completion queue of others. */
		if (vs_is_socket(target))
			vs_sock_stream(target, fd);
		vs_put(target);
	}
	vs_put(o);
	errno = before;
	return rc;
}

/* As the original; EDEADLK in a handler that has interrupted a use of a set or stream. */
VS_HOOK int epoll_wait(int set, struct epoll_event *v, int n, int ms)
{
	struct vs_obj *o = get_set(set);
	struct timespec t;
	int rc;

	if (vs_likely(!o))
		return vs_real.epoll_wait(set, v, n, ms);
	rc = is_interrupted() ? -1 : vs_epoll_wait(o, set, v, n, from_ms(ms, &t), NULL);
	vs_put(o);
	return rc;
}

/* As the original; EDEADLK in a handler that has interrupted a use of a set or stream. */
VS_HOOK int epoll_pwait(int set, struct epoll_event *v, int n, int ms, const sigset_t *mask)
{
	struct vs_obj *o = get_set(set);
	struct timespec t;
	int rc;

	if (vs_likely(!o))
		return vs_real.epoll_pwait(set, v, n, ms, mask);
	rc = is_interrupted() ? -1 : vs_epoll_wait(o, set, v, n, from_ms(ms, &t), mask);
	vs_put(o);
	return rc;
}

/* As the original; EDEADLK in a handler that has interrupted a use of a set or stream. */
VS_HOOK int epoll_pwait2(int set, struct epoll_event *v, int n, const struct timespec *t,
			 const sigset_t *mask)
{
	struct vs_obj *o = get_set(set);
	int rc;

	if (vs_likely(!o))
		return vs_real.epoll_pwait2(set, v, n, t, mask);
	rc = is_interrupted() ? -1 : vs_epoll_wait(o, set, v, n, t, mask);
	vs_put(o);
	return rc;
}

VS_ALSO(__poll, poll);
VS_ALSO(__select, select);
VS_HOOK int __poll_chk(struct pollfd *v, nfds_t n, int ms, size_t room);
VS_HOOK int __poll_chk(struct pollfd *v, nfds_t n, int ms, size_t room)
{
	vs_check_room(n, room / sizeof(*v));
	return poll(v, n, ms);
}

VS_HOOK int __ppoll_chk(struct pollfd *v, nfds_t n, const struct timespec *t, const sigset_t *mask,
			size_t room);
VS_HOOK int __ppoll_chk(struct pollfd *v, nfds_t n, const struct timespec *t, const sigset_t *mask,
			size_t room)
{
	vs_check_room(n, room / sizeof(*v));
	return ppoll(v, n, t, mask);
}
