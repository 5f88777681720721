// SPDX-License-Identifier: BSD-2-Clause
#include "vs_item.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "vs_late.h"
#include "vs_ready.h"
#include "vs_real.h"

#define ITEMS_MAX (1u << 20)
#define KEEP_TRIES 100

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
enum { FREE, ASKED, HELD };

/* From before this thread takes the lock until it has given it back. */
static __thread _Atomic int held __attribute__((tls_model("initial-exec")));
unsigned int vs_item_forks;

/* One range, so that an address tells whether it is an item's; pages come with their first use. */
static struct vs_item *pool, *free_items;
static uint32_t fresh;

bool vs_items_held(void)
{
	return atomic_load_explicit(&held, memory_order_relaxed) != FREE;
}

int vs_items_refuse(void)
{
	if (vs_likely(!vs_items_held()))
		return 0;
	errno = EDEADLK;
	return -1;
}

bool vs_items_lock(void)
{
	if (vs_unlikely(vs_items_held()))
		return false;
	atomic_store_explicit(&held, ASKED, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	pthread_mutex_lock(&lock);
	atomic_store_explicit(&held, HELD, memory_order_relaxed);
	return true;
}

void vs_items_unlock(void)
{
	atomic_store_explicit(&held, ASKED, memory_order_relaxed);
	pthread_mutex_unlock(&lock);
	atomic_signal_fence(memory_order_seq_cst);
	atomic_store_explicit(&held, FREE, memory_order_relaxed);
	vs_late_check();
}

/*
 * Another thread that has it gives it back soon; this one may have got it a moment ago, and then does not.  No longer
 * than a moment: the next signal may be there when this one's handler ends, before the thread gets on.
 */
bool vs_items_keep(bool *locked)
{
	int tries = KEEP_TRIES;

	*locked = false;
	if (atomic_load_explicit(&held, memory_order_relaxed) == HELD)
		return true;
	while (!*locked && tries-- > 0)
		*locked = pthread_mutex_trylock(&lock) == 0;
	return *locked;
}

void vs_items_unkeep(bool locked)
{
	if (locked)
		pthread_mutex_unlock(&lock);
}

void vs_items_forked(void)
{
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	vs_item_forks++;
}

struct vs_item *vs_item_create(struct vs_epoll *ep)
{
	struct vs_item *it = free_items;
	void *at;

	if (!pool) {
		at = mmap(NULL, ITEMS_MAX * sizeof(*pool), PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (at == MAP_FAILED)
			return NULL;
		pool = at;
	}
	if (it)
		free_items = it->of_obj;
	else if (fresh < ITEMS_MAX)
		it = &pool[fresh++];
	else
		return NULL;
	memset(it, 0, sizeof(*it));
	it->ep = ep;
	it->born = vs_item_forks;
	it->in_seen = it->out_seen = UINT64_MAX;
	return it;
}

struct vs_item *vs_item_of(const struct vs_epoll *ep, uint64_t data, bool *ours)
{
	uint64_t from = (uint64_t)(uintptr_t)pool;
	struct vs_item *it;

	*ours = pool && data >= from && data < from + (uint64_t)fresh * sizeof(*pool) &&
		(data - from) % sizeof(*pool) == 0;
	if (!*ours)
		return NULL;
	it = (struct vs_item *)(uintptr_t)data;
	return it->ep == ep ? it : NULL;
}

struct vs_item *vs_item_find(const struct vs_epoll *ep, const struct vs_obj *o, int fd)
{
	struct vs_item *it;

	for (it = o->items; it; it = it->of_obj) {
		if (it->ep == ep && it->fd == fd)
			return it;
	}
	return NULL;
}

/* ---- lists ---- */

void vs_item_link(struct vs_item *it, struct vs_obj *o)
{
	it->o = o;
	it->of_obj = o->items;
	atomic_signal_fence(memory_order_seq_cst); /* vs_epoll_unset() */
	o->items = it;
	it->of_ep = it->ep->items;
	it->ep->items = it;
}

/* Does nothing for an item of a wait object. */
static void unlink_obj(struct vs_item *it)
{
	struct vs_item **at;

	if (!it->o)
		return;
	for (at = &it->o->items; *at; at = &(*at)->of_obj) {
		if (*at == it) {
			*at = it->of_obj;
			return;
		}
	}
}

/* Takes it out of the list of items, or of wait objects if it is one's. */
static void unlink_ep(struct vs_item *it)
{
	struct vs_item **at = it->o ? &it->ep->items : &it->ep->waits;

	for (; *at; at = &(*at)->of_ep) {
		if (*at == it) {
			*at = it->of_ep;
			return;
		}
	}
}

void vs_item_heat(struct vs_item *it)
{
	struct vs_epoll *ep = it->ep;

	it->idle = 0;
	if (it->hot)
		return;
	it->hot = true;
	ep->hot++;
	it->next = NULL;
	it->prev = ep->last;
	if (ep->last)
		ep->last->next = it;
	else
		ep->first = it;
	ep->last = it;
}

void vs_item_cool(struct vs_item *it)
{
	struct vs_epoll *ep = it->ep;

	if (!it->hot)
		return;
	it->hot = false;
	ep->hot--;
	if (it->prev)
		it->prev->next = it->next;
	else
		ep->first = it->next;
	if (it->next)
		it->next->prev = it->prev;
	else
		ep->last = it->prev;
}

void vs_item_to_end(struct vs_item *it)
{
	if (!it->hot || !it->next)
		return;
	vs_item_cool(it);
	vs_item_heat(it);
}

void vs_item_destroy(struct vs_item *it)
{
	if (!it)
		return;
	vs_item_cool(it);
	st_watch_drop(it->watch);
	if (it->o && it->w)
		vs_item_use_wait(it, NULL);
	unlink_obj(it);
	atomic_signal_fence(memory_order_seq_cst);
	unlink_ep(it);
	it->ep = NULL;
	if (vs_item_is_parents(it))
		return;
	it->of_obj = free_items;
	free_items = it;
}

/* ---- the kernel's set ---- */

/* The events that the kernel's set has to be asked for: all on TCP, else those that the stream leaves to it. */
static uint32_t wanted(const struct vs_item *it)
{
	struct st_stream *s = vs_item_stream(it);
	uint32_t events;

	if (!s || st_on_tcp(s))
		return it->events;
	if (it->off)
		return EPOLLET;
	events = st_kernel_events(s, vs_stream_events(it->events)) | (it->events & EPOLLPRI);
	/* Without EPOLLET an entry that waits only for the end of the connection would be reported again and again. */
	if (it->over || !(events & (EPOLLIN | EPOLLPRI | EPOLLOUT)))
		return events | EPOLLET;
	return events | (it->events & EPOLLET);
}

bool vs_item_park(struct vs_item *it)
{
	struct st_stream *s = vs_item_stream(it);

	/* One of two descriptors may be closed, and its number be another file's in this set. */
	if (!s || st_on_vi(s) != (ST_IN | ST_OUT) || vs_item_is_parents(it) ||
	    ((it->events | it->kernel) & EPOLLEXCLUSIVE) || atomic_load(&it->o->fds) != 1)
		return false;
	st_watch_drop(it->watch);
	it->watch = NULL;
	vs_item_cool(it);
	it->parked = it->off = true;
	it->moving = it->left = false;
	it->events = EPOLLET;
	vs_item_mask(it, false);
	return true;
}

void vs_item_unpark(struct vs_item *it)
{
	if (!it->parked)
		return;
	vs_item_unset(it);
	vs_item_destroy(it);
}

void vs_item_unset(struct vs_item *it)
{
	int before = errno;

	if (!vs_item_is_parents(it))
		vs_real.epoll_ctl(it->ep->fd, EPOLL_CTL_DEL, it->fd, NULL);
	errno = before;
}

void vs_item_mask(struct vs_item *it, bool always)
{
	struct epoll_event e = { .events = wanted(it), .data.u64 = (uint64_t)(uintptr_t)it };
	int before = errno;

	if (e.events == it->kernel && !always)
		return;
	if ((it->kernel | e.events) & EPOLLEXCLUSIVE) { /* cannot be changed */
		vs_real.epoll_ctl(it->ep->fd, EPOLL_CTL_DEL, it->fd, NULL);
		vs_real.epoll_ctl(it->ep->fd, EPOLL_CTL_ADD, it->fd, &e);
	} else {
		vs_real.epoll_ctl(it->ep->fd, EPOLL_CTL_MOD, it->fd, &e);
	}
	it->kernel = e.events;
	errno = before;
}

/* The set's item of that wait object, made now if there is none; NULL: no memory. */
static struct vs_item *wait_item(struct vs_epoll *ep, struct st_wait *w)
{
	struct epoll_event e = { .events = EPOLLIN };
	struct vs_item *it;

	for (it = ep->waits; it; it = it->of_ep) {
		if (it->w == w)
			return it;
	}
	it = vs_item_create(ep);
	if (!it)
		return NULL;
	it->w = w;
	it->fd = st_wait_fd(w);
	it->of_ep = ep->waits;
	ep->waits = it;
	e.data.u64 = (uint64_t)(uintptr_t)it;
	vs_real.epoll_ctl(ep->fd, EPOLL_CTL_ADD, it->fd, &e);
	return it;
}

void vs_item_use_wait(struct vs_item *it, struct st_wait *w)
{
	int before = errno;
	struct vs_item *wi;

	if (it->w == w)
		return;
	wi = it->w ? wait_item(it->ep, it->w) : NULL;
	if (wi && wi->uses > 0 && --wi->uses == 0 && wi->w != it->ep->own) {
		vs_item_unset(wi);
		vs_item_destroy(wi);
	}
	it->w = w;
	wi = w ? wait_item(it->ep, w) : NULL;
	if (wi)
		wi->uses++;
	errno = before;
}
