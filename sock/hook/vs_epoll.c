// SPDX-License-Identifier: BSD-2-Clause
#include "vs_epoll.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include "vs_env.h"
#include "vs_events.h"
#include "vs_real.h"
#include "vs_rouse.h"
#include "vs_signal.h"
#include "vs_table.h"
#include "vs_time.h"
#include "vs_watch.h"

#define KERNEL_EVERY 16u /* calls, when streams have events all the time */
#define ARM_NS 1000u	 /* about what it takes to arm a stream */
/* Items that are looked at: to arm so many takes longer than some events are apart; and as many as count at most. */
#define MANY 16u
#define MOST 1024u

/* ---- sets ---- */

/* Frees the set's part of the object; nothing is freed in a handler that has interrupted a use of the items. */
static void epoll_end(struct vs_obj *set)
{
	struct vs_epoll *ep = set->epoll;

	if (!ep)
		return;
	if (!vs_items_lock())
		return;
	while (set->items)
		vs_item_destroy(set->items);
	while (ep->items)
		vs_item_destroy(ep->items);
	while (ep->waits)
		vs_item_destroy(ep->waits);
	vs_watch_end(ep);
	vs_item_destroy(ep->rouser);
	vs_items_unlock();
	if (ep->own)
		st_wait_destroy(ep->own);
	free(ep);
}

void vs_epoll_made(int fd)
{
	struct vs_obj *o = vs_env.possible ? vs_obj_create(VS_EPOLL, epoll_end) : NULL;
	int before = errno;

	if (!o)
		return;
	o->epoll = calloc(1, sizeof(*o->epoll));
	if (o->epoll) {
		o->epoll->fd = fd;
		vs_table_set(fd, o);
	}
	vs_put(o);
	errno = before;
}

void vs_epoll_forked(void)
{
	vs_items_forked();
	vs_rouse_forked();
}

bool vs_epoll_peek(struct vs_obj *set)
{
	bool found;

	if (!vs_items_lock())
		return false;
	vs_watch_take();
	vs_events_follow(set->epoll);
	found = vs_events_peek(set->epoll, 1);
	vs_items_unlock();
	return found;
}

/* ---- sockets of sets ---- */

void vs_epoll_take(struct st_wait *w)
{
	if (!vs_items_lock())
		return;
	vs_events_take(w);
	vs_items_unlock();
}

void vs_epoll_check(struct vs_obj *socket)
{
	struct vs_item *it;

	if (!vs_items_lock())
		return;
	for (it = socket->items; it; it = it->of_obj)
		vs_rouse_item(it);
	vs_items_unlock();
}

void vs_epoll_promoting(struct vs_obj *socket)
{
	struct vs_item *it;

	if (!vs_items_lock())
		return;
	for (it = socket->items; it; it = it->of_obj) {
		it->moving = true;
		vs_rouse_item(it);
	}
	vs_items_unlock();
}

struct st_wait *vs_epoll_wait_for(struct vs_obj *socket)
{
	struct st_wait *w = NULL;

	if (!vs_items_lock())
		return NULL;
	if (socket->items) {
		struct vs_epoll *ep = socket->items->ep;

		if (!ep->own && st_wait_create(&ep->own) != 0)
			ep->own = NULL;
		w = ep->own;
	}
	vs_items_unlock();
	return w;
}

void vs_epoll_unpark(struct vs_obj *o)
{
	struct vs_item *it, *next;

	if (!vs_items_lock())
		return;
	for (it = o->kind == VS_EPOLL ? o->epoll->items : o->items; it; it = next) {
		next = o->kind == VS_EPOLL ? it->of_ep : it->of_obj;
		vs_item_unpark(it);
	}
	vs_items_unlock();
}

void vs_epoll_forget(struct vs_obj *socket)
{
	if (!vs_items_lock())
		return;
	while (socket->items) {
		struct vs_item *it = socket->items;

		vs_item_unset(it);
		vs_item_destroy(it);
	}
	vs_items_unlock();
}

/* The interrupted thread may be changing the list, which it does by one store. */
void vs_epoll_unset(struct vs_obj *socket)
{
	struct vs_item *it;
	bool locked;

	if (!socket->items || !vs_items_keep(&locked))
		return; /* the kernel's sets have it until the file ends */
	for (it = socket->items; it; it = it->of_obj) {
		vs_item_unset(it);
		it->fd = -1; /* the number may be another file's soon */
	}
	vs_items_unkeep(locked);
}

/* ---- epoll_wait ---- */

/* Asks the kernel without waiting, and adds its events.  How many notices were told, or -1, errno.  Takes the lock. */
static int ask_kernel(struct vs_call *c, int fd)
{
	int n;

	if (c->n == c->max)
		return 0;
	n = vs_real.epoll_wait(fd, c->v + c->n, c->max - c->n, 0);
	if (n <= 0)
		return n;
	vs_items_lock();
	n = vs_events_sort(c, n);
	vs_items_unlock();
	return n;
}

/* Adds everything that is there now, also what the kernel tells.  The count, or -1 with errno.  Takes the lock. */
static int gather(struct vs_call *c, int fd)
{
	struct vs_item *it;
	int rc, max = c->max;
	bool kernel;

	vs_items_lock();
	c->ep->fd = fd;
	c->turn = ++c->ep->turns;
	for (it = c->ep->waits; it; it = it->of_ep)
		vs_events_take(it->w);
	vs_watch_take();
	vs_events_follow(c->ep);
	kernel = c->turn % KERNEL_EVERY == 0;
	c->max = kernel ? max / 2 : max; /* the kernel's have their part */
	vs_events_check(c);
	c->max = max;
	vs_items_unlock();
	if (c->n > 0 && !kernel)
		return c->n;
	rc = ask_kernel(c, fd);
	if (rc < 0)
		return c->n > 0 ? c->n : -1;
	if (c->n < max && (kernel || (c->n == 0 && rc > 0))) {
		vs_items_lock();
		vs_events_check(c);
		vs_items_unlock();
	}
	return c->n;
}

/*
 * Arms the streams of a set before a sleep.  False: there is something, and the rest is not armed.  Sets *brief where a
 * wake is not certain: nobody rings for some event, or this is a handler that has interrupted the holder of the lock,
 * and nothing is armed.  Takes the lock.  An item that is not looked at is armed, and its stream would be told by its
 * wait object, or counted as changed, if it were not any more.
 */
static bool arm_set(struct vs_epoll *ep, bool *brief)
{
	struct vs_item *it, *next;
	bool armed;

	if (!vs_items_lock()) {
		*brief = true;
		return true;
	}
	vs_watch_want(ep);
	armed = st_changes() == ep->changes;
	for (it = ep->first; it && armed; it = next) {
		next = it->next;
		armed = vs_events_arm(it, 1, brief);
	}
	for (it = ep->waits; it && armed; it = it->of_ep)
		armed = st_wait_arm(it->w) == 0 && vs_events_take(it->w) == 0;
	if (vs_watch_take() > 0)
		armed = false;
	vs_items_unlock();
	return armed;
}

bool vs_epoll_arm(struct vs_obj *set, bool *brief)
{
	set->epoll->outside = true;
	return arm_set(set->epoll, brief);
}

/* Arms the set and sleeps once.  -1: errno, EINTR for a handler since `handled`; 0: the time is over; 1: look again. */
static int doze(struct vs_epoll *ep, int fd, uint32_t handled, const struct timespec *until,
		const sigset_t *mask)
{
	struct pollfd p[2] = { { .fd = fd, .events = POLLIN }, { .events = POLLIN } };
	bool brief = false;
	int rc = 1;

	p[1].fd = st_sleep_begin(NULL, NULL);
	if (p[1].fd < 0) {
		errno = -p[1].fd;
		return -1;
	}
	st_sleep_for(ep);
	if (arm_set(ep, &brief)) {
		vs_stat_add(VS_SLEEPS, 1);
		if (vs_handled_since(handled, p[1].fd)) {
			errno = EINTR;
			rc = -1;
		} else {
			rc = vs_sleep_slice(p, 2, until, brief, mask);
		}
		vs_handled_end();
	}
	st_sleep_end();
	return rc;
}

/* Returns a timeout in ns; INT64_MAX stands for all that are longer than about 146 years. */
static uint64_t time_ns(const struct timespec *t)
{
	if (t->tv_sec > INT64_MAX / 2000000000)
		return INT64_MAX;
	return (uint64_t)t->tv_sec * 1000000000 + (uint64_t)t->tv_nsec;
}

/*
 * True: no stream of the set has a VI, or is about to get one; this thread counts as one that sleeps then.  Takes the
 * lock.
 */
static bool quiet(struct vs_epoll *ep, int fd)
{
	bool none;

	vs_items_lock();
	vs_rouse_leave();
	ep->fd = fd;
	none = !ep->first && !ep->waits && vs_rouse_enter(ep);
	vs_items_unlock();
	return none;
}

/*
 * The sleep of a quiet set, in the kernel's call as if this library were not there.  The token that a
 * direction's move to a VI sends over TCP ends it, and so does vs_rouse().
 * -1: errno; 0: the time is over; 1: look again.
 */
static int sleep_quietly(struct vs_call *c, int fd, const struct timespec *until,
			 const sigset_t *mask)
{
	struct timespec left;
	int n;

	if (until)
		left = vs_time_left(until);
	n = vs_real.epoll_pwait2(fd, c->v, c->max, until ? &left : NULL, mask);
	vs_items_lock();
	vs_rouse_leave();
	if (n > 0) {
		c->turn = ++c->ep->turns;
		vs_events_sort(c, n);
	}
	vs_items_unlock();
	return n > 0 ? 1 : n;
}

/* Looks for a moment before a sleep, as a wake costs more than that.  True: there is something. */
static bool spin(struct vs_call *c)
{
	uint64_t end = vs_spin_ns ? vs_now_ns() + vs_spin_ns : 0;
	struct vs_item *it;

	c->spins = true;
	while (end && c->n == 0 && vs_now_ns() < end) {
		vs_items_lock();
		for (it = c->ep->waits; it; it = it->of_ep)
			vs_events_take(it->w);
		vs_watch_take();
		vs_events_check(c);
		vs_items_unlock();
		if (c->n == 0 && !st_give_way())
			break;
	}
	c->spins = false;
	return c->n > 0;
}

/*
 * True: the call has not yet looked for as long as it would take to arm what is looked at, no handler has run, and its
 * time is not over.  While that was armed the next event would often come, and all would have been armed, and rung for,
 * in vain: to look as long costs no more.  False where nothing is to be looked at before a sleep.
 */
static bool looks_on(struct vs_call *c, uint32_t handled, const struct timespec *until)
{
	uint64_t hot = atomic_load_explicit(&c->ep->hot, memory_order_relaxed), now;
	struct timespec left;

	if (hot < MANY || vs_spin_ns == 0 || vs_handled() != handled)
		return false;
	if (until) {
		left = vs_time_left(until);
		if (left.tv_sec == 0 && left.tv_nsec == 0)
			return false;
	}
	now = vs_now_ns();
	if (c->since == 0)
		c->since = now;
	return now - c->since < (hot < MOST ? hot : MOST) * ARM_NS;
}

/* Returns the count of events; 0: the time is over; -1: errno.  `once`: looks once, and `until` is now, not NULL. */
static int wait_events(struct vs_call *c, int fd, const struct timespec *until, bool once,
		       const sigset_t *mask)
{
	uint32_t handled = vs_handled();
	int n, rc = 1;

	for (;;) {
		if (quiet(c->ep, fd)) {
			rc = sleep_quietly(c, fd, until, mask);
			if (rc <= 0 || c->n > 0)
				return rc < 0 ? -1 : c->n;
		}
		n = gather(c, fd);
		if (n != 0 || once || rc == 0)
			return n;
		if (spin(c))
			return c->n;
		if (looks_on(c, handled, until))
			continue;
		rc = doze(c->ep, fd, handled, until, mask);
		if (rc < 0)
			return -1;
	}
}

int vs_epoll_wait(struct vs_obj *set, int set_fd, struct epoll_event *v, int max,
		  const struct timespec *timeout, const sigset_t *mask)
{
	struct vs_call c = { .ep = set->epoll, .v = v, .max = max };
	bool once = timeout && timeout->tv_sec == 0 && timeout->tv_nsec == 0;
	int n, before = errno;
	struct timespec until;

	if (max <= 0 || vs_bad_time(timeout)) {
		errno = EINVAL;
		return -1;
	}
	if (vs_items_refuse() != 0)
		return -1;
	if (timeout)
		until = vs_in_ns(time_ns(timeout));
	n = wait_events(&c, set_fd, timeout ? &until : NULL, once, mask);
	if (n >= 0)
		errno = before;
	return n;
}
