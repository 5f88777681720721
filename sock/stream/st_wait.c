/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "st_wait.h"

#define ENTRIES 16

/*
 * What has references that handlers gave back while their threads had the process lock, in the middle of a change:
 * the next st_put() gives them back.
 */
static _Atomic(struct st_deferred *) deferred;

static void push(struct st_deferred *d)
{
	d->next = atomic_load(&deferred);
	while (!atomic_compare_exchange_weak(&deferred, &d->next, d))
		;
}

/* In a handler: leaves this reference, of the stream or the wait object, to a later st_put(). */
static void defer(struct st_deferred *d, struct st_stream *s, struct st_wait *w)
{
	if (atomic_fetch_add(&d->count, 1) != 0)
		return; /* it is in the list */
	d->stream = s;
	d->wait = w;
	push(d);
}

/* Gives back what handlers have deferred. */
static void give_back_deferred(void)
{
	struct st_deferred *d = atomic_exchange(&deferred, NULL), *next;

	for (; d != NULL; d = next) {
		struct st_stream *s = d->stream;
		struct st_wait *w = d->wait;

		next = d->next;
		for (int n = atomic_exchange(&d->count, 0); n > 0; n--) {
			if (s != NULL)
				st_put(s);
			else
				st_wait_put(w);
		}
	}
}

void st_deferred_renew(void)
{
	atomic_store(&deferred, NULL);
	for (struct st_stream *s = st_process.all; s != NULL; s = s->next_all)
		if (atomic_load(&s->deferred.count) != 0)
			push(&s->deferred);
	for (struct st_wait *w = st_process.waits; w != NULL; w = w->next)
		if (atomic_load(&w->deferred.count) != 0)
			push(&w->deferred);
}

int st_wait_new(struct st_wait **out)
{
	struct st_wait *w = calloc(1, sizeof(*w));

	if (w == NULL)
		return -ENOMEM;
	atomic_store(&w->refs, 1);
	w->cq_fd = w->epoll_fd = -1;
	if (st_lock(&st_process.lock) != 0) {
		free(w);
		return -EDEADLK;
	}
	w->era = st_process.era;
	w->next = st_process.waits;
	w->prev = &st_process.waits;
	if (w->next != NULL)
		w->next->prev = &w->next;
	st_process.waits = w;
	st_unlock(&st_process.lock);
	*out = w;
	return 0;
}

/* Makes the descriptor that a wait object has before it has a queue: 0, -errno. */
static int make_epoll(struct st_wait *w)
{
	int fd = st_sys_epoll(st_low_fd());

	if (fd < 0)
		return fd;
	w->epoll_fd = fd;
	return 0;
}

int st_wait_create(struct st_wait **out)
{
	struct st_wait *w;
	int rc = st_wait_new(&w);

	if (rc != 0)
		return rc;
	rc = make_epoll(w);
	if (rc != 0)
		st_wait_put(w);
	else
		*out = w;
	return rc;
}

void st_wait_get(struct st_wait *w)
{
	atomic_fetch_add(&w->refs, 1);
}

void st_wait_put(struct st_wait *w)
{
	if (w == NULL)
		return;
	if (st_unlikely(st_lock_is_mine(&st_process.lock))) {
		defer(&w->deferred, NULL, w);
		return;
	}
	if (atomic_fetch_sub(&w->refs, 1) != 1)
		return;
	st_lock(&st_process.lock);
	*w->prev = w->next;
	if (w->next != NULL)
		w->next->prev = w->prev;
	st_unlock(&st_process.lock);
	if (w->cq != NULL)
		VipDestroyCQ(w->cq);
	if (w->epoll_fd >= 0)
		st_sys_close(w->epoll_fd);
	free(w);
}

/* The stream has no VI any more: as long as it has one the helper has a reference. */
void st_put(struct st_stream *s)
{
	if (st_unlikely(st_lock_is_mine(&st_process.lock))) {
		defer(&s->deferred, s, NULL);
		return;
	}
	if (st_unlikely(atomic_load_explicit(&deferred, memory_order_relaxed) != NULL))
		give_back_deferred();
	if (atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1)
		return;
	st_lock(&st_process.lock);
	*s->prev_all = s->next_all;
	if (s->next_all != NULL)
		s->next_all->prev_all = s->prev_all;
	st_count(&st_counts.vi_sent, s->tx.moved);
	st_count(&st_counts.vi_received, s->rx.moved);
	st_unlock(&st_process.lock);
	st_wait_put(s->wait);
	free(s->rx.stash);
	free(s->tx.held);
	free(s);
}

void st_wait_destroy(struct st_wait *w)
{
	st_wait_put(w);
}

int st_wait_open(struct st_wait *w)
{
	VIP_CQ_HANDLE cq;
	int fd;

	if (w->cq != NULL)
		return 0;
	if (VipCreateCQ(st_process.nic, st_process.nic_attributes.MaxCQEntries, &cq) != VIP_SUCCESS)
		return -ENOBUFS;
	if (VipxCQFd(cq, &fd) != VIP_SUCCESS ||
	    (w->epoll_fd >= 0 && st_sys_epoll_add(w->epoll_fd, fd) != 0)) {
		VipDestroyCQ(cq);
		return -ENOBUFS;
	}
	st_lock(&w->lock);
	w->cq_fd = fd;
	w->cq = cq;
	st_unlock(&w->lock);
	return 0;
}

void st_wait_forget(struct st_wait *w, struct st_stream *s)
{
	struct st_stream **at = &w->told;

	while (*at != NULL && *at != s)
		at = &(*at)->next_listed;
	if (*at == NULL)
		return;
	*at = s->next_listed;
	s->listed = false;
	st_put(s);
}

void st_wait_renew(struct st_wait *w)
{
	bool had_epoll = w->epoll_fd >= 0;

	memset(&w->lock, 0, sizeof(w->lock));
	/* The queue is the parent's, and so are the streams in the list. */
	w->cq = NULL;
	w->cq_fd = -1;
	w->told = NULL;
	w->era = st_process.era;
	if (!had_epoll)
		return;
	st_sys_close(w->epoll_fd);
	w->epoll_fd = -1;
	make_epoll(w);
}

int st_wait_fd(struct st_wait *w)
{
	return w->epoll_fd >= 0 ? w->epoll_fd : w->cq_fd;
}

struct st_wait *st_wait_of(struct st_stream *s)
{
	struct st_wait *w = s->wait;

	return w != NULL && st_wait_fd(w) >= 0 ? w : NULL;
}

int st_wait_entries(struct st_wait *w)
{
	VIPX_COMPLETION all[ENTRIES];
	VIP_ULONG n;
	int taken = 0;

	if (w->cq == NULL)
		return 0;
	do {
		all[0].Size = sizeof(all[0]);
		n = 0;
		VipxCQTake(w->cq, all, ENTRIES, &n);
		for (VIP_ULONG i = 0; i < n; i++) {
			struct st_stream *s = all[i].Context;

			if (s == NULL || s->link == NULL)
				continue;
			st_link_entry(s, s->link, all[i].DescriptorPtr, all[i].RecvQueue);
		}
		taken += (int)n;
	} while (n == ENTRIES);
	return taken;
}

int st_wait_arm(struct st_wait *w)
{
	int taken;

	if (st_lock(&w->lock) != 0)
		return -EDEADLK;
	if (w->cq != NULL)
		VipxCQArm(w->cq);
	taken = st_wait_entries(w);
	st_unlock(&w->lock);
	return taken > 0;
}

int st_wait_take(struct st_wait *w, struct st_stream **streams, int max)
{
	int n = 0;

	if (st_lock(&w->lock) != 0)
		return 0;
	st_wait_entries(w);
	while (n < max && w->told != NULL) {
		struct st_stream *s = w->told;

		w->told = s->next_listed;
		s->listed = false;
		streams[n++] = s; /* with the list's reference */
	}
	st_unlock(&w->lock);
	return n;
}
