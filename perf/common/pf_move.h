/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages of an end point: filling, posting and checking them. */
#ifndef PF_MOVE_H
#define PF_MOVE_H

#include <stdint.h>

#include <vipl.h>

#include "pf_state.h"

/*
 * Posts message m of VI k, `size` bytes from its slot, as the configured operation; takes a
 * completion first when all send descriptors are in use.
 */
int pf_post_message(struct pf_ep *ep, uint32_t k, uint64_t m, uint32_t size);
/* pf_post_message() in two steps, so that the second can be timed by itself. */
int pf_prepare_message(struct pf_ep *ep, uint32_t k, uint64_t m, uint32_t size,
		       VIP_DESCRIPTOR **out);
int pf_post_prepared(struct pf_ep *ep, uint32_t k, VIP_DESCRIPTOR *d);
/* Posts an empty send with immediate data. */
int pf_post_mark(struct pf_ep *ep, uint32_t k, uint32_t immediate);
/* Posts a reaped receive descriptor again. */
int pf_repost(struct pf_ep *ep, uint32_t k, VIP_DESCRIPTOR *d);
/*
 * Posts what is still to be posted on VI k.  With --batch the functions above post only when there are
 * enough descriptors for a call.
 */
int pf_flush(struct pf_ep *ep, uint32_t k);
int pf_flush_queue(struct pf_ep *ep, struct pf_vi *vi, enum pf_queue q);
/* Takes completions of sends until at most `left` are outstanding on VI k. */
int pf_reap(struct pf_ep *ep, uint32_t k, uint32_t left);

/* Splits `len` bytes at `base`, in the region, over the configured number of segments. */
void pf_set_segments(struct pf_ep *ep, VIP_DESCRIPTOR_SEGMENT *s, uint8_t *base, uint32_t len);

/* The address of message m of VI k. */
uint8_t *pf_send_slot(struct pf_ep *ep, uint32_t k, uint64_t m);
uint8_t *pf_recv_slot(struct pf_ep *ep, uint32_t k, uint64_t m);
/* The address of the data of a reaped receive descriptor. */
const uint8_t *pf_recv_data(const VIP_DESCRIPTOR *d);

/* Is this the content of message m of VI k?  0, or -EIO with the cause noted and counted. */
int pf_check(struct pf_ep *ep, const uint8_t *buf, uint32_t size, uint32_t k, uint64_t m);

#endif
