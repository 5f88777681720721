/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages and their descriptors: the code between the two clock readings. */
#include "pf_move.h"
#include "pf_fail.h"
#include "pf_take.h"

int pf_reap(struct pf_ep *ep, uint32_t k, uint32_t left)
{
	struct pf_vi *vi = &ep->vis[k];
	VIP_DESCRIPTOR *d;
	int rc = vi->outstanding > left ? pf_flush(ep, k) : 0;

	while (!rc && vi->outstanding > left) {
		rc = pf_take(ep, k, PF_SENDQ, &d);
		vi->outstanding--;
	}
	return rc;
}

/* With one slot, as usual without --verify, the time includes no division. */
static size_t slot_offset(const struct pf_ep *ep, uint32_t slots, uint64_t m)
{
	if (slots == 1)
		return 0;
	return (ep->p.verify ? m : m / PF_RUN) % slots * ep->slot;
}

uint8_t *pf_send_slot(struct pf_ep *ep, uint32_t k, uint64_t m)
{
	return ep->vis[k].send_area + slot_offset(ep, ep->send_slots, m);
}

uint8_t *pf_recv_slot(struct pf_ep *ep, uint32_t k, uint64_t m)
{
	return ep->vis[k].recv_area + slot_offset(ep, ep->recv_slots, m);
}

const uint8_t *pf_recv_data(const VIP_DESCRIPTOR *d)
{
	return d->DS[0].Local.Data.Address;
}

/* Writes go to the peer's receive area, reads come from its send area: the layouts are equal. */
static uint64_t remote_address(struct pf_ep *ep, uint32_t k, uint64_t m)
{
	const uint8_t *here = ep->p.op == PF_READ ? pf_send_slot(ep, k, m) : pf_recv_slot(ep, k, m);

	return ep->peer_region + (uint64_t)(here - ep->region);
}

static uint8_t *local_address(struct pf_ep *ep, uint32_t k, uint64_t m)
{
	return ep->p.op == PF_READ ? pf_recv_slot(ep, k, m) : pf_send_slot(ep, k, m);
}

void pf_set_segments(struct pf_ep *ep, VIP_DESCRIPTOR_SEGMENT *s, uint8_t *base, uint32_t len)
{
	uint32_t n = ep->p.segments, i, part;

	for (i = 0; i < n; i++) {
		part = n == 1 ? len : len / n + (i < len % n);
		s[i].Local.Data.AddressBits = 0;
		s[i].Local.Data.Address = base;
		s[i].Local.Handle = ep->region_handle;
		s[i].Local.Length = part;
		base += part;
	}
}

/* Counts the descriptor as posted, which the caller is about to do. */
static int next_send(struct pf_ep *ep, uint32_t k, VIP_DESCRIPTOR **out)
{
	struct pf_vi *vi = &ep->vis[k];
	int rc = vi->outstanding < ep->send_cap ? 0 : pf_reap(ep, k, ep->send_cap - 1);

	if (rc)
		return rc;
	*out = (VIP_DESCRIPTOR *)(void *)(vi->descs + vi->next_send * ep->desc_size);
	vi->next_send = vi->next_send + 1 == ep->send_cap ? 0 : vi->next_send + 1;
	vi->outstanding++;
	return 0;
}

int pf_flush_queue(struct pf_ep *ep, struct pf_vi *vi, enum pf_queue q)
{
	struct pf_posts *p = &vi->posts[q];
	VIP_ULONG posted;
	VIP_RETURN rc;

	if (!p->count)
		return 0;
	rc = q == PF_RECVQ ? VipxPostRecvs(vi->handle, p->v, p->count, ep->descs_handle, &posted)
			   : VipxPostSends(vi->handle, p->v, p->count, ep->descs_handle, &posted);
	p->count = 0;
	return rc ? PF_VIP(ep, "posting descriptors", rc) : 0;
}

int pf_flush(struct pf_ep *ep, uint32_t k)
{
	int rc = pf_flush_queue(ep, &ep->vis[k], PF_RECVQ);

	return rc ? rc : pf_flush_queue(ep, &ep->vis[k], PF_SENDQ);
}

/* Posts the descriptor with others. */
static int post_later(struct pf_ep *ep, uint32_t k, enum pf_queue q, VIP_DESCRIPTOR *d)
{
	struct pf_posts *p = &ep->vis[k].posts[q];

	p->v[p->count++] = d;
	return p->count == ep->p.batch ? pf_flush_queue(ep, &ep->vis[k], q) : 0;
}

int pf_post_prepared(struct pf_ep *ep, uint32_t k, VIP_DESCRIPTOR *d)
{
	VIP_RETURN rc;

	if (pf_posts_many(ep))
		return post_later(ep, k, PF_SENDQ, d);
	rc = VipPostSend(ep->vis[k].handle, d, ep->descs_handle);

	return rc ? PF_VIP(ep, "posting a send", rc) : 0;
}

static const uint16_t control_of[PF_OP_COUNT] = {
	[PF_SEND] = VIP_CONTROL_OP_SENDRECV,
	[PF_WRITE] = VIP_CONTROL_OP_RDMAWRITE,
	[PF_WRITE_IMM] = VIP_CONTROL_OP_RDMAWRITE | VIP_CONTROL_IMMEDIATE,
	[PF_READ] = VIP_CONTROL_OP_RDMAREAD,
};

/* Was it posted before for such a message?  Then it is posted unchanged, as tuned programs do. */
static bool is_the_same(const struct pf_ep *ep, const VIP_DESCRIPTOR *d, uint32_t size,
			uint32_t first, const uint8_t *from)
{
	return !ep->p.verify && d->DS[first].Local.Data.Address == from && d->CS.Length == size &&
	       d->CS.Control == control_of[ep->p.op] && d->CS.SegCount == ep->p.segments + first;
}

int pf_prepare_message(struct pf_ep *ep, uint32_t k, uint64_t m, uint32_t size,
		       VIP_DESCRIPTOR **out)
{
	uint32_t first = ep->p.op == PF_SEND ? 0 : 1;
	uint8_t *local = local_address(ep, k, m);
	VIP_DESCRIPTOR *d;
	int rc = next_send(ep, k, &d);

	if (rc)
		return rc;
	*out = d;
	d->CS.Status = 0;
	d->CS.ImmediateData = (uint32_t)m;
	if (is_the_same(ep, d, size, first, local))
		return 0;
	d->CS.SegCount = (uint16_t)(ep->p.segments + first);
	d->CS.Control = control_of[ep->p.op];
	d->CS.Reserved = 0;
	d->CS.Length = size;
	if (first) {
		d->DS[0].Remote.Data.AddressBits = remote_address(ep, k, m);
		d->DS[0].Remote.Handle = ep->peer_handle;
		d->DS[0].Remote.Reserved = 0;
	}
	pf_set_segments(ep, &d->DS[0] + first, local, size);
	return 0;
}

int pf_post_message(struct pf_ep *ep, uint32_t k, uint64_t m, uint32_t size)
{
	VIP_DESCRIPTOR *d;
	int rc = pf_prepare_message(ep, k, m, size, &d);

	return rc ? rc : pf_post_prepared(ep, k, d);
}

int pf_post_mark(struct pf_ep *ep, uint32_t k, uint32_t immediate)
{
	VIP_DESCRIPTOR *d;
	int rc = next_send(ep, k, &d);

	if (rc)
		return rc;
	d->CS.SegCount = 0;
	d->CS.Reserved = 0;
	d->CS.Status = 0;
	d->CS.Control = VIP_CONTROL_OP_SENDRECV | VIP_CONTROL_IMMEDIATE;
	d->CS.ImmediateData = immediate;
	d->CS.Length = 0;
	return pf_post_prepared(ep, k, d);
}

int pf_repost(struct pf_ep *ep, uint32_t k, VIP_DESCRIPTOR *d)
{
	VIP_RETURN rc;

	d->CS.Control = VIP_CONTROL_OP_SENDRECV;
	d->CS.Reserved = 0;
	d->CS.Status = 0;
	d->CS.Length = d->CS.SegCount ? (uint32_t)ep->p.max_size : 0;
	if (pf_posts_many(ep))
		return post_later(ep, k, PF_RECVQ, d);
	rc = VipPostRecv(ep->vis[k].handle, d, ep->descs_handle);
	return rc ? PF_VIP(ep, "posting a receive", rc) : 0;
}

int pf_check(struct pf_ep *ep, const uint8_t *buf, uint32_t size, uint32_t k, uint64_t m)
{
	uint32_t at = pf_first_wrong(buf, size, k, m);

	if (at == size)
		return 0;
	ep->verify_errors++;
	return pf_fail(ep, "--verify: message %llu of VI %u, %u bytes, is wrong at byte %u",
		       (unsigned long long)m, k, size, at);
}
