/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Decides when a process rings its peer's doorbell.
 *
 * A channel is either *polled* or *armed*.  While it is polled, a thread of its process checks it
 * again and again, and the peer sends without ringing.  While it is armed, the peer has a notify
 * request of this process, and rings once, when it has published the slot that the request names.
 * An armed channel becomes polled when anything moves on it, because the peer rings only once for
 * a notify request; the engine arms the channels that no thread polls.  So a poll checks the channels
 * that are busy and one doorbell word, however many connections there are.
 *
 * No wake-up is lost.  The side that arms (a) writes the notify request to the peer, (b) flushes,
 * (c) passes a barrier on behalf of the peer (membarrier), then (d) checks its slots and credit
 * once more.  The peer publishes, then loads the notify request from its own memory.  Either (d)
 * finds the slot or the credit, or the peer finds the request.  Without membarrier the sender
 * passes the fence itself (must_fence).
 *
 * (c) interrupts the peer's processor.  If the peer sends little between two sleeps, fences of the peer cost less.
 * Then the notify request asks for them (W_NOTIFY_FENCE), and keeps asking while the channel is polled.  The barrier
 * after the first such request is the last one: from then on every request that the peer can load asks for the
 * fence.  tests/model/ has the models of this.
 */
#include "nvi_arm.h"
#include "nvi_notify.h"
#include "nvi_rx.h"
#include "u_membarrier.h"

/* With fewer slots than this between two armings, the peer's fences cost less than a barrier. */
#define FEW_MOVES 32u
/* after this many armings in a row with so few slots, the peer is asked for fences */
#define QUIET_ARMS 8u

/* ---- has anything come? ---------------------------------------------------------------------- */

bool nvi_chan_ready(const struct nvi_chan *ch)
{
	/* A broken connection consumes no slot, even if some were published. */
	if (vi_state(ch->vi) == VIP_STATE_CONNECTED)
		return nvi_rx_ready(ch) || nvi_chan_breaks(ch);
	return nvi_chan_lives(ch) && nvi_chan_breaks(ch);
}

/* Does a send wait for credit, and has either some come, or was the peer not asked to ring for it? */
static bool credit_missed(const struct nvi_chan *ch)
{
	if (atomic_load_explicit(&ch->tx.waiting, memory_order_relaxed) == 0)
		return false;
	return (atomic_load_explicit(&ch->arm.armed, memory_order_relaxed) & W_NOTIFY_CREDIT) ==
		       0 ||
	       atomic_load_explicit(&ch->in_ctl->credit, memory_order_acquire) !=
		       atomic_load_explicit(&ch->tx.credit, memory_order_relaxed);
}

bool nvi_chan_came(const struct nvi_chan *ch)
{
	return nvi_chan_ready(ch) ||
	       atomic_load_explicit(&ch->rx.seq, memory_order_acquire) != ch->arm.slot ||
	       atomic_load_explicit(&ch->tx.more, memory_order_relaxed) || credit_missed(ch);
}

bool nvi_rung(struct nvi_nic *nic)
{
	uint32_t ticket = port_irq_ticket(nic->irq);
	bool rung = false;

	if (u_likely(ticket == atomic_load_explicit(&nic->ticket_seen, memory_order_relaxed)))
		return false;
	atomic_store_explicit(&nic->ticket_seen, ticket, memory_order_relaxed);
	u_lock_take(&nic->chan_lock);
	for (unsigned int i = 0; i < PORT_PER_HOST; i++) {
		struct nvi_port *p = nic->ports[i];

		if (p != NULL && (port_db_read(p->port) & nic->db_mask) != 0) {
			port_db_clear(p->port, nic->db_mask);
			rung = true;
		}
	}
	u_lock_drop(&nic->chan_lock);
	if (rung)
		atomic_fetch_add_explicit(&nic->cleared, 1, memory_order_relaxed);
	return rung;
}

/* ---- fences of the peer ---------------------------------------------------------------------- */

/* Returns the number of slots that were consumed here and at the peer. */
static uint32_t moves(const struct nvi_chan *ch)
{
	return atomic_load_explicit(&ch->rx.seq, memory_order_relaxed) +
	       atomic_load_explicit(&ch->tx.credit, memory_order_relaxed);
}

/*
 * The channel is armed again: returns W_NOTIFY_FENCE if the peer shall fence, else 0.  Counts the arming, so it is
 * called once for each.  Caller holds chan_lock.
 */
static uint32_t choose_fences(struct nvi_chan *ch)
{
	uint32_t now = moves(ch);

	if (now - ch->arm.moves >= FEW_MOVES)
		ch->arm.quiet = 0;
	else if (ch->arm.quiet < QUIET_ARMS)
		ch->arm.quiet++;
	ch->arm.moves = now;
	return ch->arm.quiet == QUIET_ARMS ? W_NOTIFY_FENCE : 0;
}

/*
 * The application polls a channel for which it used to sleep: tells the peer that it need not fence any more, if
 * FEW_MOVES slots or more have moved since the last arming.  The channel is polled.  Caller holds chan_lock.
 */
static void stop_fences(struct nvi_chan *ch)
{
	if (ch->arm.polled_notify == 0 || moves(ch) - ch->arm.moves < FEW_MOVES)
		return;
	ch->arm.polled_notify = 0;
	ch->arm.quiet = 0;
	u_out_store32(&ch->out, &ch->out_ctl->notify, 0);
}

void nvi_stop_fences(struct nvi_nic *nic)
{
	u_lock_take(&nic->chan_lock);
	for (uint32_t i = 0; i < nic->chan_count; i++)
		if (atomic_load_explicit(&nic->chans[i]->arm.armed, memory_order_relaxed) == 0)
			stop_fences(nic->chans[i]);
	u_lock_drop(&nic->chan_lock);
}

/* ---- arming ---------------------------------------------------------------------------------- */

/*
 * Writes the notify request: the peer rings for the slot that it names and, if sends wait, for
 * credit.  The channel is armed with that, but nic->polled still counts it.  Returns true if the peer fences even if
 * it still reads the word before this one.  Caller holds chan_lock.
 */
static bool write_notify(struct nvi_chan *ch)
{
	uint32_t notify = W_NOTIFY_SLOT, fence = choose_fences(ch);
	bool fences = fence != 0 && ch->arm.polled_notify != 0;

	if (atomic_load_explicit(&ch->tx.waiting, memory_order_acquire) != 0)
		notify |= W_NOTIFY_CREDIT;
	ch->arm.slot = atomic_load_explicit(&ch->rx.seq, memory_order_acquire);
	notify = w_notify(notify | fence, ch->arm.slot);
	ch->arm.polled_notify = fence;
	atomic_store_explicit(&ch->arm.armed, notify, memory_order_relaxed);
	u_out_store32(&ch->out, &ch->out_ctl->notify, notify);
	u_out_fence(&ch->out);
	return fences;
}

/* Counts polls of the channel by the application, including those of a CQ that compares a word of it. */
static uint32_t polls_of(struct nvi_chan *ch)
{
	return atomic_load_explicit(&ch->rx.app_polls, memory_order_relaxed) +
	       vi_cq_watches(&ch->vi->rq);
}

/* Is the channel polled, and has the application polled it since the last NVI_ARM_IDLE? */
static bool was_polled(struct nvi_chan *ch)
{
	return atomic_load_explicit(&ch->arm.armed, memory_order_relaxed) == 0 &&
	       polls_of(ch) != ch->arm.seen_polls;
}

bool nvi_application_polls(struct nvi_nic *nic)
{
	bool yes = false;

	u_lock_take(&nic->chan_lock);
	for (uint32_t i = 0; i < nic->chan_count && !yes; i++)
		yes = was_polled(nic->chans[i]);
	u_lock_drop(&nic->chan_lock);
	return yes;
}

/*
 * Is the channel to stay polled, since the application polls it or holds its tx_lock?  `which` says how that is
 * judged: no for NVI_ARM_ALL; NVI_ARM_IDLE also notes the polls, for the next such call.
 */
static bool application_polls(struct nvi_chan *ch, enum nvi_arm_which which)
{
	uint32_t polls = polls_of(ch);
	bool yes = polls != ch->arm.seen_polls;

	if (which == NVI_ARM_ALL)
		return false;
	/*
	 * A thread that stores megabytes under tx_lock would wait for chan_lock next, and this
	 * thread would hold that while it flushes those stores.
	 */
	if (u_biased_held(&ch->vi->tx_lock))
		return true;
	if (atomic_load_explicit(&ch->arm.by_app, memory_order_relaxed) == 0)
		return false;
	if (which == NVI_ARM_ENGINE)
		return true;
	ch->arm.seen_polls = polls;
	return yes;
}

/* Flushes the stores through all ports of the NIC.  Caller holds chan_lock. */
static void flush_ports(struct nvi_nic *nic)
{
	for (unsigned int i = 0; i < PORT_PER_HOST; i++)
		if (nic->ports[i] != NULL)
			port_flush(nic->ports[i]->port);
}

/*
 * A thread of this process is about to sleep: rings if the answer to a read is outstanding and the peer is not armed.
 * If it was the peer's program that polled last, its engine would otherwise find the request only at the next tick.
 */
static void ring_for_reads(struct nvi_chan *ch)
{
	uint32_t notify = atomic_load_explicit(&ch->in_ctl->notify, memory_order_relaxed);

	if ((notify & W_NOTIFY_SLOT) == 0 &&
	    atomic_load_explicit(&ch->rx.read_head, memory_order_relaxed) !=
		    atomic_load_explicit(&ch->tx.read_tail, memory_order_relaxed))
		nvi_ring(ch);
}

int nvi_arm_polled(struct nvi_nic *nic, enum nvi_arm_which which)
{
	bool barrier = false;
	int came = 0;
	uint32_t armed = 0;

	if (atomic_load_explicit(&nic->polled, memory_order_acquire) == 0)
		return 0;
	u_lock_take(&nic->chan_lock);
	for (uint32_t i = 0; i < nic->chan_count; i++) {
		struct nvi_chan *ch = nic->chans[i];

		ch->arm.fresh = false;
		if (atomic_load_explicit(&ch->arm.armed, memory_order_relaxed) != 0)
			continue;
		if (application_polls(ch, which)) {
			stop_fences(ch);
			continue;
		}
		ch->arm.fresh = true;
		barrier |= !write_notify(ch);
		armed++;
	}
	if (armed > 0) {
		flush_ports(nic);
		if (barrier)
			u_membarrier();
		else
			u_membarrier_own();
		atomic_thread_fence(memory_order_seq_cst);
		for (uint32_t i = 0; i < nic->chan_count; i++) {
			struct nvi_chan *ch = nic->chans[i];

			if (!ch->arm.fresh)
				continue;
			if (!nvi_chan_came(ch)) {
				/*
				 * Counted as armed only now: a thread that finds no channel polled
				 * goes to sleep.
				 */
				atomic_fetch_sub_explicit(&nic->polled, 1, memory_order_seq_cst);
				if (which == NVI_ARM_ALL)
					ring_for_reads(ch);
				continue;
			}
			atomic_store_explicit(&ch->arm.armed, 0, memory_order_relaxed);
			u_out_store32(&ch->out, &ch->out_ctl->notify, ch->arm.polled_notify);
			/*
			 * The application did not poll it, though it may have been the last to move
			 * packets.
			 */
			atomic_store_explicit(&ch->arm.by_app, 0, memory_order_relaxed);
			came++;
		}
	}
	u_lock_drop(&nic->chan_lock);
	return came;
}
