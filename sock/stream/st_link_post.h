/* SPDX-License-Identifier: BSD-2-Clause */
/* st_link_post.h - what a stream posts to its VI; all calls are made under tx */
#ifndef ST_LINK_POST_H
#define ST_LINK_POST_H

#include "st_process.h"

/* Posts a message: 0, -EAGAIN: no descriptor is free, -EPIPE: broken.  The calls below return likewise. */
int st_link_send(struct st_stream *s, struct st_link *l, const struct st_message *m);
/* Sends the other end the wake that it has armed for: kind ST_ARM_DATA or ST_ARM_ROOM. */
int st_link_wake(struct st_stream *s, struct st_link *l, unsigned kind);
/* Writes `bytes` of words into the peer's struct st_words at `at`, once its greeting has come, as for those below. */
int st_link_word(struct st_stream *s, struct st_link *l, size_t at, const void *words,
		 uint32_t bytes);
/* Reads the own arm word of this kind back from the peer; when that has completed the peer is sure to see the arm. */
int st_link_read_back(struct st_stream *s, struct st_link *l, unsigned kind);

/*
 * Writes a record at tx.position, and moves that: up to ST_BOUNCE bytes, copied from iov at `skip`, for a slot, and
 * more where that slot and those after it are free.  The caller has seen to room in the ring, and rings afterwards.
 * Returns as st_link_send().
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

/*
 * Looks at the arm word of this kind, and rings where the other end asked for it; after the writes that it is to tell
 * of.  Where no descriptor is free the helper rings later.
 */
void st_link_ring(struct st_stream *s, struct st_link *l, unsigned kind);

#endif
