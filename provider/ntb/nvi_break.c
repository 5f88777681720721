/* SPDX-License-Identifier: BSD-2-Clause */
#include "nvi_break.h"
#include "nvi_credit.h"
#include "nvi_grant.h"
#include "nvi_notify.h"
#include "nvi_remote.h"
#include "nvi_rx.h"
#include "nvi_write.h"
#include "vi_provider.h"

/* ---- the sends of a connection that breaks --------------------------------------------------- */

/* Completes the first started and incomplete send, from entry n on, with `bits`. */
static void fail_send(struct nvi_chan *ch, uint32_t n, uint32_t bits)
{
	struct vi_wq *sq = &ch->vi->sq;

	for (; n != sq->next; n++) {
		struct vi_wqe *wqe = vi_wqe(sq, n);

		if (wqe->status == 0) {
			nvi_complete_send(sq, n, bits);
			return;
		}
	}
}

/* The peer vanished: fails the oldest incomplete send that was started, and the receive of a message under way. */
static void fail_outstanding(struct nvi_chan *ch)
{
	fail_send(ch, nvi_sq_done(&ch->vi->sq),
		  VIP_STATUS_TRANSPORT_ERROR | VIP_STATUS_PARTIAL_ERROR);
	if (ch->rx.msg.has_entry) {
		ch->rx.msg.has_entry = false;
		vi_wq_complete(&ch->vi->rq, ch->rx.msg.entry,
			       VIP_STATUS_OP_RECEIVE | VIP_STATUS_TRANSPORT_ERROR |
				       VIP_STATUS_PARTIAL_ERROR,
			       0);
	}
}

/* Is entry n, which was started, a send that the peer may have and has not acknowledged? */
static bool is_out(const struct nvi_chan *ch, uint32_t n, const struct vi_wqe *wqe)
{
	const struct vi_wq *sq = &ch->vi->sq;

	if (nvi_is_read(wqe) || sq->next - n <= ch->tx.unflushed ||
	    (int32_t)(ch->tx.seq - wqe->mark) < 0)
		return false;
	return ch->tx.msg.op == 0 || ch->tx.msg.op == W_OP_READ_RESP || ch->tx.msg.entry != n;
}

/* Flushes the send queue but for sends that are out.  Returns true if there are such sends. */
static bool keep_sends(struct nvi_chan *ch)
{
	struct vi_wq *sq = &ch->vi->sq;
	bool any_out = false;

	for (uint32_t n = nvi_sq_done(sq); n != sq->next; n++) {
		struct vi_wqe *wqe = vi_wqe(sq, n);

		if (wqe->status == 0 && is_out(ch, n, wqe))
			any_out = true;
		else if (wqe->status == 0)
			nvi_complete_send(sq, n, VIP_STATUS_DESC_FLUSHED_ERROR);
	}
	vi_wq_flush_new(sq, VIP_STATUS_DESC_FLUSHED_ERROR);
	return any_out;
}

void nvi_wake_closer(const struct nvi_chan *ch)
{
	if (ch->breaking.draining)
		ch->vi->nic->ops->wake(ch->vi->nic);
}

void nvi_stop_sending(struct nvi_chan *ch)
{
	ch->tx.msg.op = 0;
	ch->tx.unflushed = 0;
	ch->tx.drains = ch->tx.refuses = false;
	atomic_store_explicit(&ch->answers.head,
			      atomic_load_explicit(&ch->answers.tail, memory_order_relaxed),
			      memory_order_relaxed);
	atomic_store_explicit(&ch->tx.waiting, 0, memory_order_relaxed);
	/*
	 * It asks for progress, which will not be made any more; while it is set the channel is not
	 * armed.
	 */
	atomic_store_explicit(&ch->tx.more, false, memory_order_relaxed);
}

/*
 * Ends the sends of a connection that was broken before: the credit for which they waited will not
 * come any more.  Does nothing for a fault of this end, or if no send is left.
 */
static void end_sends(struct nvi_chan *ch, enum nvi_break why)
{
	if (why == NVI_BREAK_LOCAL ||
	    atomic_load_explicit(&ch->tx.waiting, memory_order_relaxed) == 0)
		return;
	if (why == NVI_BREAK_LOST || why == NVI_BREAK_PROTOCOL)
		fail_outstanding(ch);
	nvi_stop_sending(ch);
	vi_wq_flush(&ch->vi->sq, VIP_STATUS_DESC_FLUSHED_ERROR);
	nvi_wake_closer(ch);
}

/* ---- breaking -------------------------------------------------------------------------------- */

/*
 * Gives credit for all consumed slots, reports the error, and rings even if the peer did not ask
 * for that.  Only once on a connection: a second call does nothing.
 */
static void report_to_peer(struct nvi_chan *ch, const struct nvi_fault *fault)
{
	if (ch->breaking.reported)
		return;
	ch->breaking.reported = true;
	nvi_rx_return_credit(ch);
	u_out_store64(&ch->out, &ch->out_ctl->error,
		      w_error_word(fault->slot, fault->message, fault->err));
	u_out_fence(&ch->out);
	nvi_ring(ch);
}

/*
 * Has the peer consumed everything that was sent, and has every message that it began to send arrived completely?  A
 * last slot that only asks for credit carries nothing.
 */
static bool nothing_lost(const struct nvi_chan *ch)
{
	const struct vi_wq *sq = &ch->vi->sq;
	uint32_t left = ch->tx.seq - atomic_load_explicit(&ch->tx.credit, memory_order_relaxed);

	return nvi_sq_done(sq) == sq->tail &&
	       (left == 0 || (left == 1 && ch->tx.nop_end == ch->tx.seq)) && ch->rx.stream.op == 0;
}

void nvi_chan_break(struct nvi_chan *ch, struct nvi_fault fault)
{
	enum nvi_break why = fault.why;
	uint32_t how = VI_BREAK_RAISE;

	atomic_store_explicit(&ch->breaking.faults, 0, memory_order_relaxed);
	if (vi_state(ch->vi) != VIP_STATE_CONNECTED) {
		end_sends(ch, why);
		return;
	}
	if (why == NVI_BREAK_LOCAL || why == NVI_BREAK_PROTOCOL)
		report_to_peer(ch, &fault);
	/*
	 * A send that the peer has acknowledged is complete, not flushed, and so is a direct store
	 * that arrived.
	 */
	nvi_tx_credit(ch);
	nvi_writes_settle(ch);
	if (why == NVI_BREAK_LOST || why == NVI_BREAK_PROTOCOL)
		fail_outstanding(ch);
	if (why == NVI_BREAK_PEER_CLOSED && nothing_lost(ch))
		how |= VI_BREAK_QUIET;
	if (why == NVI_BREAK_LOCAL && keep_sends(ch))
		how |= VI_BREAK_KEEP_SENDS;
	nvi_stop_sending(ch);
	nvi_grants_drop(ch);
	nvi_remotes_lose(ch);
	vi_break(ch->vi, how, VIP_ERROR_CONN_LOST);
	if (how & VI_BREAK_KEEP_SENDS) {
		nvi_tx_update_waiting(ch);
		nvi_disarm(ch);
	}
	nvi_wake_closer(ch);
}

/*
 * Breaks the connection for the fault that was marked; with two, for that of receiving: a thread
 * that finds one of sending must get rx_lock first. Caller holds both locks.
 */
static void break_for_fault(struct nvi_chan *ch)
{
	if (nvi_chan_has_fault(ch, NVI_FAULT_RX))
		nvi_chan_break(ch, ch->breaking.rx_fault);
	else if (nvi_chan_has_fault(ch, NVI_FAULT_TX))
		nvi_chan_break(ch, ch->breaking.tx_fault);
}

void nvi_break_after_tx_slow(struct nvi_chan *ch)
{
	if (!u_biased_try(&ch->vi->rx_lock))
		return;
	break_for_fault(ch);
	u_biased_drop(&ch->vi->rx_lock);
}

void nvi_break_after_rx_slow(struct nvi_chan *ch)
{
	u_biased_take(&ch->vi->tx_lock);
	break_for_fault(ch);
	u_biased_drop(&ch->vi->tx_lock);
}

void nvi_rx_drain(struct nvi_chan *ch)
{
	for (uint32_t n = 0; n <= ch->in_mask; n += NVI_RX_BATCH)
		/* The slot with the fault is still the next one: it must not be consumed again. */
		if (nvi_rx(ch, NVI_RX_BATCH) == 0 || nvi_chan_has_fault(ch, NVI_FAULT_RX))
			break;
	nvi_break_after_rx(ch);
}

/* ---- the peer's report ----------------------------------------------------------------------- */

/* Returns the VIP_STATUS bit for a send that the peer refused with this error. */
static uint32_t send_error_bits(enum w_err err)
{
	switch (err) {
	case W_ERR_NO_DESC:
	case W_ERR_TOO_LONG:
	case W_ERR_RECV_DESC:
		return VIP_STATUS_REMOTE_DESC_ERROR;
	case W_ERR_RDMA_PROT:
		return VIP_STATUS_RDMA_PROT_ERROR;
	default:
		return VIP_STATUS_TRANSPORT_ERROR;
	}
}

/*
 * Returns the first incomplete send whose slots reach past `slot`, sq->next if there is none.  If
 * that send begins after `slot`, the report is about a send that completed when it was out
 * (reliable delivery): none of the sends left was refused, and sq->next is returned, but not with W_ERR_PROTOCOL.
 */
static uint32_t find_refused(struct nvi_chan *ch, enum w_err err, uint32_t slot)
{
	struct vi_wq *sq = &ch->vi->sq;

	for (uint32_t n = nvi_sq_done(sq); n != sq->next; n++) {
		const struct vi_wqe *wqe = vi_wqe(sq, n);
		bool under_way = ch->tx.msg.op != 0 && ch->tx.msg.op != W_OP_READ_RESP &&
				 ch->tx.msg.entry == n;

		if (wqe->status != 0 || (!under_way && (int32_t)(wqe->mark - slot) <= 0))
			continue;
		return err == W_ERR_PROTOCOL || (int32_t)(slot - wqe->first) >= 0 ? n : sq->next;
	}
	return sq->next;
}

/*
 * Completes the first `count` messages of packed `slot`, which have arrived; the first is that of entry n.  Returns
 * the entry of the next message, or of the last one if there are not so many.
 */
static uint32_t complete_arrived(struct nvi_chan *ch, uint32_t n, uint32_t slot, uint32_t count)
{
	struct vi_wq *sq = &ch->vi->sq;

	for (; count > 0 && n != sq->next && n + 1 != sq->next; count--, n++) {
		const struct vi_wqe *next = vi_wqe(sq, n + 1);

		if (next->status != 0 || next->first != slot || next->mark != slot + 1)
			break;
		nvi_complete_send(sq, n, 0);
	}
	return n;
}

/*
 * Fails the descriptor of the message that the peer refused, the one with the slot named in the report (none with
 * W_ERR_SENDER), and breaks the connection.  Caller holds both locks.
 */
static void apply_report(struct nvi_chan *ch, uint64_t word)
{
	enum w_err err = w_error_why(word);
	uint32_t slot = w_error_slot(word);

	if (err != W_ERR_SENDER)
		fail_send(ch,
			  complete_arrived(ch, find_refused(ch, err, slot), slot,
					   w_error_message(word)),
			  send_error_bits(err));
	nvi_chan_break(ch, (struct nvi_fault){ .why = NVI_BREAK_REPORTED });
}

void nvi_chan_check_breaks(struct nvi_chan *ch)
{
	struct vi_vi *vi = ch->vi;
	uint64_t word;

	u_biased_take(&vi->rx_lock);
	if (vi->chan == ch && nvi_chan_breaks(ch)) {
		/*
		 * R: the report is loaded before the slots, so all slots that were published before
		 * the report are seen.
		 */
		word = atomic_load_explicit(&ch->in_ctl->error, memory_order_acquire);
		if (word != 0)
			nvi_rx_drain(ch);
		u_biased_take(&vi->tx_lock);
		if (word != 0) {
			/*
			 * The peer waits for credit for the slots that it published before its
			 * report.
			 */
			if (vi_state(vi) == VIP_STATE_CONNECTED)
				nvi_rx_return_credit(ch);
			nvi_tx_credit(ch);
			nvi_writes_settle(ch);
			apply_report(ch, word);
		} else {
			break_for_fault(ch);
		}
		u_biased_drop(&vi->tx_lock);
	}
	u_biased_drop(&vi->rx_lock);
}

void nvi_chan_lost(struct nvi_chan *ch, struct nvi_nic *nic, uint64_t conn, enum w_lost reason)
{
	struct vi_vi *vi = ch->vi;

	u_biased_take(&vi->rx_lock);
	if (vi->chan == ch && nvi_chan_is_conn(ch, nic, conn)) {
		nvi_rx_drain(ch);
		u_biased_take(&vi->tx_lock);
		nvi_tx_credit(ch);
		nvi_chan_break(ch, (struct nvi_fault){ .why = reason == W_LOST_CLOSED
								      ? NVI_BREAK_PEER_CLOSED
								      : NVI_BREAK_LOST });
		u_biased_drop(&vi->tx_lock);
	}
	u_biased_drop(&vi->rx_lock);
}
