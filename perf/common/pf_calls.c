/* SPDX-License-Identifier: BSD-2-Clause */
/* --batch: the messages of a whole call at a time. */
#include "pf_ep.h"

bool pf_posts_whole_calls(const struct pf_ep *ep)
{
	return pf_posts_many(ep) && ep->p.op == PF_SEND && !ep->p.verify && !ep->p.bidir &&
	       ep->p.buffers == 1;
}

/* The next `n` send descriptors of VI k, prepared before for such messages, in p->v. */
static int next_sends(struct pf_ep *ep, uint32_t k, uint64_t m, uint32_t n, uint32_t size)
{
	struct pf_posts *p = &ep->vis[k].posts[PF_SENDQ];
	VIP_DESCRIPTOR *d;
	int rc = 0;

	for (p->count = 0; !rc && p->count < n; p->count += !rc) {
		rc = pf_prepare_message(ep, k, m, size, &d);
		p->v[p->count] = d;
	}
	return rc;
}

int pf_post_call(struct pf_ep *ep, uint32_t k, uint64_t m, uint32_t n, uint32_t size)
{
	struct pf_vi *vi = &ep->vis[k];
	VIP_ULONG done = 0;
	int rc = 0;

	while (vi->outstanding + n > ep->send_cap) {
		rc = pf_poll_many(ep, vi, PF_SENDQ,
				  ep->p.batch < vi->stash[PF_SENDQ].room
					  ? ep->p.batch
					  : vi->stash[PF_SENDQ].room);
		if (rc)
			return rc;
		done = vi->stash[PF_SENDQ].count;
		vi->stash[PF_SENDQ].count = 0;
		vi->outstanding -= (uint32_t)done;
	}
	rc = next_sends(ep, k, m, n, size);
	return rc ? rc : pf_flush_queue(ep, vi, PF_SENDQ);
}

int pf_receive_call(struct pf_ep *ep, uint32_t k, uint32_t most, uint32_t size, uint32_t *count_out)
{
	struct pf_vi *vi = &ep->vis[k];
	struct pf_stash *s = &vi->stash[PF_RECVQ];
	struct pf_posts *p = &vi->posts[PF_RECVQ];
	uint32_t i, length = (uint32_t)ep->p.max_size;
	int rc = pf_poll_many(ep, vi, PF_RECVQ, most);

	if (rc)
		return rc;
	for (i = 0; i < s->count; i++) {
		VIP_DESCRIPTOR *d = s->v[i];

		if (d->CS.Length != size)
			return pf_fail(ep, "a message of VI %u has %u bytes, %u were sent", k,
				       d->CS.Length, size);
		d->CS.Control = VIP_CONTROL_OP_SENDRECV;
		d->CS.Status = 0;
		d->CS.Length = length;
		p->v[i] = d;
	}
	*count_out = p->count = s->count;
	s->count = 0;
	return pf_flush_queue(ep, vi, PF_RECVQ);
}
