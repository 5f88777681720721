/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A send goes through the payload buffer, from which the receiver copies it.  If the receive's memory lies in a
 * window, the receiver advertises the receive (nvi_advert.c), and a sender that holds a grant of that memory stores
 * the bytes there instead; then it publishes one slot, without payload, that announces them.  A write with immediate
 * data is a direct store (nvi_write.c) and such a slot.
 *
 * Matching: both ends count the messages that take a receive (w_takes_receive()), and the tag of an advert is that
 * count.  So the sender stores a message into the memory of the receive that the message will take, or nowhere.
 *
 * Order: bytes that are stored now arrive before those of earlier slots that the peer has not consumed.  Earlier
 * sends are for other receives.  But a write or an answer to a read may touch any memory, so a send is placed only
 * when the last of these has been consumed, and a write only when all slots have been but those of placed messages,
 * whose bytes have already arrived.
 *
 * When a path is lost, the slot of a resumable channel is published again over another path, but the bytes are not
 * stored again.  So there the link is flushed before the slot is published, and if the link has gone down the message
 * is sent through the payload buffer.
 */
#include "nvi_place.h"
#include "nvi_credit.h"
#include "nvi_publish.h"
#include "nvi_store.h"
#include "vi_wq_hot.h"

/* ---- may it be placed ------------------------------------------------------------------------- */

/* Finds the memory that the peer advertised for its next receive; false, and *to has no meaning: none, or too short. */
static bool find_receive(const struct nvi_chan *ch, uint32_t length, VIP_ADDRESS_SEGMENT *to)
{
	uint64_t n = nvi_next_sent(ch);
	const struct w_advert *a = &ch->in_ctl->adverts[n % W_ADVERTS];

	/* R: pairs with advertise() in nvi_advert.c at the peer.  Each word is loaded once. */
	if (atomic_load_explicit(&a->tag, memory_order_acquire) != w_advert_tag(n))
		return false;
	to->Data.AddressBits = atomic_load_explicit(&a->addr, memory_order_relaxed);
	to->Handle = atomic_load_explicit(&a->handle, memory_order_relaxed);
	return length <= atomic_load_explicit(&a->length, memory_order_relaxed);
}

/* Is the write so short that its bytes go in its slot? */
static bool fits_inline(const struct vi_wqe *wqe)
{
	return wqe->length <= W_INLINE_MAX - sizeof(struct w_rdma);
}

/* Finds the memory that a send or write is stored into; false: none, or the write fits into its slot. */
static bool find_target(struct nvi_chan *ch, const struct vi_wqe *wqe, VIP_ADDRESS_SEGMENT *to)
{
	if ((wqe->control & VIP_CONTROL_OP_MASK) == VIP_CONTROL_OP_SENDRECV)
		return find_receive(ch, wqe->length, to);
	if (wqe->segs < 2 || fits_inline(wqe) || !vi_wqe_there(&ch->vi->sq, wqe))
		return false;
	*to = *vi_wqe_remote(wqe);
	return true;
}

/* By the credit taken in so far: has the peer consumed every slot that bytes stored now must not overtake? */
static bool bytes_in_order(const struct nvi_chan *ch, bool is_write)
{
	if (!is_write)
		return ch->tx.acked >= ch->tx.rdma_end;
	return nvi_slots_used(ch) == 0 ||
	       (ch->tx.placed_end == nvi_slots_sent(ch) && ch->tx.acked >= ch->tx.placed_at);
}

/*
 * May bytes be stored now?  Not while a read is under way, which may read the memory to which they go.  Takes in
 * credit.
 */
static bool in_order(struct nvi_chan *ch, bool is_write)
{
	if (atomic_load_explicit(&ch->tx.read_tail, memory_order_relaxed) !=
	    atomic_load_explicit(&ch->rx.read_head, memory_order_acquire))
		return false;
	return bytes_in_order(ch, is_write) ||
	       (nvi_tx_credit(ch) > 0 && bytes_in_order(ch, is_write));
}

bool nvi_has_slot(struct nvi_chan *ch)
{
	if (u_likely(nvi_slots_used(ch) <= ch->out_mask))
		return true;
	ch->vi->counters.Stalls++;
	return nvi_tx_credit(ch) > 0;
}

/* ---- placing ---------------------------------------------------------------------------------- */

/* Publishes the slot that announces the bytes, without ringing. */
static void publish(struct nvi_chan *ch, struct vi_wqe *wqe, bool is_write,
		    const VIP_ADDRESS_SEGMENT *to)
{
	const struct w_rdma rdma = { .addr = to->Data.AddressBits, .handle = to->Handle };
	bool with_imm = (wqe->control & VIP_CONTROL_IMMEDIATE) != 0;
	bool ack = is_write || ch->tx.direct_writes || ch->level == VIP_SERVICE_RELIABLE_RECEPTION;
	struct w_slot line = {
		.head = { .op = is_write ? W_OP_WRITE : W_OP_SEND,
			  .flags = (uint8_t)(W_F_FIRST | W_F_LAST | W_F_PLACED |
					     (with_imm ? W_F_IMM : 0) | (ack ? W_F_ACK : 0)),
			  .arg = with_imm ? wqe->imm : 0,
			  .frag = wqe->length },
	};

	if (is_write)
		memcpy(line.data, &rdma, sizeof(rdma));
	wqe->first = ch->tx.seq;
	nvi_publish(ch, &line, line.more, 0, ch->tx.cursor);
	wqe->mark = ch->tx.seq;
}

/*
 * Counts the descriptor as sent, and completes it, unless that needs credit: its memory is not needed again, even if
 * the slot is published again.
 */
static void finish(struct nvi_chan *ch, const struct vi_wqe *wqe, bool is_write)
{
	struct vi_wq *sq = &ch->vi->sq;

	sq->next++;
	ch->vi->counters.RdmaWrites += is_write;
	ch->vi->counters.MessagesSent++;
	ch->vi->counters.BytesSent += wqe->length;
	if (ch->level != VIP_SERVICE_RELIABLE_RECEPTION)
		nvi_complete_send(sq, sq->next - 1, 0);
}

enum nvi_write_method nvi_place_queued(struct nvi_chan *ch, struct vi_wqe *wqe)
{
	bool is_write = (wqe->control & VIP_CONTROL_OP_MASK) == VIP_CONTROL_OP_RDMAWRITE;
	VIP_ADDRESS_SEGMENT to;
	struct nvi_grant *g;

	if (ch->hops > 1 || (wqe->control & VIP_CONTROL_RESERVED) != 0 || ch->tx.msg.op != 0 ||
	    wqe->length > NVI_DIRECT_MAX || !find_target(ch, wqe, &to))
		return NVI_METHOD_SLOTS;
	g = is_write ? nvi_grant_for_write(ch, &to, wqe->length)
		     : nvi_grant_for(ch, &to, wqe->length);
	if (g == NULL || u_unlikely(nvi_chan_breaks(ch)))
		return NVI_METHOD_SLOTS;
	if (!in_order(ch, is_write))
		return is_write && nvi_write_waits(ch, wqe->length) ? NVI_METHOD_WAIT
								    : NVI_METHOD_SLOTS;
	if (!nvi_has_slot(ch))
		return NVI_METHOD_WAIT;
	if (nvi_store(ch, g, wqe, to.Data.AddressBits) != 0 ||
	    (ch->retx != NULL && !nvi_link_stands(ch->port_use, ch->generation)))
		return NVI_METHOD_SLOTS;
	publish(ch, wqe, is_write, &to);
	finish(ch, wqe, is_write);
	return NVI_METHOD_DONE;
}
