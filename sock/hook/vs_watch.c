// SPDX-License-Identifier: BSD-2-Clause
#include "vs_watch.h"

#include <errno.h>

#include "vs_real.h"

#define PRIVATE (EPOLLET | EPOLLONESHOT | EPOLLEXCLUSIVE | EPOLLWAKEUP)

bool vs_watch_has(const struct vs_item *it)
{
	return st_watch_valid(it->watch);
}

/* Returns the set's waker, whose descriptor the kernel's set has, making it where needed.  NULL: that failed. */
static struct st_waker *waker_of(struct vs_epoll *ep)
{
	struct epoll_event e = { .events = EPOLLIN };
	int before = errno;

	if (st_waker_valid(ep->waker))
		return ep->waker;
	vs_item_destroy(ep->waker_item); /* a parent's */
	ep->waker_item = NULL;
	ep->waker = st_waker_get();
	ep->waker_item = ep->waker ? vs_item_create(ep) : NULL;
	if (ep->waker_item) {
		e.data.u64 = (uint64_t)(uintptr_t)ep->waker_item;
		ep->waker_item->fd = st_waker_fd(ep->waker);
		if (vs_real.epoll_ctl(ep->fd, EPOLL_CTL_ADD, ep->waker_item->fd, &e) == 0) {
			st_waker_want(ep->waker); /* this thread may be on its way to a sleep */
			return ep->waker;
		}
	}
	vs_watch_end(ep);
	errno = before;
	return NULL;
}

bool vs_watch_give(struct vs_item *it, const struct vs_ready *look)
{
	struct st_stream *s;
	struct st_waker *b;

	if (!st_pollers_on() || it->left || it->moving || it->off || !it->o ||
	    it->o->kind != VS_SOCKET || look->events != 0)
		return false;
	s = atomic_load_explicit(&it->o->sock.stream, memory_order_acquire);
	/* Where the stream alone cannot tell, the program looks. */
	if (!s || st_on_tcp(s) ||
	    atomic_load_explicit(&it->o->sock.low_water, memory_order_relaxed) > 1)
		return false;
	b = waker_of(it->ep);
	it->watch = b ? st_watch_give(s, vs_stream_events(it->events & ~PRIVATE), b, it) : NULL;
	return it->watch != NULL;
}

void vs_watch_drop(struct vs_item *it)
{
	st_watch_drop(it->watch);
	it->watch = NULL;
	it->left = false;
}

/*
 * For st_watch_take(): an item with news is looked at, and threads that wait in its set wake; with `armed` it has none,
 * and stays armed for its notice.
 */
static void come_back(void *owner, bool armed)
{
	struct vs_item *it = owner;

	it->watch = NULL;
	it->left = armed;
	if (armed)
		return;
	vs_item_heat(it);
	st_wake(it->ep->outside ? NULL : it->ep);
}

int vs_watch_take(void)
{
	return st_watch_take(come_back);
}

void vs_watch_want(struct vs_epoll *ep)
{
	st_waker_want(ep->waker);
}

void vs_watch_woken(struct vs_epoll *ep)
{
	st_waker_clear(ep->waker);
	vs_watch_take();
}

void vs_watch_end(struct vs_epoll *ep)
{
	if (ep->waker_item) {
		vs_item_unset(ep->waker_item);
		vs_item_destroy(ep->waker_item);
	}
	st_waker_put(ep->waker);
	ep->waker_item = NULL;
	ep->waker = NULL;
}
