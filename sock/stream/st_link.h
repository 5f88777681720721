/* SPDX-License-Identifier: BSD-2-Clause */
/* st_link.h - the VI of a stream: its memory, what is posted to it, what completes */
#ifndef ST_LINK_H
#define ST_LINK_H

#include "st_process.h"

/* Memory, VI and receives; 0, -ENOBUFS. */
int st_link_create(struct st_stream *s, uint32_t ring_bytes, VIP_CQ_HANDLE cq,
		   struct st_link **out);
/* The VI is disconnected; its descriptors are taken.  The ring stays. */
void st_link_cut(struct st_link *l);
void st_link_destroy(struct st_link *l); /* after st_link_cut() */

/* A completed descriptor that was taken from a queue of the VI. */
void st_link_entry(struct st_stream *s, struct st_link *l, VIP_DESCRIPTOR *d, bool recv);
/* Takes what is complete, moves packets; any thread that keeps the link alive. */
void st_link_progress(struct st_stream *s, struct st_link *l);

/* ---- under tx ------------------------------------------------------------------------------------------------ */

/* Takes completed sends; descriptors that are free. */
unsigned st_link_reap(struct st_stream *s, struct st_link *l);
static inline bool st_link_settled(const struct st_link *l)
{
	return l->send_head == l->send_tail;
}

/* 0, -EAGAIN: no descriptor is free, -EPIPE: broken. */
int st_link_send(struct st_stream *s, struct st_link *l, const struct st_message *m);
int st_link_wake(struct st_stream *s, struct st_link *l, unsigned kind);
/* Writes `bytes` of words into the peer's struct st_words at `at`. */
int st_link_word(struct st_stream *s, struct st_link *l, size_t at, const void *words,
		 uint32_t bytes);
int st_link_read_back(struct st_stream *s, struct st_link *l, unsigned kind);

/*
 * Writes a record at tx.position, which copies from iov at `skip`: up to ST_BOUNCE bytes for a
 * slot, and more where that slot and those after it are free.
 */
int st_link_record(struct st_stream *s, struct st_link *l, enum st_record_kind kind,
		   const struct iovec *iov, size_t skip, uint32_t bytes);

/*
 * Records that leave from the program's memory itself.  st_link_lend() registers it for them: false where the VI's
 * writes are not stores.  st_link_big() writes one, and returns when its bytes are free again.
 */
bool st_link_lend(struct st_link *l, const void *from, uint32_t bytes, VIP_MEM_HANDLE *handle);
static inline void st_link_lent(const void *from, VIP_MEM_HANDLE handle)
{
	VipDeregisterMem(st_process.nic, (void *)(uintptr_t)from, handle);
}
int st_link_big(struct st_stream *s, struct st_link *l, const void *from, VIP_MEM_HANDLE handle,
		uint32_t bytes);

/* Looks at the arm words, and rings where the other end asked for it; after the writes that it is to tell of. */
void st_link_ring(struct st_stream *s, struct st_link *l, unsigned kind);

#endif
