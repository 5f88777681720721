/* SPDX-License-Identifier: BSD-2-Clause */
/* Declarations that the units of the model share. */
#ifndef PORT_MODEL_PRIV_H
#define PORT_MODEL_PRIV_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "port.h"
#include "port_model_time.h"
#include "u_base.h"
#include "u_out.h"

#define MODEL_ITEMS 256u /* under way from one process over one port; a power of two */

enum model_kind { MODEL_STORE, MODEL_SPAD, MODEL_RING };

struct model_item {
	int64_t due;
	enum model_kind kind;
	const struct u_out *out; /* STORE */
	uint8_t *dst;
	bool combined;
	uint32_t n;    /* STORE: bytes; RING: bits; SPAD: index */
	uint32_t word; /* SPAD */
	uint8_t data[MODEL_PIECE];
};

/* Items in the order of arrival.  Both counts only grow. */
struct model_fifo {
	struct model_item *items;
	uint64_t pushed;
	uint64_t landed;
};

enum model_queue { MODEL_STORES, MODEL_RINGS, MODEL_QUEUES };

struct model {
	struct port port;
	struct model_time time;
	bool self;
	int fd; /* of `link`; -1 in a client */
	struct model_link *link;

	pthread_mutex_t lock; /* protects all below */
	pthread_cond_t work;
	pthread_cond_t landed;
	struct model_fifo fifo[MODEL_QUEUES];
	bool combining; /* a store may still join the last one */
	pthread_t thread;
	bool started;
	bool stop;
};

static inline struct model *model_of(struct port *p)
{
	return u_container_of(p, struct model, port);
}

/* ---- port_model_clock.c: the time of the calling thread ---- */

/*
 * Returns the nanoseconds of the clock by which a thread may run ahead of its time, so that it does
 * not sleep often; stores land late by at most that.
 */
int64_t model_grain(const struct model_time *t);
/*
 * Makes the calling thread busy until `at` (CLOCK_MONOTONIC): it may sleep or spin.  It returns early, at most
 * model_grain() ahead of that.
 */
void model_wait_until(const struct model_time *t, int64_t at);
/*
 * Returns when work of the calling thread ends that begins now and takes `busy` nanoseconds of the
 * clock.  Does not wait.  A sleep that ended late because the machine was busy does not count as
 * work.
 */
int64_t model_work_until(const struct model_time *t, int64_t busy);
/* Makes the calling thread busy for `ns` of the profile: it may sleep or spin. */
void model_spend(const struct model_time *t, int64_t ns);
/* Returns the time until which the calling thread is busy; in the past when it is idle. */
int64_t model_busy(void);

/* ---- port_model_queue.c: stores and rings under way.  Called with the lock held ---- */

static inline struct model_item *model_item_at(struct model_fifo *f, uint64_t n)
{
	return &f->items[n % MODEL_ITEMS];
}

/*
 * Returns the free item at the end of a queue, which is queued by model_commit(); waits for one, and drops the
 * lock, which the caller holds, while it waits.  NULL when this process cannot have a thread: the store is
 * lost, as on a link that fails.
 */
struct model_item *model_claim(struct model *m, enum model_queue q);
/*
 * Queues the item that model_claim() gave, while the caller still holds the lock.  The thread sleeps until the
 * first item is due.
 */
void model_commit(struct model *m, enum model_queue q);
/* Waits until all that was queued before has landed, and drops the lock, which the caller holds, while it waits. */
void model_drain(struct model *m);

/* ---- port_model_store.c: operations ---- */

/* Passes inbound maps and those of `self` on; stores into any other land later. */
int model_map(struct port *p, int fd, size_t len, enum port_dir dir, struct port_map *out);
/* For a map that was not passed on, waits until all stores of the port have landed. */
void model_unmap(struct port *p, struct port_map *map);

#endif
