/* SPDX-License-Identifier: BSD-2-Clause */
/* Streams of messages that are all alike: nothing but the calls, as a tuned program makes them. */
#include "pf_calls.h"
#include "pf_fail.h"
#include "pf_move.h"
#include "pf_take.h"

bool pf_posts_unchanged(const struct pf_ep *ep)
{
	return ep->p.kind != PF_LAT && ep->p.op == PF_SEND && !ep->p.verify && !ep->p.bidir &&
	       ep->p.buffers == 1;
}

void pf_prepare_all(struct pf_ep *ep, uint32_t size)
{
	uint32_t i, k;

	for (k = 0; k < ep->vi_count; k++) {
		for (i = 0; i < ep->send_cap; i++) {
			VIP_DESCRIPTOR *d = ep->vis[k].sends[i];

			d->CS.SegCount = (uint16_t)ep->p.segments;
			d->CS.Control = VIP_CONTROL_OP_SENDRECV;
			d->CS.Reserved = 0;
			d->CS.Length = size;
			pf_set_segments(ep, d->DS, pf_send_slot(ep, k, 0), size);
		}
	}
}

static uint32_t most_taken(const struct pf_ep *ep, const struct pf_stash *s)
{
	return ep->p.batch < s->room ? ep->p.batch : s->room;
}

static void advance(struct pf_ep *ep, struct pf_vi *vi, uint32_t n)
{
	vi->next_send += n;
	if (vi->next_send >= ep->send_cap)
		vi->next_send -= ep->send_cap;
	vi->outstanding += n;
}

static int post_by_call(struct pf_ep *ep, struct pf_vi *vi, uint32_t n)
{
	struct pf_stash *s = &vi->stash[PF_SENDQ];
	VIP_DESCRIPTOR **v;
	VIP_ULONG posted;
	VIP_RETURN rc;
	uint32_t i;
	int err;

	while (vi->outstanding + n > ep->send_cap) {
		err = pf_poll_many(ep, vi, PF_SENDQ, most_taken(ep, s));
		if (err)
			return err;
		vi->outstanding -= s->count;
		s->count = 0;
	}
	v = vi->sends + vi->next_send;
	for (i = 0; i < n; i++)
		v[i]->CS.Status = 0;
	advance(ep, vi, n);
	rc = VipxPostSends(vi->handle, v, n, ep->descs_handle, &posted);
	return rc ? PF_VIP(ep, "posting descriptors", rc) : 0;
}

static int post_one(struct pf_ep *ep, uint32_t k)
{
	struct pf_vi *vi = &ep->vis[k];
	VIP_DESCRIPTOR *d;
	VIP_RETURN rc;
	int err;

	if (vi->outstanding == ep->send_cap) {
		err = pf_take_fast(ep, k, PF_SENDQ, &d);
		if (err)
			return err;
		vi->outstanding--;
	}
	d = vi->sends[vi->next_send];
	d->CS.Status = 0;
	advance(ep, vi, 1);
	rc = VipPostSend(vi->handle, d, ep->descs_handle);
	return rc ? PF_VIP(ep, "posting a send", rc) : 0;
}

int pf_post_again(struct pf_ep *ep, uint32_t k, uint32_t n)
{
	int rc = 0;

	if (pf_posts_many(ep))
		return post_by_call(ep, &ep->vis[k], n);
	while (!rc && n--)
		rc = post_one(ep, k);
	return rc;
}

static int check_length(struct pf_ep *ep, const struct pf_vi *vi, uint32_t length, uint32_t size)
{
	if (length == size)
		return 0;
	return pf_fail(ep, "a message of VI %u has %u bytes, %u were sent",
		       (uint32_t)(vi - ep->vis), length, size);
}

static void make_ready(const struct pf_ep *ep, VIP_DESCRIPTOR *d)
{
	d->CS.Control = VIP_CONTROL_OP_SENDRECV;
	d->CS.Status = 0;
	d->CS.Length = (uint32_t)ep->p.max_size;
}

static int receive_by_call(struct pf_ep *ep, struct pf_vi *vi, uint32_t most, uint32_t size,
			   uint32_t *count_out)
{
	struct pf_stash *s = &vi->stash[PF_RECVQ];
	struct pf_posts *p = &vi->posts[PF_RECVQ];
	uint32_t i, n;
	int rc = pf_poll_many(ep, vi, PF_RECVQ, most);

	n = s->count < most ? s->count : most;
	for (i = 0; !rc && i < n; i++) {
		p->v[i] = pf_take_from_stash(s);
		rc = check_length(ep, vi, p->v[i]->CS.Length, size);
		make_ready(ep, p->v[i]);
	}
	if (rc)
		return rc;
	*count_out = p->count = n;
	return pf_flush_queue(ep, vi, PF_RECVQ);
}

static int receive_taken(struct pf_ep *ep, const VIPX_COMPLETION *c, uint32_t size)
{
	struct pf_vi *vi = c->Context;
	struct pf_posts *p = &vi->posts[PF_RECVQ];
	int rc;

	if (!c->RecvQueue || (c->Status & VIP_STATUS_ERROR_MASK))
		return pf_stash_taken(ep, c);
	rc = check_length(ep, vi, c->Length, size);
	if (rc)
		return rc;
	make_ready(ep, c->DescriptorPtr);
	p->v[p->count++] = c->DescriptorPtr;
	vi->came++;
	return p->count == ep->p.batch ? pf_flush_queue(ep, vi, PF_RECVQ) : 0;
}

static int receive_of_cq(struct pf_ep *ep, struct pf_vi *vi, uint32_t most, uint32_t size,
			 uint32_t *count_out)
{
	uint32_t i, n = 0;
	int rc = 0;

	while (!rc && !vi->came) {
		rc = pf_poll_cq_many(ep, &n);
		for (i = 0; !rc && i < n; i++)
			rc = receive_taken(ep, &ep->taken[i], size);
	}
	*count_out = vi->came < most ? vi->came : most;
	vi->came -= *count_out;
	return rc;
}

static int receive_one(struct pf_ep *ep, uint32_t k, uint32_t size)
{
	struct pf_vi *vi = &ep->vis[k];
	VIP_DESCRIPTOR *d;
	VIP_RETURN rc;
	int err = pf_take_fast(ep, k, PF_RECVQ, &d);

	if (!err)
		err = check_length(ep, vi, d->CS.Length, size);
	if (err)
		return err;
	make_ready(ep, d);
	rc = VipPostRecv(vi->handle, d, ep->descs_handle);
	return rc ? PF_VIP(ep, "posting a receive", rc) : 0;
}

int pf_receive_again(struct pf_ep *ep, uint32_t k, uint32_t most, uint32_t size,
		     uint32_t *count_out)
{
	uint32_t n;
	int rc = 0;

	if (pf_posts_many(ep))
		return (ep->cq ? receive_of_cq : receive_by_call)(ep, &ep->vis[k], most, size,
								  count_out);
	for (n = 0; !rc && n < most; n += !rc)
		rc = receive_one(ep, k, size);
	*count_out = n;
	return rc;
}
