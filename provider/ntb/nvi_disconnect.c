/* SPDX-License-Identifier: BSD-2-Clause */
#include "nvi_disconnect.h"
#include "nvi_attempt.h"
#include "nvi_break.h"
#include "nvi_conn.h"
#include "nvi_credit.h"
#include "nvi_fast.h"
#include "nvi_peer.h"
#include "nvi_progress.h"
#include "nvi_publish.h"
#include "nvi_req.h"
#include "nvi_window.h"
#include "u_time.h"
#include "vi_wq_hot.h"

/* ---- waiting until sends have arrived -------------------------------------------------------- */

/* A disconnect that waits until its sends have arrived. */
struct drain {
	struct nvi_chan *ch;
	int64_t until, most;
	uint32_t end; /* tx.seq when they were complete, */
	bool ended;   /* which they are */
};

/*
 * Begins a drain: from here on no new descriptor is sent.  Returns true if the channel can have
 * sends to wait for; else it changes nothing.
 */
static bool begin_drain(struct nvi_chan *ch)
{
	struct vi_vi *vi = ch->vi;
	bool any;

	vi_lock_both(vi);
	any = vi->chan == ch && ch->level != VIP_SERVICE_UNRELIABLE && nvi_chan_lives(ch);
	if (any) {
		vi->fast = &nvi_fast_closing;
		ch->breaking.draining = true;
		vi_wq_flush_new(&vi->sq, VIP_STATUS_DESC_FLUSHED_ERROR);
	}
	vi_unlock_both(vi);
	return any;
}

/*
 * Has the peer acknowledged every send?  In the Error state this means every send that the error
 * left in the queue.  Asks the peer for credit; may mark a fault.  Caller holds tx_lock.
 */
static bool all_there(struct drain *d)
{
	struct nvi_chan *ch = d->ch;

	if (vi_state(ch->vi) != VIP_STATE_CONNECTED)
		return atomic_load_explicit(&ch->tx.waiting, memory_order_relaxed) == 0;
	/* A message that was sent in part has to be sent completely. */
	if (ch->tx.msg.op != 0 && ch->tx.msg.op != W_OP_READ_RESP)
		return false;
	/* Until a send is complete, it may have to be sent once more. */
	if (!d->ended) {
		d->end = ch->tx.seq;
		d->ended = nvi_sq_done(&ch->vi->sq) == ch->vi->sq.next;
	}
	return nvi_tx_consumed(ch, d->end) && d->ended;
}

/*
 * For vi_wait(): makes progress; nonzero when there is nothing left to wait for.  `arg`: a struct drain, whose `until`
 * moves on while the channel has no path.
 */
static int try_drain(void *arg)
{
	struct drain *d = arg;
	struct nvi_chan *ch = d->ch;
	int over = 1;

	nvi_progress_chan(ch, true);
	u_biased_take(&ch->vi->tx_lock);
	if (ch->vi->chan == ch) {
		over = all_there(d);
		nvi_break_after_tx(ch);
		if (ch->placeholder_mem != NULL)
			d->until = u_now_ns() + ch->nic->drain_ms * INT64_C(1000000);
	}
	u_biased_drop(&ch->vi->tx_lock);
	return over;
}

/*
 * Waits until the peer has acknowledged everything that was sent, so that incomplete sends can be completed, and
 * completed ones have arrived.  The wait is bounded, as a peer may consume nothing.  While the path is lost the wait
 * continues: the agents end the connection if they find no other path.
 */
static void drain(struct vi_vi *vi)
{
	struct drain d = { .ch = vi->prov };
	int64_t now = u_now_ns();
	int over = 0;

	if (!begin_drain(d.ch))
		return;
	d.until = now + d.ch->nic->drain_ms * INT64_C(1000000);
	d.most = now + NVI_DRAIN_MOST_MS * INT64_C(1000000);
	do {
		int64_t until = d.until < d.most ? d.until : d.most;

		over = vi_wait(vi->nic, &vi->sq.awaited, NULL, try_drain, &d, until);
		now = u_now_ns();
	} while (over == 0 && now < d.until && now < d.most);
}

/* ---- disconnecting --------------------------------------------------------------------------- */

int nvi_disconnect(struct vi_vi *vi)
{
	struct nvi_nic *nic = vi->nic->prov;
	struct nvi_chan *ch = vi->prov;
	struct w_conn msg;
	uint64_t conn;

	nvi_attempt_cancel_all(nic, vi);
	nvi_peer_drop(vi);
	drain(vi);
	nvi_revoke_conn_begin(nic, ch, &conn);
	msg.conn = nvi_chan_close(vi);
	nvi_revoke_conn_end(nic, ch, conn);
	/* Without an agent there is no connection any more. */
	if (msg.conn != 0)
		nvi_ctl_send(nic, &msg, W_CLOSE, sizeof(msg));
	return 0;
}
