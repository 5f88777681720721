/* SPDX-License-Identifier: BSD-2-Clause */
/* st_link.h - the VI of a stream: its memory, what is posted to it, what completes */
#ifndef ST_LINK_H
#define ST_LINK_H

#include "st_process.h"

/* Makes memory and VI, and posts the receives; the ring may get smaller than `ring_bytes`: 0, -ENOBUFS. */
int st_link_create(struct st_stream *s, uint32_t ring_bytes, VIP_CQ_HANDLE cq,
		   struct st_link **out);
/* The VI is disconnected; its descriptors are taken.  The ring stays. */
void st_link_cut(struct st_link *l);
void st_link_destroy(struct st_link *l); /* after st_link_cut() */

/*
 * Handles a completed descriptor that was taken from a queue of the VI, and lists the stream for st_wait_take(); under
 * the lock of its wait object.
 */
void st_link_entry(struct st_stream *s, struct st_link *l, VIP_DESCRIPTOR *d, bool recv);
/*
 * Takes completed receives, which moves packets; takes the wait object's lock.  Any thread that keeps the link alive.
 */
void st_link_progress(struct st_stream *s, struct st_link *l);

/* ---- under tx ------------------------------------------------------------------------------------------------ */

/* Takes completed sends; returns how many descriptors are free. */
unsigned st_link_reap(struct st_stream *s, struct st_link *l);
/* True: all sends that were posted are complete, and were taken by st_link_reap(). */
static inline bool st_link_settled(const struct st_link *l)
{
	return l->send_head == l->send_tail;
}

/* Posts a message: 0, -EAGAIN: no descriptor is free, -EPIPE: broken.  The calls below return likewise. */
int st_link_send(struct st_stream *s, struct st_link *l, const struct st_message *m);
/* Sends the other end the wake that it has armed for: kind ST_ARM_DATA or ST_ARM_ROOM. */
int st_link_wake(struct st_stream *s, struct st_link *l, unsigned kind);
/* Writes `bytes` of words into the peer's struct st_words at `at`. */
int st_link_word(struct st_stream *s, struct st_link *l, size_t at, const void *words,
		 uint32_t bytes);
/* Reads the own arm word of this kind back from the peer; when that has completed the peer is sure to see the arm. */
int st_link_read_back(struct st_stream *s, struct st_link *l, unsigned kind);

/*
 * Writes a record at tx.position, and moves that: up to ST_BOUNCE bytes, copied from iov at `skip`, for a slot, and
 * more where that slot and those after it are free.  Returns as st_link_send().
 */
int st_link_record(struct st_stream *s, struct st_link *l, enum st_record_kind kind,
		   const struct iovec *iov, size_t skip, uint32_t bytes);

/*
 * Records that leave from the program's memory itself.  st_link_lend() registers it for them: false where sends are
 * under way, the VI's writes are not stores, or it cannot be registered.  st_link_big() writes one, and returns when
 * its bytes are free again; else as st_link_send().
 */
bool st_link_lend(struct st_link *l, const void *from, uint32_t bytes, VIP_MEM_HANDLE *handle);
/* Ends what st_link_lend() began: takes the registration back. */
static inline void st_link_lent(const void *from, VIP_MEM_HANDLE handle)
{
	VipDeregisterMem(st_process.nic, (void *)(uintptr_t)from, handle);
}
int st_link_big(struct st_stream *s, struct st_link *l, const void *from, VIP_MEM_HANDLE handle,
		uint32_t bytes);

/* Looks at the arm words, and rings where the other end asked for it; after the writes that it is to tell of. */
void st_link_ring(struct st_stream *s, struct st_link *l, unsigned kind);

#endif
