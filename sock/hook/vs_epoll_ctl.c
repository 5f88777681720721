// SPDX-License-Identifier: BSD-2-Clause
/* epoll_ctl() of sets that have sockets of this library. */
#include <errno.h>

#include "vs_epoll.h"
#include "vs_item.h"
#include "vs_real.h"
#include "vs_rouse.h"
#include "vs_table.h"
#include "vs_watch.h"

/* Under the lock: adds the descriptor to the kernel's set, with an item; as epoll_ctl(). */
static int ctl_add(struct vs_epoll *ep, struct vs_obj *o, int fd, const struct epoll_event *e)
{
	struct epoll_event kernel = { .events = e->events };
	struct vs_item *it = vs_item_create(ep);
	struct st_stream *s;
	int rc;

	if (!it) {
		errno = ENOMEM;
		return -1;
	}
	kernel.data.u64 = (uint64_t)(uintptr_t)it;
	rc = vs_real.epoll_ctl(ep->fd, EPOLL_CTL_ADD, fd, &kernel);
	if (rc != 0) {
		vs_item_destroy(it);
		return rc;
	}
	it->fd = fd;
	it->events = it->kernel = e->events;
	it->data = e->data.u64;
	vs_item_link(it, o);
	s = vs_item_stream(it);
	it->moving = s && !st_on_tcp(s);
	if (it->moving || o->kind == VS_EPOLL)
		vs_rouse_item(it);
	return 0;
}

/*
 * Under the lock: has an item ask for other events; all that is ready is told again.  The kernel's set, which looks
 * again when it is asked, is not asked for nothing twice: some programs change their minds for each message.  As
 * epoll_ctl().
 */
static int ask_for(struct vs_epoll *ep, struct vs_item *it, const struct epoll_event *e)
{
	struct epoll_event kernel = { .events = e->events, .data.u64 = (uint64_t)(uintptr_t)it };
	struct st_stream *s = vs_item_stream(it);
	bool tcp = !s || st_on_tcp(s);

	if (tcp && vs_real.epoll_ctl(ep->fd, EPOLL_CTL_MOD, it->fd, &kernel) != 0)
		return -1;
	vs_watch_drop(it);
	it->parked = false;
	it->events = e->events;
	it->data = e->data.u64;
	it->off = false;
	it->in_seen = it->out_seen = UINT64_MAX;
	it->level_seen = 0;
	if (tcp) {
		it->kernel = e->events;
	} else {
		vs_item_mask(it, it->kernel != EPOLLET);
		vs_rouse_item(it);
	}
	return 0;
}

/* Under the lock: changes what an item asks for.  As epoll_ctl(). */
static int ctl_mod(struct vs_epoll *ep, struct vs_item *it, const struct epoll_event *e)
{
	if ((it->events | e->events) & EPOLLEXCLUSIVE) {
		errno = EINVAL;
		return -1;
	}
	return ask_for(ep, it, e);
}

/*
 * Under the lock: the kernel's set still has a descriptor that the program has taken out.  True: it is in the set
 * again, for an ADD.  False: the kernel's set has lost it, and the item is gone.
 */
static bool ctl_parked(struct vs_epoll *ep, int op, struct vs_item *it, const struct epoll_event *e)
{
	if (op == EPOLL_CTL_ADD && e && !(e->events & EPOLLEXCLUSIVE) && !vs_item_is_parents(it) &&
	    ask_for(ep, it, e) == 0) {
		/* Its path may have changed since. */
		it->moving = !st_on_tcp(vs_item_stream(it));
		return true;
	}
	vs_item_unpark(it);
	return false;
}

/* epoll_ctl() of a descriptor that has an object, under the lock. */
static int ctl_locked(struct vs_epoll *ep, int op, int fd, struct vs_obj *o, struct epoll_event *e)
{
	struct vs_item *it = vs_item_find(ep, o, fd);
	int rc;

	if (it && it->parked) {
		if (ctl_parked(ep, op, it, e))
			return 0;
		it = NULL;
	}
	if (op == EPOLL_CTL_DEL && it && vs_item_park(it))
		return 0;
	if (op == EPOLL_CTL_ADD && e && !it)
		return ctl_add(ep, o, fd, e);
	if (op == EPOLL_CTL_MOD && e && it)
		return ctl_mod(ep, it, e);
	rc = vs_real.epoll_ctl(ep->fd, op, fd, e);
	if (rc == 0 && op == EPOLL_CTL_DEL && it)
		vs_item_destroy(it);
	return rc;
}

int vs_epoll_ctl(struct vs_obj *set, int set_fd, int op, int fd, struct epoll_event *e)
{
	struct vs_obj *o = vs_get(fd);
	int rc;

	if (!o)
		return vs_real.epoll_ctl(set_fd, op, fd, e);
	rc = vs_items_refuse();
	if (rc == 0 && vs_items_lock()) {
		set->epoll->fd = set_fd;
		rc = ctl_locked(set->epoll, op, fd, o, e);
		vs_items_unlock();
	}
	vs_put(o);
	return rc;
}
