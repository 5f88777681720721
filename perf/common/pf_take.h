/* SPDX-License-Identifier: BSD-2-Clause */
/* Taking descriptors, with bounded waits. */
#ifndef PF_TAKE_H
#define PF_TAKE_H

#include <stdint.h>

#include <vipl.h>
#include <vipl_ext.h>

#include "pf_state.h"

/* pf_fail() for a silence longer than the time allowed. */
int pf_silent(struct pf_ep *ep);

/*
 * Takes the next completed descriptor of a queue of VI k, waiting as configured.  Returns 0 or
 * -errno with the cause noted; a completion with an error is an error.
 */
int pf_take(struct pf_ep *ep, uint32_t k, enum pf_queue q, VIP_DESCRIPTOR **out);

/* Waits for 1 to --batch completions of the completion queue, which go to ep->taken. */
int pf_poll_cq_many(struct pf_ep *ep, uint32_t *count_out);
/* Puts one of them into the stash of its queue. */
int pf_stash_taken(struct pf_ep *ep, const VIPX_COMPLETION *c);
/*
 * As pf_take() for up to `most` descriptors, which go to the stash of the queue; that is empty.  With --cq, up to
 * --batch completions go to the stashes of their queues at a time, until this one has any; it may have some before.
 */
int pf_poll_many(struct pf_ep *ep, struct pf_vi *vi, enum pf_queue q, uint32_t most);
/*
 * What follows on a poll of the queue that returned `rc`: 0 with a descriptor in *out, maybe after more
 * polls, or -errno with the cause noted.
 */
int pf_poll_on(struct pf_ep *ep, struct pf_vi *vi, enum pf_queue q, VIP_RETURN rc,
	       VIP_DESCRIPTOR **out);
/* As pf_take(), with as little as can be before the call that finds a descriptor. */
static inline int pf_take_fast(struct pf_ep *ep, uint32_t k, enum pf_queue q, VIP_DESCRIPTOR **out)
{
	struct pf_vi *vi = &ep->vis[k];
	VIP_RETURN rc;

	if (ep->cq || ep->p.wait == PF_BLOCK)
		return pf_take(ep, k, q, out);
	rc = q == PF_RECVQ ? VipRecvDone(vi->handle, out) : VipSendDone(vi->handle, out);
	return rc == VIP_SUCCESS ? 0 : pf_poll_on(ep, vi, q, rc, out);
}

/* The place of the VI of a handle in by_handle; NULL is there if it is none of the VIs. */
struct pf_vi **pf_place_of_handle(const struct pf_ep *ep, VIP_VI_HANDLE handle);

/* State of a bounded wait; all zero to begin with. */
struct pf_idle {
	uint32_t empty;
	int64_t deadline;
};

/* After an empty poll: pauses, yields, makes progress, checks for loss and the deadline. */
int pf_idle(struct pf_ep *ep, struct pf_idle *idle);

int64_t pf_now(void);

#endif
