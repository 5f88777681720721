/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An answer to a read goes through the payload buffer, from which the reader copies it.  If the reader wants the
 * bytes in one piece of a window, its request names that (struct w_offer), and an answering end that holds a grant of
 * that memory stores the bytes there instead; then it publishes one slot, without payload, that announces them.  An
 * offer gives no right: the right is the grant.
 *
 * Order: bytes that are stored now arrive before those of earlier slots that the reader has not consumed.  Sends go
 * to receives, so their bytes do not matter.  But a write, or the answer to an earlier read, may touch any memory, so
 * an answer is placed only after the last slot with bytes of these has been consumed.  The reader's credit says how
 * much it has consumed, and its request may say it sooner: it has the count of slots that were consumed when it was
 * made.  A reader that gives too high a count harms only its own memory.
 *
 * Other threads want the lock, so a long answer is stored in pieces, with the rights checked for each.  None of its
 * slots is published before its last byte is stored: until then it can begin again, through slots.
 *
 * When a path is lost, the rule of placed messages (nvi_place.c) holds, and an answer that was begun on it begins
 * again.
 */
#include <errno.h>

#include "nvi_answer.h"
#include "nvi_credit.h"
#include "nvi_place.h"
#include "nvi_publish.h"
#include "nvi_store.h"
#include "u_trace.h"
#include "vi_wq_hot.h"

#define PIECE (1u << 20)

/* ---- the end that reads ----------------------------------------------------------------------- */

bool nvi_offer_read(const struct nvi_chan *ch, const struct vi_wqe *wqe, struct w_offer *offer)
{
	const struct vi_vi *vi = ch->vi;
	uint32_t handle;

	if (wqe->length < NVI_PLACE_READ_MIN || wqe->at == NULL || !vi->rdma_write ||
	    ch->hops > 1 || !vi_wqe_there(&vi->sq, wqe))
		return false;
	/* The descriptor is plain: it has an address segment and one data segment. */
	handle = __atomic_load_n(&wqe->desc->DS[1].Local.Handle, __ATOMIC_RELAXED);
	if (vi_tpt_check(vi->nic, vi->ptag, (uintptr_t)wqe->at, wqe->length, handle,
			 VI_WRITE | VI_REMOTE_WRITE | VI_WINDOW) == NULL)
		return false;
	offer->addr = (uintptr_t)wqe->at;
	offer->handle = handle;
	/* R: pairs with slot_consumed() in nvi_rx.c: the bytes of these slots are in their places. */
	offer->consumed = atomic_load_explicit(&ch->rx.seq, memory_order_acquire);
	return true;
}

/* ---- the end that answers --------------------------------------------------------------------- */

/* Has the reader consumed every slot whose bytes the answer must not overtake?  Takes in credit if need be. */
static bool in_order(struct nvi_chan *ch, uint32_t consumed)
{
	return ch->tx.acked >= ch->tx.bytes_end ||
	       (int32_t)(consumed - (uint32_t)ch->tx.bytes_end) >= 0 ||
	       (nvi_tx_credit(ch) > 0 && ch->tx.acked >= ch->tx.bytes_end);
}

enum nvi_write_method nvi_answer_method(struct nvi_chan *ch, const struct nvi_answer *answer)
{
	const struct w_offer *offer = &answer->offer;
	const VIP_ADDRESS_SEGMENT to = { .Data.AddressBits = offer->addr, .Handle = offer->handle };

	if (!answer->offered || ch->hops > 1 ||
	    nvi_grant_for(ch, &to, answer->rdma.length) == NULL || u_unlikely(nvi_chan_breaks(ch)))
		return NVI_METHOD_SLOTS;
	if (!in_order(ch, offer->consumed))
		return answer->rdma.length >= NVI_WRITE_WAIT && ch->tx.asked == ch->tx.seq
			       ? NVI_METHOD_WAIT
			       : NVI_METHOD_SLOTS;
	return nvi_has_slot(ch) ? NVI_METHOD_DONE : NVI_METHOD_WAIT;
}

/*
 * Makes the answer begin again through slots, the last of which asks for credit; bytes that were stored are sent again.
 */
static void use_slots(struct nvi_tx_message *m)
{
	m->placed = false;
	m->ack = true;
	m->done = 0;
}

void nvi_answer_anew(struct nvi_chan *ch)
{
	struct nvi_tx_message *m = &ch->tx.msg;

	if (m->op == W_OP_READ_RESP && m->placed)
		use_slots(m);
}

/* Stores the next piece.  Returns as nvi_answer_place() does. */
static int store_piece(struct nvi_chan *ch, struct nvi_tx_message *m)
{
	const struct w_offer *offer = &m->read_req.offer;
	struct nvi_grant *g = nvi_grant_find(ch, offer->handle);
	uint32_t n = m->total - m->done < PIECE ? m->total - m->done : PIECE;
	uint64_t to = offer->addr + m->done;
	const void *src;

	if (u_unlikely(g == NULL || !nvi_grant_covers(g, to, n))) {
		use_slots(m);
		return 1;
	}
	if (u_unlikely(nvi_chan_breaks(ch)))
		return 0;
	src = vi_tpt_check(ch->vi->nic, ch->vi->ptag, m->rdma.addr + m->done, n, m->rdma.handle,
			   VI_REMOTE_READ);
	if (u_unlikely(src == NULL))
		return -EFAULT;
	nvi_copy_region(&g->map.out, nvi_grant_at(g, to), src, n);
	u_out_fence(&g->map.out);
	g->uses++;
	ch->tx.run_bytes += n;
	m->done += n;
	return 1;
}

/* Publishes the slot that announces a placed answer, and ends the message. */
static void publish(struct nvi_chan *ch, struct nvi_tx_message *m)
{
	struct w_slot line = {
		.head = { .op = W_OP_READ_RESP,
			  .flags = W_F_FIRST | W_F_LAST | W_F_PLACED,
			  .frag = m->total },
	};

	nvi_publish(ch, &line, line.more, 0, ch->tx.cursor);
	m->op = 0;
}

int nvi_answer_place(struct nvi_chan *ch)
{
	struct nvi_tx_message *m = &ch->tx.msg;
	int got;

	/*
	 * The lock is not dropped between storing the last piece and publishing the slot, so a slot
	 * must be free now.
	 */
	if (u_unlikely(!nvi_has_slot(ch)))
		return 0;
	got = store_piece(ch, m);
	if (got <= 0 || m->done < m->total)
		return got;
	if (ch->retx != NULL && !nvi_link_stands(ch->port_use, ch->generation))
		use_slots(m);
	else
		publish(ch, m);
	return 1;
}
