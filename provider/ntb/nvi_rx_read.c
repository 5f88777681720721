/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

#include "nvi_answer.h"
#include "nvi_credit.h"
#include "nvi_fault.h"
#include "nvi_publish.h"
#include "nvi_rx_read.h"
#include "nvi_tx.h"
#include "u_trace.h"
#include "vi_wq_hot.h"

/* ---- requests of the peer -------------------------------------------------------------------- */

bool nvi_rx_answers_full(const struct nvi_chan *ch)
{
	return atomic_load_explicit(&ch->answers.tail, memory_order_relaxed) -
		       atomic_load_explicit(&ch->answers.head, memory_order_acquire) >=
	       NVI_READS_MAX;
}

void nvi_rx_queue_answer(struct nvi_chan *ch, const struct nvi_answer *answer)
{
	uint32_t tail = atomic_load_explicit(&ch->answers.tail, memory_order_relaxed);

	ch->answers.queue[tail % NVI_READS_MAX] = *answer;
	atomic_store_explicit(&ch->answers.tail, tail + 1, memory_order_release);
	/*
	 * The thread that makes progress continues sending when it has dropped rx_lock.  If another thread has tx_lock
	 * then, tx.more keeps threads that arm from sleeping until one has tried: maybe no credit will come that wakes
	 * them.  Not if another thread has begun the answer already: then no run may follow that resets tx.more, and
	 * the channel could never be armed.
	 */
	u_biased_take(&ch->vi->tx_lock);
	nvi_tx_update_waiting(ch);
	if (nvi_answers_left(ch))
		nvi_want_progress(ch);
	u_biased_drop(&ch->vi->tx_lock);
}

/*
 * Sends the answer at once, if it fits into a slot and nothing has to go before it; else returns false.  Takes
 * tx_lock.
 */
static bool publish_short_read_answer(struct nvi_chan *ch, const struct nvi_rx_slot *s,
				      const void *src)
{
	bool sent = false;

	if (s->rdma.length <= W_INLINE_MAX) {
		u_biased_take(&ch->vi->tx_lock);
		sent = nvi_publish_read_answer(ch, src, s->rdma.length);
		u_biased_drop(&ch->vi->tx_lock);
	}
	return sent;
}

void nvi_rx_refuse_request(struct nvi_chan *ch, const struct nvi_rx_slot *s, VIP_ERROR_CODE event)
{
	ch->vi->counters.ProtectionErrors++;
	ch->rx.msg.has_entry = false;
	nvi_rx_fail(ch, s, W_ERR_RDMA_PROT, 0);
	vi_event_raise(ch->vi->nic, ch->vi, VIP_RESOURCE_VI, event);
}

void nvi_rx_read_request(struct nvi_chan *ch, const struct nvi_rx_slot *s)
{
	struct vi_vi *vi = ch->vi;
	const void *src = NULL;

	u_prefetch_write(atomic_load_explicit(&vi->prefetch, memory_order_relaxed));
	if (!nvi_rx_reliable(ch) || nvi_rx_answers_full(ch)) {
		nvi_rx_protocol_error(ch, s);
		return;
	}
	if (vi->rdma_read)
		src = vi_tpt_check(vi->nic, vi->ptag, s->rdma.addr, s->rdma.length, s->rdma.handle,
				   VI_REMOTE_READ);
	if (src == NULL) {
		nvi_rx_refuse_request(ch, s, VIP_ERROR_RDMAR_PROT);
		return;
	}
	if (!publish_short_read_answer(ch, s, src))
		nvi_rx_queue_answer(ch, &(struct nvi_answer){ .rdma = s->rdma,
							      .slot = s->number,
							      .offered = s->frag ==
									 sizeof(struct w_read_req),
							      .offer = s->offer });
}

/* ---- answers of the peer --------------------------------------------------------------------- */

/*
 * Starts placing the answer to the oldest read.  0, also if it cannot be placed, which rx.msg.status says; or -EPROTO
 * when no such answer is due.  Takes tx_lock.
 */
static int begin_read_response(struct nvi_chan *ch, const struct nvi_rx_slot *s)
{
	struct nvi_rx_message *m = &ch->rx.msg;
	uint32_t head = atomic_load_explicit(&ch->rx.read_head, memory_order_relaxed);
	bool placed = (s->flags & W_F_PLACED) != 0;
	struct vi_wqe *wqe;
	int err = 0;

	/* R: pairs with begin_rdma() in nvi_tx.c. */
	if (head == atomic_load_explicit(&ch->tx.read_tail, memory_order_acquire))
		return -EPROTO;
	m->discard = m->has_entry = false;
	m->status = 0;
	m->total = s->flags & W_F_LAST ? s->frag : s->arg;
	m->entry = ch->tx.reads[head % NVI_READS_MAX];
	u_biased_take(&ch->vi->tx_lock);
	wqe = vi_wqe(&ch->vi->sq, m->entry);
	if (vi_wqe_answer_bytes(wqe) != m->total || (placed && !nvi_was_offered(ch, head)))
		err = -EPROTO;
	else if (vi_sg_init(&m->sg, ch->vi, wqe, VI_WRITE, m->total) != 0 ||
		 (placed && !nvi_rx_are_at(&m->sg, wqe->at, m->total)))
		m->status = VIP_STATUS_PROTECTION_ERROR;
	u_biased_drop(&ch->vi->tx_lock);
	return err;
}

/* Completes the oldest read; continues sends, or marks a fault if the answer could not be placed.  Takes tx_lock. */
static void end_read_response(struct nvi_chan *ch)
{
	struct nvi_rx_message *m = &ch->rx.msg;
	uint32_t head = atomic_load_explicit(&ch->rx.read_head, memory_order_relaxed);

	u_biased_take(&ch->vi->tx_lock);
	atomic_store_explicit(&ch->rx.read_head, head + 1, memory_order_release);
	nvi_complete_send(&ch->vi->sq, m->entry, m->status);
	if (m->status != 0)
		nvi_fault_rx(ch, (struct nvi_fault){ NVI_BREAK_LOCAL, W_ERR_SENDER, 0, 0 });
	else
		nvi_tx_progress(ch);
	u_biased_drop(&ch->vi->tx_lock);
}

/*
 * Places the whole answer to a plain read, in one slot, completes the read and continues sends.  Returns false, and
 * does nothing, for any other.  Takes tx_lock.
 */
static bool place_whole_read_answer(struct nvi_chan *ch, const struct nvi_rx_slot *s)
{
	uint32_t head = atomic_load_explicit(&ch->rx.read_head, memory_order_relaxed);
	struct vi_vi *vi = ch->vi;
	struct vi_wqe *wqe;
	bool plain, placed;

	if ((s->flags & (W_F_FIRST | W_F_LAST)) != (W_F_FIRST | W_F_LAST) ||
	    /* R: pairs with post_read_request() in nvi_post.c. */
	    head == atomic_load_explicit(&ch->tx.read_tail, memory_order_acquire))
		return false;
	u_biased_take(&vi->tx_lock);
	wqe = vi_wqe(&vi->sq, ch->tx.reads[head % NVI_READS_MAX]);
	placed = (s->flags & W_F_PLACED) != 0;
	plain = wqe->at != NULL && wqe->length == s->frag &&
		wqe->tpt_version == vi_tpt_version(&vi->nic->tpt) &&
		(!placed || nvi_was_offered(ch, head));
	if (plain) {
		if (!placed)
			nvi_rx_payload(s, wqe->at, 0, s->frag);
		atomic_store_explicit(&ch->rx.read_head, head + 1, memory_order_release);
		nvi_complete_send(&vi->sq, ch->tx.reads[head % NVI_READS_MAX], 0);
		nvi_tx_progress(ch);
	}
	u_biased_drop(&vi->tx_lock);
	return plain;
}

void nvi_rx_read_response(struct nvi_chan *ch, const struct nvi_rx_slot *s)
{
	struct nvi_rx_message *m = &ch->rx.msg;

	if (place_whole_read_answer(ch, s))
		return;
	if ((s->flags & W_F_FIRST) && begin_read_response(ch, s) != 0) {
		nvi_rx_protocol_error(ch, s);
		return;
	}
	if (m->status == 0 && (s->flags & W_F_PLACED) == 0 && nvi_rx_scatter(&m->sg, s) != 0)
		m->status = VIP_STATUS_PROTECTION_ERROR;
	U_TRACE(payload_copied, ch, s->frag);
	if (s->flags & W_F_LAST)
		end_read_response(ch);
}
