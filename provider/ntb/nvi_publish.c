/* SPDX-License-Identifier: BSD-2-Clause */
#include "nvi_publish.h"
#include "nvi_fault.h"
#include "u_copy.h"

/* ---- one slot -------------------------------------------------------------------------------- */

void nvi_store_slot(struct nvi_chan *ch, uint32_t n, const struct w_slot *line, const uint8_t *more,
		    uint32_t more_len)
{
	struct w_slot *slot = &ch->out_slots[n & ch->out_mask];

	if (more_len > 0)
		u_out_copy(&ch->out, slot->more, more, more_len);
	u_out_copy(&ch->out, slot, line, offsetof(struct w_slot, head.seq));
	U_TRACE(payload_written, ch, n);
	u_out_fence(&ch->out);
	u_out_store32(&ch->out, &slot->head.seq, w_seq(n));
}

/* Fills the retransmit slot with a copy of the slot as published, and with the source of its payload. */
static void hold(struct nvi_chan *ch, const struct w_slot *line, const uint8_t *more,
		 uint32_t more_len)
{
	struct nvi_retx_slot *k = &ch->retx[ch->tx.seq & ch->out_mask];
	const struct nvi_tx_message *m = &ch->tx.msg;

	memcpy(&k->line, line, offsetof(struct w_slot, head.seq));
	memcpy(k->line.more, more, more_len);
	if ((line->head.flags & W_F_BUFFERED) == 0)
		return;
	k->answer = m->op == W_OP_READ_RESP;
	k->handle = m->rdma.handle;
	k->addr = m->rdma.addr + m->done;
	k->entry = m->entry;
	k->offset = m->done;
}

void nvi_publish(struct nvi_chan *ch, const struct w_slot *line, const uint8_t *more,
		 uint32_t more_len, uint64_t cursor)
{
	if (ch->retx != NULL)
		hold(ch, line, more, more_len);
	nvi_store_slot(ch, ch->tx.seq, line, more, more_len);
	nvi_note_slot(ch, line->head.op, line->head.flags, line->head.arg);
	ch->tx.cursor = cursor;
	nvi_slot_published(ch, ch->tx.seq, cursor, line->head.flags);
	ch->vi->counters.SlotsSent++;
}

void nvi_publish_bare(struct nvi_chan *ch, uint8_t op, uint8_t flags)
{
	struct w_slot line = { .head = { .op = op, .flags = flags } };

	nvi_publish(ch, &line, line.more, 0, ch->tx.cursor);
}

bool nvi_publish_read_answer(struct nvi_chan *ch, const void *src, uint32_t n)
{
	struct w_slot *slot = &ch->out_slots[ch->tx.seq & ch->out_mask];
	uint32_t head = n < W_HEAD_INLINE ? n : W_HEAD_INLINE;

	if (!nvi_may_publish_plain(ch))
		return false;
	u_copy_shared(slot->data, src, head);
	if (n > head)
		u_copy_shared(slot->more, (const uint8_t *)src + head, n - head);
	nvi_publish_plain(ch, slot, W_OP_READ_RESP, n, 0, 0);
	nvi_prefetch_later(ch->vi, ch, n);
	ch->vi->counters.SlotsSent++;
	return true;
}

/* ---- asking for credit ----------------------------------------------------------------------- */

/*
 * Takes in credit, and returns as nvi_tx_credit() does.  Sends that wait for it continue in the next round, which
 * would not see that it came, so this sets tx.more.
 */
static int take_credit(struct nvi_chan *ch)
{
	const struct vi_wq *sq = &ch->vi->sq;
	int credit = nvi_tx_credit(ch);

	if (credit > 0 && (sq->next != sq->tail || ch->tx.msg.op != 0))
		nvi_want_progress(ch);
	return credit;
}

/*
 * Must the peer be asked for credit for the slots before `end`?  A full fifo has no slot to ask with; there the peer
 * gives credit without being asked, and then a slot is free.
 */
static bool must_ask(const struct nvi_chan *ch, uint32_t end)
{
	uint32_t credit = atomic_load_explicit(&ch->tx.credit, memory_order_relaxed);

	return ch->tx.asked - credit < end - credit && nvi_slots_used(ch) <= ch->out_mask;
}

bool nvi_tx_consumed(struct nvi_chan *ch, uint32_t end)
{
	bool later;

	if (take_credit(ch) < 0) {
		nvi_credit_fault(ch);
		return false;
	}
	if ((int32_t)(atomic_load_explicit(&ch->tx.credit, memory_order_relaxed) - end) >= 0) {
		nvi_tx_update_waiting(ch);
		return true;
	}
	later = !ch->tx.drains || (int32_t)(end - ch->tx.drain_end) > 0;
	if (must_ask(ch, end)) {
		nvi_publish_bare(ch, W_OP_NOP, W_F_ACK);
		ch->tx.nop_end = end = ch->tx.seq;
	} else if (!later) {
		return false;
	}
	u_out_fence(&ch->out);
	ch->tx.drains = true;
	ch->tx.drain_end = end;
	atomic_store_explicit(&ch->tx.waiting, 1, memory_order_release);
	/* The notify request may not ask for credit yet. */
	nvi_fence_for_arming(ch);
	nvi_disarm(ch);
	/*
	 * Rings without a notify request: if the peer's application does not poll, its engine must wake to give
	 * credit.
	 */
	if (ch->placeholder_mem == NULL)
		nvi_ring(ch);
	return false;
}
