/* SPDX-License-Identifier: BSD-2-Clause */
/* Events of the items of an epoll set.  All functions are called with vs_item_lock held. */
#ifndef VS_EVENTS_H
#define VS_EVENTS_H

#include "vs_item.h"

/* One call of epoll_wait(). */
struct vs_call {
	struct vs_epoll *ep;
	struct epoll_event *v;
	int max, n;
	uint64_t turn;
	bool spins;	/* it looks again at once, so that nothing is armed */
	uint64_t since; /* CLOCK_MONOTONIC, ns: when it first did so in place of arming; 0: not yet */
};

/* Adds the events of the items that are looked at, as long as there is room; one that long has none is left. */
void vs_events_check(struct vs_call *c);
/* Whether there are any, also in sets that this one holds; `depth` of nesting, from 1. */
bool vs_events_peek(struct vs_epoll *ep, int depth);
/* Adds the kernel's `n` events, which lie where the call's next ones go.  How many were notices. */
int vs_events_sort(struct vs_call *c, int n);

/* An entry of a completion queue concerned the stream: it is looked at. */
void vs_events_notice(struct st_stream *s);
/* Takes all entries of a wait object, whose streams are looked at from now on.  How many. */
int vs_events_take(struct st_wait *w);
/* If something has changed that no entry tells, all items are looked at once more. */
void vs_events_follow(struct vs_epoll *ep);

/* Arms an item, or those of a set.  False: it has an event to tell.  *brief becomes true if nobody rings for some. */
bool vs_events_arm(struct vs_item *it, int depth, bool *brief);

#endif
