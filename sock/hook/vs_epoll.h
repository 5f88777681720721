/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * epoll sets that have sockets of this library.
 *
 * The kernel's set holds every descriptor.  An entry of a socket that has an object carries the
 * address of an item instead of the program's data.  As long as the socket is on TCP the kernel tells
 * its events; when its bytes go over a VI the item is looked at here, and the kernel's set has the
 * descriptor of the completion queue instead.
 */
#ifndef VS_EPOLL_H
#define VS_EPOLL_H

#include <signal.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <time.h>

#include "st_stream.h"
#include "vs_obj.h"

/* After epoll_create(): gives the descriptor an object, if a connection of this process may be promoted. */
void vs_epoll_made(int fd);

/* As epoll_ctl(), of a set that has an object; EDEADLK where this thread is in the middle of another use of a set. */
int vs_epoll_ctl(struct vs_obj *set, int set_fd, int op, int fd, struct epoll_event *e);

/* As epoll_pwait2(), a NULL timeout: no end; EDEADLK where this thread is in the middle of another use of a set. */
int vs_epoll_wait(struct vs_obj *set, int set_fd, struct epoll_event *v, int max,
		  const struct timespec *timeout, const sigset_t *mask);

/* Whether the set has an event that the kernel does not know of; takes none.  False where vs_items_lock() gives it. */
bool vs_epoll_peek(struct vs_obj *set);
/*
 * Before a sleep on the set's descriptor: arms its streams, and notes for ever that threads sleep outside of it.
 * False: there is an event.  Sets *brief where a wake is not certain, so that sleeps have to be short: nobody rings
 * for some event, or vs_items_held() tells of this thread, and nothing is armed.
 */
bool vs_epoll_arm(struct vs_obj *set, bool *brief);

/*
 * Each of these but vs_epoll_unset() takes vs_items_lock(), and does nothing where that gives false.
 *
 * The wait object that a socket is to be promoted with: that of a set that holds it, made if need be and freed with the
 * set.  NULL: no set holds it, or no memory.
 */
struct st_wait *vs_epoll_wait_for(struct vs_obj *socket);
/* The socket may change its path from now on: its sets look at it. */
void vs_epoll_promoting(struct vs_obj *socket);
/* Takes the entries of a wait object: the sets that have its streams look at them. */
void vs_epoll_take(struct st_wait *w);
/* The socket has news of its own: its sets look at it. */
void vs_epoll_check(struct vs_obj *socket);
/*
 * The kernel's sets lose the sockets that programs have taken out of them, and that they have kept (vs_item_park()): a
 * socket, or all of a set.  Before a number of several is closed, and before another process gets the sets.
 */
void vs_epoll_unpark(struct vs_obj *o);
/* The last descriptor of the socket is closed: neither this library's sets nor the kernel's have it any longer. */
void vs_epoll_forget(struct vs_obj *socket);
/*
 * As vs_epoll_forget(), where vs_items_lock() gives false: the kernel's sets no longer have the socket.  The lists of
 * this library are left to vs_epoll_forget().
 */
void vs_epoll_unset(struct vs_obj *socket);

/* In a child of fork(): items are the parent's, and no thread sleeps in a set. */
void vs_epoll_forked(void);

#endif
