/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Items that pollers look at, so that neither the program looks nor the other end rings.  All functions are
 * called with vs_item_lock held.
 */
#ifndef VS_WATCH_H
#define VS_WATCH_H

#include "vs_item.h"
#include "vs_ready.h"

/* A poller looks at the item. */
bool vs_watch_has(const struct vs_item *it);
/* Gives an item that has nothing to tell, by `look`, to a poller.  False: it cannot be given. */
bool vs_watch_give(struct vs_item *it, const struct vs_ready *look);
/* Takes it back from the poller, if one has it, as something else is asked for; it is not looked at by that. */
void vs_watch_drop(struct vs_item *it);

/* Items that have come back are looked at, also those of other sets.  How many. */
int vs_watch_take(void);

/* To be called before a sleep, and vs_watch_take() once more after this call. */
void vs_watch_want(struct vs_epoll *ep);
/* The kernel's set tells that the waker's descriptor is readable. */
void vs_watch_woken(struct vs_epoll *ep);
/* Gives the set's waker back; does nothing if it has none. */
void vs_watch_end(struct vs_epoll *ep);

#endif
