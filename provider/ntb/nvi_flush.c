/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A flush is over when every descriptor posted before it is complete, the peer has consumed every slot that was
 * published by then, and direct stores have arrived.  Credit shows the second, over relays as well; if the last slot
 * did not ask for credit, a slot that only asks for it is sent (nvi_tx_consumed()).  A flush of the port makes sure of
 * the third.  Within this host that is a fence of the processor, which every flush makes there: for stores of the
 * program through mappings (nvi_remote.c).
 *
 * Several threads may flush one VI.  Each has its own last slot; tx.drain_end is the last of all, also of a disconnect
 * and of a descriptor that waits to be refused.  A thread that waits no longer, since its time is over or it was
 * cancelled, leaves that as it is: the credit comes in any case.
 */
#include <errno.h>

#include "nvi_break.h"
#include "nvi_credit.h"
#include "nvi_flush.h"
#include "nvi_progress.h"
#include "nvi_publish.h"
#include "nvi_store.h"
#include "vi_wait.h"
#include "vi_wq_hot.h"

struct flush {
	struct nvi_chan *ch;
	uint32_t connection; /* the number of the connection that is flushed */
	uint32_t end;	     /* of the send queue, at the time of the call */
	uint32_t slots;	     /* published when all these descriptors were complete, */
	bool complete;	     /* all these descriptors are complete */
};

/* Notes the connection, and the end of its send queue now.  0 or -EISCONN.  Caller holds tx_lock. */
static int begin(struct flush *f)
{
	struct nvi_chan *ch = f->ch;

	if (ch->vi->chan != ch || vi_state(ch->vi) != VIP_STATE_CONNECTED)
		return -EISCONN;
	f->connection = ch->rx.connection;
	f->end = ch->vi->sq.tail;
	return 0;
}

/*
 * Makes sure that direct stores have arrived.  False: the link was lost, and stores may be with it.  On a resumable
 * channel they had arrived when they completed.
 */
static bool stores_arrived(struct nvi_chan *ch)
{
	if (ch->hops == 0) {
		port_flush(ch->port);
		return true;
	}
	atomic_thread_fence(memory_order_seq_cst);
	return ch->retx != NULL || ch->tx.grants_held == 0 ||
	       nvi_link_stands(ch->port_use, ch->generation);
}

/*
 * Checks the flush; asks the peer for credit, and may mark a fault.  1: done; 0: not yet; -EISCONN: the connection is
 * gone.  Caller holds tx_lock.
 */
static int check(struct flush *f)
{
	struct nvi_chan *ch = f->ch;

	if (ch->vi->chan != ch || vi_state(ch->vi) != VIP_STATE_CONNECTED ||
	    ch->rx.connection != f->connection)
		return -EISCONN;
	if (!f->complete) {
		if ((int32_t)(nvi_sq_done(&ch->vi->sq) - f->end) < 0)
			return 0;
		f->complete = true;
		f->slots = ch->tx.seq;
	}
	if (!nvi_tx_consumed(ch, f->slots))
		return 0;
	return stores_arrived(ch) ? 1 : -EISCONN;
}

/*
 * For vi_wait(): makes progress, then checks the flush, as check() does.  1: done; 0: not yet; -EISCONN: the connection
 * is gone.  Takes tx_lock.
 */
static int try_flush(void *arg)
{
	struct flush *f = arg;
	int got;

	nvi_progress_chan(f->ch, true);
	u_biased_take(&f->ch->vi->tx_lock);
	got = check(f);
	nvi_break_after_tx(f->ch);
	u_biased_drop(&f->ch->vi->tx_lock);
	return got;
}

int nvi_flush(struct vi_vi *vi, int64_t deadline)
{
	struct flush f = { .ch = vi->prov };
	int got;

	u_biased_take(&vi->tx_lock);
	got = begin(&f);
	if (got == 0)
		got = check(&f);
	nvi_break_after_tx(f.ch);
	u_biased_drop(&vi->tx_lock);
	if (got == 0)
		got = vi_wait(vi->nic, &vi->sq.awaited, &vi->ref, try_flush, &f, deadline);
	return got;
}
