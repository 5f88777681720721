/* SPDX-License-Identifier: BSD-2-Clause */
/* Waiting, and taking what is complete: the code between the two clock readings. */
#include <errno.h>
#include <sched.h>
#include <time.h>

#include "pf_fail.h"
#include "pf_take.h"

/* Empty polls before the first yield, and between later yields. */
#define POLLS_BEFORE_YIELD 32u
#define POLLS_PER_YIELD 4u
#define POLLS_PER_PROGRESS 64u
#define POLLS_PER_CHECK 1024u
#define BLOCK_MS 100u

typedef VIP_RETURN (*done_fn)(VIP_VI_HANDLE, VIP_DESCRIPTOR **);
typedef VIP_RETURN (*wait_fn)(VIP_VI_HANDLE, VIP_ULONG, VIP_DESCRIPTOR **);

int64_t pf_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

int pf_silent(struct pf_ep *ep)
{
	return pf_fail(ep,
		       "nothing from the peer for %.1f s: it is dead, stuck, or a message was "
		       "lost; --timeout allows more",
		       ep->p.timeout_ms / 1000.0);
}

static int out_of_time(struct pf_ep *ep, struct pf_idle *idle)
{
	int64_t now = pf_now();

	if (!idle->deadline)
		idle->deadline = now + (int64_t)ep->p.timeout_ms * 1000000;
	if (now < idle->deadline)
		return 0;
	return pf_silent(ep);
}

static int check_for_loss(struct pf_ep *ep)
{
	int lost = atomic_load(&ep->lost);

	if (!lost || atomic_load(&ep->closing))
		return 0;
	if (lost == VIP_ERROR_CONN_LOST + 1)
		return pf_lost(ep, "");
	return pf_fail(ep, "the NIC reported error %d (VIP_ERROR_CODE)", lost - 1);
}

int pf_idle(struct pf_ep *ep, struct pf_idle *idle)
{
	uint32_t n = ++idle->empty;

	if (n % POLLS_PER_PROGRESS == 0)
		VipxProgress(ep->nic);
	if (!ep->p.spin && n >= POLLS_BEFORE_YIELD && n % POLLS_PER_YIELD == 0)
		sched_yield();
	if (n % POLLS_PER_CHECK)
		return 0;
	return check_for_loss(ep) ? -EIO : out_of_time(ep, idle);
}

static int bad_completion(struct pf_ep *ep, const VIP_DESCRIPTOR *d)
{
	char text[160] = "";

	if (!d)
		return pf_fail(ep, "a work queue is empty that should not be");
	VipxStatusString(d->CS.Status, text, sizeof(text));
	if (d->CS.Status & (VIP_STATUS_DESC_FLUSHED_ERROR | VIP_STATUS_TRANSPORT_ERROR))
		return pf_lost(ep, text);
	return pf_fail(ep, "a descriptor completed with %.160s", text);
}

int pf_poll_on(struct pf_ep *ep, struct pf_vi *vi, enum pf_queue q, VIP_RETURN rc,
	       VIP_DESCRIPTOR **out)
{
	done_fn done = q == PF_RECVQ ? VipRecvDone : VipSendDone;
	struct pf_idle idle = { 0 };
	int err;

	while (rc != VIP_SUCCESS) {
		if (rc != VIP_NOT_DONE)
			return rc == VIP_DESCRIPTOR_ERROR ? bad_completion(ep, *out)
							  : PF_VIP(ep, "polling a VI", rc);
		err = pf_idle(ep, &idle);
		if (err)
			return err;
		rc = done(vi->handle, out);
	}
	return 0;
}

static int poll_queue(struct pf_ep *ep, struct pf_vi *vi, enum pf_queue q, VIP_DESCRIPTOR **out)
{
	VIP_RETURN rc = q == PF_RECVQ ? VipRecvDone(vi->handle, out) : VipSendDone(vi->handle, out);

	return pf_poll_on(ep, vi, q, rc, out);
}

static int block_queue(struct pf_ep *ep, struct pf_vi *vi, enum pf_queue q, VIP_DESCRIPTOR **out)
{
	wait_fn wait = q == PF_RECVQ ? VipRecvWait : VipSendWait;
	struct pf_idle idle = { 0 };
	VIP_RETURN rc;

	for (;;) {
		rc = wait(vi->handle, BLOCK_MS, out);
		if (rc == VIP_SUCCESS)
			return 0;
		if (rc != VIP_TIMEOUT)
			return rc == VIP_DESCRIPTOR_ERROR ? bad_completion(ep, *out)
							  : PF_VIP(ep, "waiting for a VI", rc);
		if (check_for_loss(ep) || out_of_time(ep, &idle))
			return -EIO;
	}
}

/* Notes a completed descriptor of the queue for a later pf_take(). */
static int stash(struct pf_ep *ep, struct pf_stash *s, VIP_DESCRIPTOR *d)
{
	if (s->count == s->room)
		return pf_fail(ep, "more completions than descriptors");
	s->v[pf_stash_place(s, s->head + s->count++)] = d;
	return 0;
}

int pf_stash_taken(struct pf_ep *ep, const VIPX_COMPLETION *c)
{
	struct pf_vi *vi = c->Context;

	if (c->Status & VIP_STATUS_ERROR_MASK)
		return bad_completion(ep, c->DescriptorPtr);
	return stash(ep, &vi->stash[c->RecvQueue ? PF_RECVQ : PF_SENDQ], c->DescriptorPtr);
}

int pf_poll_cq_many(struct pf_ep *ep, uint32_t *count_out)
{
	struct pf_idle idle = { 0 };
	VIP_RETURN rc;
	VIP_ULONG n;
	int err;

	for (;;) {
		ep->taken[0].Size = sizeof(ep->taken[0]);
		rc = VipxCQTake(ep->cq, ep->taken, ep->p.batch, &n);
		if (rc == VIP_SUCCESS) {
			*count_out = (uint32_t)n;
			return 0;
		}
		if (rc != VIP_NOT_DONE)
			return PF_VIP(ep, "taking of the completion queue", rc);
		err = pf_idle(ep, &idle);
		if (err)
			return err;
	}
}

/* Takes many completions of the VIs at a time, until one is of `want`. */
static int stash_until(struct pf_ep *ep, const struct pf_stash *want)
{
	uint32_t i, n = 0;
	int rc = 0;

	while (!rc && !want->count) {
		rc = pf_poll_cq_many(ep, &n);
		for (i = 0; !rc && i < n; i++)
			rc = pf_stash_taken(ep, &ep->taken[i]);
	}
	return rc;
}

int pf_poll_many(struct pf_ep *ep, struct pf_vi *vi, enum pf_queue q, uint32_t most)
{
	struct pf_stash *s = &vi->stash[q];
	struct pf_idle idle = { 0 };
	VIP_ULONG n;
	VIP_RETURN rc;
	int err;

	if (ep->cq)
		return stash_until(ep, s);
	for (;;) {
		rc = q == PF_RECVQ ? VipxRecvsDone(vi->handle, s->v, most, &n)
				   : VipxSendsDone(vi->handle, s->v, most, &n);
		if (rc == VIP_SUCCESS) {
			s->head = 0;
			s->count = (uint32_t)n;
			return 0;
		}
		if (rc != VIP_NOT_DONE)
			return rc == VIP_DESCRIPTOR_ERROR ? bad_completion(ep, s->v[n - 1])
							  : PF_VIP(ep, "polling a VI", rc);
		err = pf_idle(ep, &idle);
		if (err)
			return err;
	}
}

struct pf_vi **pf_place_of_handle(const struct pf_ep *ep, VIP_VI_HANDLE handle)
{
	/* Handles that were given one after the other differ in their low bits. */
	uint32_t i = (uint32_t)(uintptr_t)handle & ep->by_handle_mask;

	while (ep->by_handle[i] && ep->by_handle[i]->handle != handle)
		i = (i + 1) & ep->by_handle_mask;
	return &ep->by_handle[i];
}

/* Reaps the descriptor of a completion queue entry, and stores it unless it is of `want`. */
static int take_named(struct pf_ep *ep, VIP_VI_HANDLE handle, VIP_BOOLEAN recv,
		      struct pf_stash *want, VIP_DESCRIPTOR **out)
{
	struct pf_vi *vi = *pf_place_of_handle(ep, handle);
	struct pf_stash *s;
	VIP_DESCRIPTOR *d;
	VIP_RETURN rc;

	if (!vi)
		return pf_fail(ep, "the completion queue named an unknown VI");
	rc = recv ? VipRecvDone(handle, &d) : VipSendDone(handle, &d);
	if (rc == VIP_DESCRIPTOR_ERROR)
		return bad_completion(ep, d);
	if (rc)
		return PF_VIP(ep, "taking what the completion queue named", rc);
	s = &vi->stash[recv ? PF_RECVQ : PF_SENDQ];
	if (s == want) {
		*out = d;
		return 0;
	}
	return stash(ep, s, d);
}

/* One entry of the completion queue, or one empty poll.  *out is set if the entry is of `want`. */
static int step_cq(struct pf_ep *ep, struct pf_idle *idle, struct pf_stash *want,
		   VIP_DESCRIPTOR **out)
{
	VIP_VI_HANDLE vi;
	VIP_BOOLEAN recv;
	VIP_RETURN rc;

	rc = ep->p.wait == PF_BLOCK ? VipCQWait(ep->cq, BLOCK_MS, &vi, &recv)
				    : VipCQDone(ep->cq, &vi, &recv);
	if (rc == VIP_SUCCESS)
		return take_named(ep, vi, recv, want, out);
	if (rc == VIP_NOT_DONE)
		return pf_idle(ep, idle);
	if (rc == VIP_TIMEOUT)
		return check_for_loss(ep) ? -EIO : out_of_time(ep, idle);
	return PF_VIP(ep, "reading the completion queue", rc);
}

static int take_from_cq(struct pf_ep *ep, struct pf_stash *s, VIP_DESCRIPTOR **out)
{
	struct pf_idle idle = { 0 };
	int rc;

	*out = pf_take_from_stash(s);
	if (*out)
		return 0;
	do
		rc = step_cq(ep, &idle, s, out);
	while (!rc && !*out);
	return rc;
}

int pf_take(struct pf_ep *ep, uint32_t k, enum pf_queue q, VIP_DESCRIPTOR **out)
{
	struct pf_vi *vi = &ep->vis[k];
	int rc = 0;

	if (pf_posts_many(ep)) {
		if (!vi->stash[q].count)
			rc = pf_poll_many(ep, vi, q,
					  ep->p.batch < vi->stash[q].room ? ep->p.batch
									  : vi->stash[q].room);
		*out = pf_take_from_stash(&vi->stash[q]);
		return rc;
	}
	if (ep->cq)
		return take_from_cq(ep, &vi->stash[q], out);
	if (ep->p.wait == PF_BLOCK)
		return block_queue(ep, vi, q, out);
	return poll_queue(ep, vi, q, out);
}
