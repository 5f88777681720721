/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Progress on a channel receives, then sends.  A thread that finds a lock of the VI held by another one does not wait
 * for it.  So whatever it leaves has to be seen by those that arm (nvi_chan_came() in nvi_arm.c): slots that were not
 * consumed, credit that was not taken in, a fault, or tx.more.  tests/model/progress.pml is the model of this.
 */
#include "nvi_progress.h"
#include "nvi_arm.h"
#include "nvi_break.h"
#include "nvi_notify.h"
#include "nvi_rx.h"
#include "nvi_tx.h"
#include "nvi_write.h"
#include "u_time.h"
#include "vi_provider.h"

/* ---- one channel ----------------------------------------------------------------------------- */

/*
 * Does something wait to be sent or completed, and could that be done now?  Without tx_lock this is
 * a hint.  Caller holds rx_lock, which keeps the slice.
 */
static inline bool tx_can_go_on(const struct nvi_chan *ch)
{
	return atomic_load_explicit(&ch->tx.waiting, memory_order_relaxed) != 0 &&
	       (atomic_load_explicit(&ch->in_ctl->credit, memory_order_relaxed) !=
			atomic_load_explicit(&ch->tx.credit, memory_order_relaxed) ||
		atomic_load_explicit(&ch->tx.more, memory_order_relaxed) || nvi_answers_left(ch));
}

/*
 * Breaks the connection for a fault that receiving found.  The result tells the caller to make
 * progress after it has dropped rx_lock, which does any break that is left.
 */
static U_COLD int poll_broken(struct nvi_chan *ch, int came)
{
	nvi_break_after_rx(ch);
	return came | VI_POLL_PROGRESS;
}

int nvi_poll_recv(struct vi_vi *vi)
{
	struct nvi_chan *ch = vi->chan;
	enum nvi_rx_came got;
	int came = 0;

	atomic_store_explicit(&ch->rx.app_polls,
			      atomic_load_explicit(&ch->rx.app_polls, memory_order_relaxed) + 1,
			      memory_order_relaxed);
	got = nvi_rx_next(ch);
	if (got != NVI_RX_NOTHING) {
		came = VI_POLL_MOVED;
		if (u_unlikely(atomic_load_explicit(&ch->arm.by_app, memory_order_relaxed) == 0))
			atomic_store_explicit(&ch->arm.by_app, 1, memory_order_relaxed);
	}
	/* After a message a break can wait until a poll finds none, or until credit goes back. */
	if (got != NVI_RX_MESSAGE && u_unlikely(nvi_chan_breaks(ch)))
		return poll_broken(ch, came);
	if (u_unlikely(tx_can_go_on(ch)))
		came |= VI_POLL_PROGRESS;
	return came;
}

bool nvi_watch(struct vi_vi *vi, struct vi_watch *out)
{
	struct nvi_chan *ch = vi->chan;
	uint32_t n = atomic_load_explicit(&ch->rx.seq, memory_order_relaxed);

	if (!nvi_chan_lives(ch))
		return true;
	if (ch->rx.unwatched != 0 || ch->placeholder_mem != NULL || nvi_chan_breaks(ch) ||
	    atomic_load_explicit(&ch->tx.waiting, memory_order_relaxed) != 0)
		return false;
	/* Set also if a scan for a doorbell was the last to move packets. */
	if (u_unlikely(atomic_load_explicit(&ch->arm.by_app, memory_order_relaxed) == 0))
		atomic_store_explicit(&ch->arm.by_app, 1, memory_order_relaxed);
	out->word = &ch->in_slots[n & ch->in_mask].head.seq;
	out->value = w_seq(n);
	return true;
}

/*
 * Receives, unless another thread holds rx_lock, and returns how many slots were consumed.  *broken_out: the connection
 * is to be broken; *go_on_out: sends can continue.  Both keep their values if the lock is held, or the channel is not
 * in use.
 */
static int progress_rx(struct nvi_chan *ch, bool by_app, bool *broken_out, bool *go_on_out)
{
	struct vi_vi *vi = ch->vi;
	int moved = 0;

	if (!u_biased_try(&vi->rx_lock))
		return 0;
	if (vi->chan == ch) {
		if (by_app)
			atomic_store_explicit(
				&ch->rx.app_polls,
				atomic_load_explicit(&ch->rx.app_polls, memory_order_relaxed) + 1,
				memory_order_relaxed);
		if (nvi_rx_ready(ch)) {
			moved = nvi_rx(ch, NVI_RX_BATCH);
			nvi_break_after_rx(ch);
		} else {
			u_poll_empty();
		}
		*broken_out = nvi_chan_lives(ch) && nvi_chan_breaks(ch);
		*go_on_out = tx_can_go_on(ch);
	}
	u_biased_drop(&vi->rx_lock);
	return moved;
}

/* Takes in credit, checks direct writes and sends, unless another thread holds tx_lock.  Nonzero: something moved. */
static int progress_tx(struct nvi_chan *ch)
{
	struct vi_vi *vi = ch->vi;
	int moved = 0;

	if (!u_biased_try(&vi->tx_lock))
		return 0;
	if (vi->chan == ch)
		moved = nvi_writes_check(ch);
	if (vi->chan == ch)
		moved |= nvi_tx_progress(ch);
	nvi_break_after_tx(ch);
	u_biased_drop(&vi->tx_lock);
	return moved;
}

int nvi_progress_chan(struct nvi_chan *ch, bool by_app)
{
	bool broken = false;
	/* If rx_lock is free, progress_rx() checks if the peer has written anything. */
	bool go_on = atomic_load_explicit(&ch->tx.waiting, memory_order_relaxed) != 0;
	int moved = progress_rx(ch, by_app, &broken, &go_on);

	if (go_on)
		moved += progress_tx(ch);
	if (u_unlikely(broken)) {
		nvi_chan_check_breaks(ch);
		moved++;
	}
	if (moved != 0 && atomic_load_explicit(&ch->arm.by_app, memory_order_relaxed) != by_app)
		atomic_store_explicit(&ch->arm.by_app, by_app, memory_order_relaxed);
	return moved;
}

int nvi_progress_vi(struct vi_vi *vi)
{
	struct nvi_chan *ch = vi->prov;

	return ch != NULL ? nvi_progress_chan(ch, true) : 0;
}

/* ---- all channels ---------------------------------------------------------------------------- */

/*
 * May there be something to do on the channel?  Without `all`, no if it is polled and the application was last there.
 * Caller holds chan_lock.
 */
static bool wants_progress(const struct nvi_chan *ch, bool all)
{
	if (!all && atomic_load_explicit(&ch->arm.armed, memory_order_relaxed) == 0 &&
	    atomic_load_explicit(&ch->arm.by_app, memory_order_relaxed) != 0)
		return false;
	if (atomic_load_explicit(&ch->arm.armed, memory_order_relaxed) != 0)
		return nvi_chan_came(ch);
	return nvi_chan_ready(ch) ||
	       atomic_load_explicit(&ch->tx.waiting, memory_order_relaxed) != 0;
}

int nvi_scan(struct nvi_nic *nic, bool all)
{
	enum { BATCH = 64 };
	struct nvi_chan *ready[BATCH];
	uint32_t from = UINT32_MAX, count;
	bool disarmed = false;
	int moved = 0;

	/*
	 * Goes through the list downwards: a channel that is unlisted is replaced by the last one,
	 * which was seen before.
	 */
	do {
		count = 0;
		u_lock_take(&nic->chan_lock);
		if (from > nic->chan_count)
			from = nic->chan_count;
		for (; from > 0 && count < BATCH; from--) {
			struct nvi_chan *ch = nic->chans[from - 1];

			if (!wants_progress(ch, all))
				continue;
			/*
			 * The channel is polled from now on, even if progress fails because another
			 * thread has its lock: the peer has rung for the notify request and does
			 * not ring again.
			 */
			disarmed |= nvi_make_polled(ch);
			ready[count++] = ch;
		}
		u_lock_drop(&nic->chan_lock);
		/*
		 * Channels outlive their connections: progress on one that has closed since does
		 * nothing.
		 */
		for (uint32_t i = 0; i < count; i++)
			moved += nvi_progress_chan(ready[i], false) != 0;
	} while (from > 0);
	if (disarmed)
		nvi_engine_kick(nic);
	if (moved == 0)
		u_poll_empty();
	return moved;
}

void nvi_unpolled(struct vi_vi *vi)
{
	struct nvi_chan *ch = vi->prov;
	struct nvi_nic *nic = vi->nic->prov;

	if (ch == NULL || nic == NULL)
		return;
	atomic_store_explicit(&ch->arm.by_app, 0, memory_order_relaxed);
	if (nvi_arm_polled(nic, NVI_ARM_ENGINE) != 0)
		nvi_scan(nic, true);
}

int nvi_progress(struct vi_nic *vi_nic)
{
	struct nvi_nic *nic = vi_nic->prov;

	nvi_rung(nic);
	return nvi_scan(nic, true);
}

bool nvi_doorbell_rung(struct vi_nic *vi_nic)
{
	return nvi_rung(vi_nic->prov);
}
