// SPDX-License-Identifier: BSD-2-Clause
#include "vs_rouse.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/eventfd.h>

#include "vs_obj.h"
#include "vs_real.h"
#include "vs_table.h"

/* The set for which this thread is in the kernel's call; during the call it has a reference to the set's object. */
static __thread struct vs_epoll *inside __attribute__((tls_model("initial-exec")));
static __thread bool has_key __attribute__((tls_model("initial-exec")));

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static int key_error, readable_fd = -1;

/* Counts one thread less in the kernel's call; the last one takes the readable descriptor out of the set. */
static void quit(struct vs_epoll *ep)
{
	int before = errno;

	if (ep->quiet > 0)
		ep->quiet--;
	if (ep->quiet > 0 || !ep->roused)
		return;
	vs_real.epoll_ctl(ep->fd, EPOLL_CTL_DEL, ep->rouser->fd, NULL);
	ep->roused = false;
	errno = before;
}

void vs_rouse_leave(void)
{
	struct vs_epoll *ep = inside;

	inside = NULL;
	if (ep)
		quit(ep);
}

/* When a thread ends, as one that is cancelled in the kernel's call: it is no longer counted there. */
static void thread_ends(void *unused)
{
	(void)unused;
	if (!inside || !vs_items_lock())
		return;
	vs_rouse_leave();
	vs_items_unlock();
}

static void make_key(void)
{
	key_error = pthread_key_create(&key, thread_ends);
}

bool vs_rouse_enter(struct vs_epoll *ep)
{
	if (vs_unlikely(!has_key)) {
		pthread_once(&once, make_key);
		if (key_error != 0 || pthread_setspecific(key, &inside) != 0)
			return false;
		has_key = true;
	}
	ep->quiet++;
	inside = ep;
	return true;
}

/* An eventfd that is readable for ever, or -1. */
static int make_readable(void)
{
	int low = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK), high;

	high = low < 0 ? low : vs_real.fcntl64(low, F_DUPFD_CLOEXEC, (unsigned long)vs_ours_from);
	if (high < 0)
		return low;
	vs_real.close(low);
	return high;
}

/*
 * Adds a descriptor that is always readable to the kernel's set.  False: it cannot; the next byte over TCP wakes then.
 */
static bool hold_readable(struct vs_epoll *ep)
{
	struct epoll_event e = { .events = EPOLLIN };

	if (readable_fd < 0)
		readable_fd = make_readable();
	if (readable_fd < 0)
		return false;
	if (!ep->rouser)
		ep->rouser = vs_item_create(ep);
	if (!ep->rouser)
		return false;
	ep->rouser->fd = readable_fd;
	e.data.u64 = (uint64_t)(uintptr_t)ep->rouser;
	return vs_real.epoll_ctl(ep->fd, EPOLL_CTL_ADD, readable_fd, &e) == 0 || errno == EEXIST;
}

void vs_rouse(struct vs_epoll *ep)
{
	int before = errno;

	if (ep->quiet > 0 && !ep->roused)
		ep->roused = hold_readable(ep);
	st_wake(ep->outside ? NULL : ep);
	errno = before;
}

void vs_rouse_item(struct vs_item *it)
{
	vs_item_heat(it);
	vs_rouse(it->ep);
}

void vs_rouse_forked(void)
{
	struct vs_obj *o;
	int fd = -1;

	inside = NULL;
	while ((fd = vs_table_next(fd + 1)) >= 0) {
		o = vs_peek(fd);
		if (!o || o->kind != VS_EPOLL || !o->epoll)
			continue;
		o->epoll->quiet = 0;
		o->epoll->roused = false;
	}
}
