/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

#include "nvi_credit.h"
#include "nvi_fault.h"
#include "nvi_notify.h"
#include "vi_wq_hot.h"

/* Completes the descriptors whose last slot the peer has consumed, but no reads: their answers do that. */
static void complete_acked(struct nvi_chan *ch, uint32_t credit)
{
	struct vi_wq *sq = &ch->vi->sq;

	for (uint32_t n = nvi_sq_done(sq); n != sq->next - ch->tx.unflushed; n++) {
		struct vi_wqe *wqe = vi_wqe(sq, n);

		if (wqe->status != 0 || nvi_is_read(wqe))
			continue;
		if (ch->tx.msg.op != 0 && ch->tx.msg.op != W_OP_READ_RESP && ch->tx.msg.entry == n)
			break;
		if ((int32_t)(credit - wqe->mark) < 0)
			break;
		nvi_complete_send(sq, n, 0);
	}
}

int nvi_tx_take_credit(struct nvi_chan *ch, uint32_t credit)
{
	uint32_t before = atomic_load_explicit(&ch->tx.credit, memory_order_relaxed);
	uint32_t fresh = credit - before;

	if (u_likely(fresh == 0))
		return 0;
	if (fresh > ch->tx.seq - before)
		return -EPROTO;
	atomic_store_explicit(&ch->tx.credit, credit, memory_order_relaxed);
	ch->tx.limit = credit + ch->out_mask + 1;
	ch->tx.acked += fresh;
	/* Neither may lag so far that it seems to be ahead. */
	if (ch->tx.asked - before < fresh)
		ch->tx.asked = credit;
	if (u_unlikely(ch->tx.drains) && ch->tx.drain_end - before <= fresh)
		ch->tx.drains = false;
	ch->tx.consumed = ch->tx.after[(credit - 1) & ch->out_mask];
	if ((int64_t)(ch->tx.consumed - ch->tx.freed) > 0)
		ch->tx.freed = ch->tx.consumed;
	if (u_unlikely(nvi_answers_left(ch)))
		nvi_want_progress(ch);
	else
		nvi_disarm(ch);
	complete_acked(ch, credit);
	return 1;
}

/* Counts and marks a fault of the peer, which gave credit for slots that were never sent. */
void nvi_credit_fault(struct nvi_chan *ch)
{
	ch->vi->counters.ProtocolErrors++;
	nvi_fault_tx(ch, (struct nvi_fault){ NVI_BREAK_PROTOCOL, W_ERR_PROTOCOL, 0, 0 });
}
