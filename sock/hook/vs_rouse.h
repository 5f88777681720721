/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Wakes the threads that wait in an epoll set when another thread has changed the events that they wait for.
 *
 * Those of a set with promoted connections are registered sleepers (st_sleep_begin()).  Those of a quiet set are in the
 * kernel's call and are counted here: from vs_rouse() on, until all of them are back, the kernel's set has a descriptor
 * that is always readable.  So a thread that is counted and not yet in the call does not sleep there, and each that
 * leaves the call wakes the next.
 *
 * All functions but vs_rouse_forked() are called with vs_item_lock held.
 */
#ifndef VS_ROUSE_H
#define VS_ROUSE_H

#include "vs_item.h"

/* This thread is about to sleep in the kernel's call.  False: there is no memory to count it. */
bool vs_rouse_enter(struct vs_epoll *ep);
/* It is back, or has left such a call some time ago by siglongjmp(); does nothing if it was in none. */
void vs_rouse_leave(void);
/*
 * All threads that wait in the set look again; those of other sets too, if threads sleep outside of it.  errno stays.
 */
void vs_rouse(struct vs_epoll *ep);
/* The item is looked at from now on, and by threads that wait in its set at once. */
void vs_rouse_item(struct vs_item *it);

/* In a child of fork(), which has one thread. */
void vs_rouse_forked(void);

#endif
