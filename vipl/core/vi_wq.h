/* SPDX-License-Identifier: BSD-2-Clause */
/* Work queues: descriptors that were posted, and the order in which they complete. */
#ifndef VI_WQ_H
#define VI_WQ_H

#include <stdbool.h>
#include <stdint.h>

#include "vi_objects.h"
#include "vipl.h"

/* Returns the VIP_STATUS_OP_ bits of an entry's own operation. */
uint32_t vi_wqe_op(const struct vi_wq *wq, const struct vi_wqe *wqe);

/* Makes an empty queue without a CQ.  0 or -ENOMEM.  Caller holds the queue's lock. */
int vi_wq_init(struct vi_wq *wq, struct vi_vi *vi, bool is_recv);
/* Frees the entries and the handlers; the queue is empty, and stays with its CQ.  Caller holds the lock. */
void vi_wq_fini(struct vi_wq *wq);

/*
 * Completes entry n (done <= n < tail) with `status` (VIP_STATUS_DONE is added) and `length`.
 * `status` carries the VIP_STATUS_OP_ bits too, and on a receive VIP_STATUS_IMMEDIATE if
 * wqe->imm holds the peer's data.  Entries complete towards the consumer
 * strictly in order: the descriptors of the leading run of complete entries get, on
 * receives, their Length and ImmediateData and then, last and with release order,
 * their Status; then `done` moves, the CQ learns of them and notify handlers are
 * queued.  A descriptor whose memory is no longer registered is not written, and
 * VIP_ERROR_COMP_PROT is raised.  An entry that is complete already stays as it is.
 * Caller holds the lock.  No other function decides the order of completion.
 */
void vi_wq_complete(struct vi_wq *wq, uint32_t n, uint32_t status, uint32_t length);

/*
 * Completes every entry that is not complete with `status`, to which the entry's OP
 * bits are added; `next` moves to tail.  Caller holds the lock.
 */
void vi_wq_flush(struct vi_wq *wq, uint32_t status);
/* As vi_wq_flush() for entries that the provider has not started. */
void vi_wq_flush_new(struct vi_wq *wq, uint32_t status);

/*
 * Doubles the array; pointers to entries are no longer valid.  -ENOBUFS: VI_MAX_DESCRIPTORS are queued; -ENOMEM.
 * Caller holds the lock.
 */
int vi_wq_grow(struct vi_wq *wq);

/* Empties the caches of regions: from now on they hold what the table says at `version`. */
void vi_wq_forget_regions(struct vi_wq *wq, uint64_t version);

/* The fields of a descriptor that were read and checked before it is queued. */
struct vi_checked {
	uint64_t tpt_version;
	uint8_t *at;	 /* as in struct vi_wqe */
	uint32_t at_len; /* 0 without `at` */
	uint32_t length, imm;
	uint16_t control, segs;
};

/*
 * Pushes a plain receive that is longer than its registered memory: it ends where the region does, as bytes that do
 * not come need no memory.  If none of it is registered, the check of a message that comes fails.  Returns as
 * vi_wq_push().  Caller holds the lock.
 */
int vi_wq_push_short(struct vi_wq *wq, VIP_DESCRIPTOR *desc, uint32_t handle,
		     const struct vi_checked *checked);

/* Tells those that wait for this queue, or for its CQ; `awaited`, their number, is not 0.  Caller holds the lock. */
void vi_wq_announce_to(struct vi_wq *wq, uint32_t awaited);

#endif
