/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of an epoll set: items, the list of those that are looked at, and wait objects. */
#ifndef VS_ITEM_H
#define VS_ITEM_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "st_stream.h"
#include "vs_obj.h"

struct vs_item {
	struct vs_epoll *ep; /* NULL: free */
	struct vs_obj *o;    /* the socket or set; NULL: a wait object's item */
	struct st_wait *w; /* of a wait object's item; for a socket's, the one whose item it uses */
	unsigned int uses; /* of a wait object's item: the items that use it */
	struct vs_item *of_obj;	     /* the next of this object; in a free item, the next free */
	struct vs_item *of_ep;	     /* the next of this set */
	struct vs_item *prev, *next; /* in the list of those that are looked at */
	bool hot;		     /* it is in that list */
	bool moving;		     /* its path may change, so that it stays there */
	bool off;		     /* EPOLLONESHOT, and told */
	bool over;		     /* the kernel's socket has ended, and the stream not */
	bool parked;		     /* the program has taken it out, see vs_item_park() */
	int fd;
	uint32_t events; /* asked for */
	uint64_t data;
	uint32_t kernel;     /* asked of the kernel's set */
	uint32_t idle;	     /* looks since something was found, */
	uint32_t looks;	     /* and how many before it is armed; 0: the least */
	uint64_t armed_turn; /* the call that armed it, until it has an event; 0: none */
	unsigned int kernel_seen, level_seen;
	uint64_t in_seen, out_seen; /* edges that were told */
	uint64_t turn;		    /* the call that told something last, and the entry in it */
	int at;
	unsigned int born;	/* vs_item_forks then */
	struct st_watch *watch; /* a poller looks at the stream */
	bool left;		/* by the poller, armed: until something was told */
};

struct vs_epoll {
	int fd;
	struct st_wait *own;
	struct vs_item *items, *waits; /* by of_ep */
	struct vs_item *first, *last;  /* those that are looked at, */
	_Atomic uint32_t hot;	       /* so many; written under the lock */
	uint64_t turns;		       /* calls */
	uint64_t changes;	       /* st_changes(), when all items were last looked at */
	struct st_waker *waker;	       /* of a poller, and the item of its descriptor */
	struct vs_item *waker_item;
	struct vs_item *rouser; /* vs_rouse.h: in the kernel's set when `roused`, */
	bool roused;
	unsigned int quiet; /* threads in the kernel's call, see vs_rouse.h */
	bool outside;	    /* threads sleep on the set's descriptor in poll(), or in another set */
};

/* The stream of a socket's item; NULL: it has none, or the item is a set's or a wait object's. */
static inline struct st_stream *vs_item_stream(const struct vs_item *it)
{
	if (!it->o || it->o->kind != VS_SOCKET)
		return NULL;
	return atomic_load_explicit(&it->o->sock.stream, memory_order_acquire);
}

/*
 * Takes the lock of all sets, items and lists; held for looks, never for a sleep.  False: this thread has it, or is
 * about to, as a signal handler has interrupted it there.
 */
bool vs_items_lock(void);
/* Gives the lock back, and then ends the objects whose ends had to wait (vs_late.h). */
void vs_items_unlock(void);
/* True: this thread has the lock, or is about to take it or has just given it back. */
bool vs_items_held(void);
/* For a signal handler that has interrupted another use of a set: -1 and EDEADLK; otherwise 0. */
int vs_items_refuse(void);
/* Where vs_items_lock() gives false: true, the lists stay as they are until vs_items_unkeep(). */
bool vs_items_keep(bool *locked);
void vs_items_unkeep(bool locked);
/* In a child of fork(): the lock is free, and all items are the parent's. */
void vs_items_forked(void);

/* How many calls of fork() lie between this process and the one that loaded the library. */
extern unsigned int vs_item_forks;

/*
 * A child of fork() has copies of its parent's items, but there is one set in the kernel for both: its entries are the
 * parent's.
 */
static inline bool vs_item_is_parents(const struct vs_item *it)
{
	return it->born != vs_item_forks;
}

/*
 * All functions from here on are called with the lock held.
 *
 * An item in no list, with all fields 0 but ep, born and the edges, of which none was told; NULL: no memory, or there
 * are 1 Mi items.
 */
struct vs_item *vs_item_create(struct vs_epoll *ep);
/*
 * Out of all lists, and free; the kernel's set loses the descriptor only by vs_item_unset() before.  A parent's is not
 * used again, as the kernel's set may still name it.  Accepts NULL.
 */
void vs_item_destroy(struct vs_item *it);
/* The item that the kernel's data names; NULL: none of this set any more, or with *ours false the program's data. */
struct vs_item *vs_item_of(const struct vs_epoll *ep, uint64_t data, bool *ours);
/* The item of that object and descriptor in the set, also a parked one, or NULL. */
struct vs_item *vs_item_find(const struct vs_epoll *ep, const struct vs_obj *o, int fd);

/* Sets the object, and puts an item that is in no list into those of the object and of its set; it is not looked at. */
void vs_item_link(struct vs_item *it, struct vs_obj *o);
/* Has the item looked at, at the end of its set's list if it is not in that yet; sleepers wake by vs_rouse() only. */
void vs_item_heat(struct vs_item *it);
/* The item is looked at no more; does nothing if it was not. */
void vs_item_cool(struct vs_item *it);
/* Moves an item that is looked at to the end of the list; does nothing to others. */
void vs_item_to_end(struct vs_item *it);

/*
 * The program takes a descriptor out of its set, and will often add it again, as some event loops do for each message.
 * Where both directions are on a VI the kernel's set may keep it, asked for nothing: true, the item is parked.  It is
 * not looked at and has no event until the program adds the descriptor again, for which no system call is needed then.
 * False: the kernel's set has to lose it.
 */
bool vs_item_park(struct vs_item *it);
/* Ends a parked item for good: neither the kernel's set nor this library has it then.  Does nothing to others. */
void vs_item_unpark(struct vs_item *it);

/* Takes the descriptor out of the kernel's set, unless that is the parent's to do. */
void vs_item_unset(struct vs_item *it);
/* Makes the kernel's set ask for the events that it has to tell now; `always`: even if it seems to do so. */
void vs_item_mask(struct vs_item *it, bool always);
/* Has the kernel's set hold the descriptor of the stream's wait object, NULL: none, and drops the one used before. */
void vs_item_use_wait(struct vs_item *it, struct st_wait *w);

#endif
