/* SPDX-License-Identifier: BSD-2-Clause */
/* st_link.h - the VI of a stream: its memory, what completes */
#ifndef ST_LINK_H
#define ST_LINK_H

#include "st_process.h"

/* Makes memory and VI, and posts the receives; the ring may get smaller than `ring_bytes`: 0, -ENOBUFS. */
int st_link_create(struct st_stream *s, uint32_t ring_bytes, VIP_CQ_HANDLE cq,
		   struct st_link **out);
/*
 * Takes all descriptors of the VI, under rx, tx and the lock of its wait object.  The VI was disconnected before, since
 * that may wait; else this does so.  The ring stays.
 */
void st_link_cut(struct st_link *l);
/* Frees the VI and all its memory, after st_link_cut().  Accepts NULL. */
void st_link_destroy(struct st_link *l);

/*
 * Handles a completed descriptor that was taken from a queue of the VI, and lists the stream for st_wait_take(); under
 * the lock of its wait object.
 */
void st_link_entry(struct st_stream *s, struct st_link *l, VIP_DESCRIPTOR *d, bool recv);
/*
 * Takes completed receives, which moves packets; takes the wait object's lock, and does nothing in a handler that has
 * interrupted its holder.  Any thread that keeps the link alive.
 */
void st_link_progress(struct st_stream *s, struct st_link *l);

/* Marks the VI as broken; the first time it has the helper look at the stream at once. */
void st_link_broke(struct st_stream *s, struct st_link *l);

/* The other end has closed, and reads nothing more. */
static inline bool st_link_peer_closed(const struct st_link *l)
{
	return __atomic_load_n(&l->words->closed, __ATOMIC_ACQUIRE) != 0;
}

/* ---- under tx ------------------------------------------------------------------------------------------------ */

/* Takes completed sends; returns how many descriptors are free. */
unsigned st_link_reap(struct st_stream *s, struct st_link *l);
/* True: all sends that were posted are complete, and were taken by st_link_reap(). */
static inline bool st_link_settled(const struct st_link *l)
{
	return l->send_head == l->send_tail;
}

#endif
