/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The receiver's side of placed messages (nvi_place.c).  The receive that message n will take is advertised in the
 * peer's slice if its memory is one piece of a window that the peer may be granted.  The first W_ADVERTS receives of
 * the queue are considered, each once: when it is posted, when messages before it have been received, or when the
 * connection is made or resumed.
 *
 * The first message takes the first receive, and so on, so the message of a receive is known from the post on, with
 * two exceptions.  A message that found no receive was dropped: then the queue is empty, and nothing was advertised.
 * A write with immediate data is counted with its first slot and takes its receive with the last: between these
 * nothing is advertised.
 *
 * An advert is never taken back.  When a right ends, the grant is taken back, and a receive whose memory was
 * deregistered is checked, as any other, when its message comes.
 */
#include "nvi_advert.h"
#include "vi_sg.h"
#include "vi_wq_hot.h"

void nvi_adverts_begin(struct nvi_chan *ch)
{
	ch->rx.returned = ch->rx.others = 0;
	if (++ch->rx.connection == 0)
		ch->rx.connection = 1;
	nvi_adverts_again(ch);
}

void nvi_adverts_again(struct nvi_chan *ch)
{
	ch->rx.advertised = 0;
	nvi_advertise(ch);
}

/*
 * Is the receive plain, one segment of VI_LONG_RECV bytes or more, and may the peer write into its memory?
 * *handle_out counts only with true.
 */
static bool may_advertise(const struct nvi_chan *ch, const struct vi_wqe *wqe, uint32_t *handle_out)
{
	const struct vi_vi *vi = ch->vi;
	uint32_t handle;

	if (wqe->at == NULL || wqe->segs != 1 || wqe->at_len < VI_LONG_RECV ||
	    !vi_wqe_there(&vi->rq, wqe))
		return false;
	handle = __atomic_load_n(&wqe->desc->DS[0].Local.Handle, __ATOMIC_RELAXED);
	*handle_out = handle;
	return vi_tpt_check(vi->nic, vi->ptag, (uintptr_t)wqe->at, wqe->at_len, handle,
			    VI_WRITE | VI_REMOTE_WRITE | VI_WINDOW) != NULL;
}

/*
 * Writes the advert of the receive for message n, and marks the receive as advertised; does nothing if it cannot be
 * advertised.  The caller passes a fence after the last advert.
 */
static void advertise(struct nvi_chan *ch, struct vi_wqe *wqe, uint64_t n)
{
	struct w_advert *a = &ch->out_ctl->adverts[n % W_ADVERTS];
	uint32_t handle;

	if (!may_advertise(ch, wqe, &handle))
		return;
	wqe->first = ch->rx.connection;
	wqe->mark = (uint32_t)n;
	u_out_store64(&ch->out, &a->addr, (uintptr_t)wqe->at);
	u_out_store32(&ch->out, &a->handle, handle);
	u_out_store32(&ch->out, &a->length, wqe->at_len);
	u_out_fence(&ch->out);
	/* A: pairs with find_receive() in nvi_place.c at the peer. */
	u_out_store64(&ch->out, &a->tag, w_advert_tag(n));
}

void nvi_advertise(struct nvi_chan *ch)
{
	uint64_t first = nvi_next_message(ch), n = first, end;
	struct vi_wq *rq = &ch->vi->rq;
	uint32_t count = rq->tail - rq->next;

	ch->rx.adverts_due = false;
	/* No relay can store there, and no peer will while there is no path. */
	if (!ch->vi->rdma_write || ch->hops > 1 || ch->placeholder_mem != NULL)
		return;
	if (ch->rx.stream.op == W_OP_WRITE && ch->rx.stream.imm != 0) {
		ch->rx.adverts_due = true;
		return;
	}
	end = first + (count < W_ADVERTS ? count : W_ADVERTS);
	ch->rx.adverts_due = count > W_ADVERTS;
	if (n < ch->rx.advertised)
		n = ch->rx.advertised;
	if (n >= end)
		return;
	for (; n != end; n++)
		advertise(ch, vi_wqe(rq, rq->next + (uint32_t)(n - first)), n);
	ch->rx.advertised = end;
	u_out_fence(&ch->out);
}

void nvi_recv_posted(struct vi_vi *vi)
{
	if (vi_state(vi) == VIP_STATE_CONNECTED)
		nvi_advertise(vi->chan);
}

bool nvi_was_advertised(struct nvi_chan *ch)
{
	struct vi_wq *rq = &ch->vi->rq;
	const struct vi_wqe *wqe = vi_wqe(rq, rq->next);

	return rq->next != rq->tail && wqe->at != NULL && wqe->first == ch->rx.connection &&
	       wqe->mark == (uint32_t)nvi_next_message(ch);
}
