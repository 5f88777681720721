/* SPDX-License-Identifier: BSD-2-Clause */
/* Declarations that the units of the fault decorator share. */
#ifndef PORT_FAULT_PRIV_H
#define PORT_FAULT_PRIV_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "port.h"
#include "port_deco.h"
#include "port_fault_opt.h"
#include "u_base.h"
#include "u_lock.h"

struct fault_early;

struct fault {
	struct port port;
	struct fault_options opt;
	char *text; /* the options as given */
	uint64_t seed;
	_Atomic uint64_t random;
	_Atomic uint64_t stores; /* lines, or parts of one, stored so far */
	_Atomic uint32_t drop_next;
	_Atomic uint32_t changes;
	_Atomic bool down;
	_Atomic uint32_t ups; /* times that it came up again by itself; part of the generation */
	struct fault_early *early; /* NULL: opt.early_db is 0 */

	struct u_lock lock;    /* protects coming up, going down and all fields below */
	_Atomic int64_t up_at; /* when to come back; U_NEVER */
	bool enabled;	       /* whether the layers above enabled the link */
	int epoll_fd;	       /* all three descriptors are -1 until somebody asks for event_fd */
	int event_fd;
	int timer_fd;
};

/* An outbound map. */
struct fault_map {
	struct fault *fault;
	/*
	 * f->ups when the map was made: the map ends with that generation of the link, as an
	 * adapter's translation does
	 */
	uint32_t generation;
	struct port_map inner;
};

static inline struct fault *fault_of(struct port *p)
{
	return u_container_of(p, struct fault, port);
}

/* Returns true with this probability. */
static inline bool fault_chance(struct fault *f, double probability)
{
	return probability > 0 && (double)(deco_random(&f->random) >> 11) * 0x1p-53 < probability;
}

/* Is the link up, and that of the map?  It does not come up by this. */
static inline bool fault_passes(const struct fault_map *m)
{
	return !atomic_load_explicit(&m->fault->down, memory_order_acquire) &&
	       m->generation == atomic_load_explicit(&m->fault->ups, memory_order_relaxed);
}

/* ---- port_fault_link.c ---- */

/*
 * Takes the link down, unless it is down, until opt.down_ms are over; 0: until fault_up().  The port below goes down
 * too, so that the peer and this host's clients notice.  Takes the lock, as does fault_up().
 */
void fault_down(struct fault *f);
/*
 * Comes up, in a new generation, if it is down and due by `now`; U_NEVER: in any case.  The port below too, if
 * it was enabled.
 */
void fault_up(struct fault *f, int64_t now);
/* Is the link down?  It first comes up if that is due, for which it takes the lock. */
bool fault_is_down(struct fault *f);

/* Closes the event descriptors; fault_event_fd() opens them again. */
void fault_events_close(struct fault *f);

/*
 * Operations, which may take the lock.  While the decorator has the link down, it is enabled below only when it
 * comes up.
 */
int fault_link_enable(struct port *p);
void fault_link_disable(struct port *p);
enum port_link fault_link_state(struct port *p, uint32_t *generation_out);
int fault_event_fd(struct port *p);
int fault_service(struct port *p);

/* ---- port_fault_early.c: all but the first do nothing where early_db is 0 ---- */

/* Sets f->early, if early_db is not 0.  0 or -ENOMEM. */
int fault_early_open(struct fault *f);
/* Ends the thread.  Nothing is held any more: all maps have been unmapped. */
void fault_early_close(struct fault *f);
/* After a fence: draws, and stores may be held from now on. */
void fault_early_fence(struct fault *f);
/* Holds a store within one line back, or returns false: then the caller makes it. */
bool fault_early_hold(struct fault_map *m, void *dst, const void *src, size_t n);
/* Lands the stores that are held, at once. */
void fault_early_land(struct fault *f);

#endif
