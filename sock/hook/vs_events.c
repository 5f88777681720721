// SPDX-License-Identifier: BSD-2-Clause
#include "vs_events.h"

#include <string.h>

#include "vs_ready.h"
#include "vs_watch.h"

#define NESTED_MAX 5
#define LOOKS_LEAST 64 /* without an event, before an item is armed: see learn() */
#define LOOKS_MOST 1024
#define IDLE_GIVEN 4 /* where there are pollers, one of them gets it after so many */
#define TAKEN 16
#define PRIVATE (EPOLLET | EPOLLONESHOT | EPOLLEXCLUSIVE | EPOLLWAKEUP)
#define ENDS (ST_RDHUP | ST_HUP | ST_ERR)

/* ---- events of one item ---- */

/* Follows the path of its stream, in the kernel's set and in the list. */
static void follow(struct vs_item *it, struct st_stream *s)
{
	struct st_wait *w = st_wait_of(s);
	bool tcp = st_on_tcp(s);

	vs_ready_note(it->o);
	vs_item_use_wait(it, tcp ? NULL : w);
	vs_item_mask(it, false);
	it->moving = !tcp && st_on_vi(s) != (ST_IN | ST_OUT);
	if (tcp)
		vs_item_cool(it);
}

/* The stream's events to tell: with EPOLLET all that are ready if one of them is new since told(), else none. */
static uint32_t fresh(const struct vs_item *it, const struct vs_ready *look)
{
	if (!(it->events & EPOLLET) || (look->events & ENDS & ~it->level_seen) ||
	    ((look->events & ST_IN) && look->in_edges != it->in_seen) ||
	    ((look->events & ST_OUT) && look->out_edges != it->out_seen))
		return look->events;
	return 0;
}

/* The events that are to be told now.  Makes the item follow a stream whose path has changed. */
static uint32_t events_of(struct vs_item *it, struct vs_ready *look)
{
	struct st_stream *s = vs_item_stream(it);

	memset(look, 0, sizeof(*look));
	if (it->off)
		return 0;
	if (it->o->kind == VS_EPOLL)
		return vs_events_peek(it->o->epoll, 1) ? it->events & EPOLLIN : 0;
	if (!s)
		return 0;
	vs_ready_get(it->o, s, it->events & ~PRIVATE, look);
	if (it->moving || look->kernel != it->kernel_seen) {
		it->kernel_seen = look->kernel;
		follow(it, s);
	}
	return fresh(it, look);
}

/* How many looks without an event come before the item is armed. */
static uint32_t looks_of(const struct vs_item *it)
{
	return it->looks ? it->looks : LOOKS_LEAST;
}

/*
 * An item that was armed has an event.  To arm it and to be rung for costs both ends as much as some hundred looks: had
 * it come within as many more calls, then the next time there are twice as many looks before, else half as many.
 */
static void learn(struct vs_item *it)
{
	uint32_t looks = looks_of(it);

	if (it->armed_turn == 0)
		return;
	if (it->ep->turns - it->armed_turn <= looks)
		it->looks = looks < LOOKS_MOST ? looks * 2 : LOOKS_MOST;
	else
		it->looks = looks > LOOKS_LEAST ? looks / 2 : LOOKS_LEAST;
	it->armed_turn = 0;
}

/* Notes that these events were told; an item with EPOLLONESHOT is off then. */
static void told(struct vs_item *it, const struct vs_ready *look)
{
	learn(it);
	it->idle = 0;
	it->left = false;
	it->level_seen = look->events & ENDS;
	if (look->events & ST_IN)
		it->in_seen = look->in_edges;
	if (look->events & ST_OUT)
		it->out_seen = look->out_edges;
	if (it->events & EPOLLONESHOT) {
		it->off = true;
		vs_item_mask(it, false);
	}
}

/* Adds the event to the call's; one item has one entry.  False: there is no room. */
static bool tell(struct vs_call *c, struct vs_item *it, uint32_t events,
		 const struct vs_ready *look)
{
	if (it->turn == c->turn) {
		c->v[it->at].events |= events;
		return true;
	}
	if (c->n == c->max)
		return false;
	it->turn = c->turn;
	it->at = c->n;
	c->v[c->n++] = (struct epoll_event){ .events = events, .data.u64 = it->data };
	told(it, look);
	return true;
}

/* ---- looking ---- */

/*
 * Counts a look without events.  An item that has long had none is armed, or a poller gets its stream, and it is looked
 * at no more until its notice.
 */
static void rest(struct vs_item *it, const struct vs_ready *look)
{
	struct st_stream *s = vs_item_stream(it);

	if (it->moving || !s)
		return;
	if (vs_watch_has(it) || (++it->idle >= IDLE_GIVEN && vs_watch_give(it, look))) {
		vs_item_cool(it);
		return;
	}
	if (it->idle < looks_of(it))
		return;
	if (it->off || st_arm(s, vs_stream_events(it->events & ~PRIVATE)) == 0) {
		vs_item_cool(it);
		it->armed_turn = it->ep->turns;
	}
	it->idle = 0;
}

void vs_events_check(struct vs_call *c)
{
	struct vs_item *it = c->ep->first, *last = c->ep->last, *next;
	struct vs_ready look;
	uint32_t events;
	bool end = !it;

	while (!end && c->n < c->max) {
		next = it->next;
		end = it == last;
		events = events_of(it, &look);
		if (events) {
			tell(c, it, events, &look);
			vs_item_to_end(it);
		} else if (!c->spins) {
			rest(it, &look);
		}
		it = next;
	}
}

bool vs_events_peek(struct vs_epoll *ep, int depth)
{
	struct vs_item *it, *next;
	struct vs_ready look;

	for (it = ep->first; it; it = next) {
		next = it->next;
		if (it->o->kind == VS_EPOLL) {
			if (!it->off && depth < NESTED_MAX &&
			    vs_events_peek(it->o->epoll, depth + 1))
				return true;
		} else if (events_of(it, &look)) {
			return true;
		}
	}
	return false;
}

/* ---- notices of completion queues ---- */

/* All sets that hold the object look at it when they look next; no thread is woken. */
static void ring_items(struct vs_obj *o)
{
	struct vs_item *it;

	for (it = o->items; it; it = it->of_obj)
		vs_item_heat(it);
}

void vs_events_notice(struct st_stream *s)
{
	struct vs_obj *o = st_context(s);

	if (o && o->kind == VS_SOCKET && atomic_load(&o->sock.stream) == s)
		ring_items(o);
}

int vs_events_take(struct st_wait *w)
{
	struct st_stream *taken[TAKEN];
	int i, n, all = 0;

	do {
		n = st_wait_take(w, taken, TAKEN);
		all += n;
		for (i = 0; i < n; i++) {
			vs_events_notice(taken[i]);
			st_put(taken[i]);
		}
	} while (n == TAKEN);
	return all;
}

void vs_events_follow(struct vs_epoll *ep)
{
	uint64_t changes = st_changes();
	struct vs_item *it;

	if (vs_likely(changes == ep->changes))
		return;
	ep->changes = changes;
	for (it = ep->items; it; it = it->of_ep) {
		if (!it->w || it->hot)
			continue;
		vs_item_heat(it);
		it->idle = looks_of(it) - 1;
	}
}

/* ---- what the kernel tells ---- */

/* Tells the kernel's event of a socket if it counts now, with those of the stream. */
static void kernel_event(struct vs_call *c, struct vs_item *it, uint32_t events)
{
	struct st_stream *s = vs_item_stream(it);
	struct vs_ready look;

	memset(&look, 0, sizeof(look));
	if (!s || st_on_tcp(s)) {
		if (it->off)
			return;
	} else {
		vs_ready_get(it->o, s, it->events & ~PRIVATE, &look);
		if ((events & (EPOLLERR | EPOLLHUP) & ~look.kernel) && !it->over) {
			it->over = true;
			vs_item_mask(it, false);
		}
		/* What is the kernel's is told with all that is ready; an end may be the stream's, and told before. */
		events &= look.kernel;
		events = it->off ? 0 : events ? events | look.events : fresh(it, &look);
		if (it->moving || look.kernel != it->kernel_seen) {
			it->kernel_seen = look.kernel;
			follow(it, s);
		}
		vs_item_heat(it);
	}
	if (events)
		tell(c, it, events, &look);
}

/* Sorts the kernel's `n` events, which lie where the call's next ones go.  How many were notices. */
int vs_events_sort(struct vs_call *c, int n)
{
	struct epoll_event *k = c->v + c->n;
	int i, notices = 0;

	for (i = 0; i < n; i++) {
		struct epoll_event e = k[i];
		bool ours;
		struct vs_item *it = vs_item_of(c->ep, e.data.u64, &ours);

		if (!ours) {
			c->v[c->n++] = e;
		} else if (it && !it->o) {
			if (it == c->ep->waker_item)
				vs_watch_woken(c->ep);
			else if (it != c->ep->rouser)
				vs_events_take(it->w);
			notices++;
		} else if (it) {
			kernel_event(c, it, e.events);
		}
	}
	return notices;
}

/* ---- before a sleep ---- */

bool vs_events_arm(struct vs_item *it, int depth, bool *brief)
{
	struct st_stream *s = vs_item_stream(it);
	struct vs_ready look;
	unsigned int ask;
	bool edge;

	if (it->off)
		return true;
	if (it->o->kind == VS_EPOLL) {
		struct vs_item *inner = it->o->epoll->items;

		it->o->epoll->outside = true;
		vs_watch_want(it->o->epoll);
		for (; inner && depth < NESTED_MAX; inner = inner->of_ep) {
			if (!vs_events_arm(inner, depth + 1, brief))
				return false;
		}
		return true;
	}
	if (!s || (!it->w && st_on_tcp(s)))
		return true;
	if (!st_on_tcp(s) && vs_watch_has(it) && atomic_load(&it->o->sock.error) == 0)
		return true;
	/* One that has left its VI since the last look, too: the kernel's set follows, and an error may be kept. */
	if (events_of(it, &look)) {
		vs_item_heat(it);
		return false;
	}
	if (vs_watch_give(it, &look)) {
		vs_item_cool(it);
		return true;
	}
	ask = vs_stream_events(it->events & ~PRIVATE);
	edge = (it->events & EPOLLET) &&
	       (look.events & ST_IN); /* bytes are there, so nobody rings for more */
	*brief |= edge;
	if (st_arm(s, ask & ~look.events) != 0) {
		if (events_of(it, &look)) {
			vs_item_heat(it);
			return false;
		}
		*brief = true;
	} else if (!it->moving && !edge) {
		vs_item_cool(it);
	}
	return true;
}
