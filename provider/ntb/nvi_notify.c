/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>

#include "nvi_notify.h"
#include "u_trace.h"

/* ---- the sender's half ----------------------------------------------------------------------- */

void nvi_ring(struct nvi_chan *ch)
{
	atomic_fetch_add_explicit(&ch->nic->rung, 1, memory_order_relaxed);
	U_TRACE(bell_rung, ch, ch->db_mask);
	port_peer_db_ring(ch->port, ch->db_mask);
}

/* Returns the notify request, loaded again after a fence if it asks for one. */
static uint32_t notify_fenced(const struct nvi_chan *ch, uint32_t notify)
{
	if ((notify & W_NOTIFY_FENCE) == 0)
		return notify;
	atomic_thread_fence(memory_order_seq_cst);
	return atomic_load_explicit(&ch->in_ctl->notify, memory_order_relaxed);
}

void nvi_ring_slots_slow(struct nvi_chan *ch, uint32_t notify)
{
	notify = notify_fenced(ch, notify);
	if (notify != ch->tx.rung && w_notify_due(notify, ch->tx.seq)) {
		ch->tx.rung = notify;
		nvi_ring(ch);
	}
}

void nvi_ring_credit_slow(struct nvi_chan *ch, uint32_t notify)
{
	if (notify_fenced(ch, notify) & W_NOTIFY_CREDIT)
		nvi_ring(ch);
}

/* ---- the list -------------------------------------------------------------------------------- */

int nvi_chan_list(struct nvi_chan *ch)
{
	struct nvi_nic *nic = ch->nic;
	int err = 0;

	u_lock_take(&nic->chan_lock);
	if (nic->chan_count == nic->chan_cap) {
		uint32_t cap = nic->chan_cap ? nic->chan_cap * 2 : 16;
		struct nvi_chan **chans = realloc(nic->chans, cap * sizeof(*chans));

		if (chans == NULL) {
			err = -ENOMEM;
		} else {
			nic->chans = chans;
			nic->chan_cap = cap;
		}
	}
	if (err == 0) {
		ch->arm.index = nic->chan_count;
		nic->chans[nic->chan_count++] = ch;
		ch->arm.listed = true;
		ch->arm.seen_polls = atomic_load_explicit(&ch->rx.app_polls, memory_order_relaxed);
		atomic_store_explicit(&ch->arm.armed, 0, memory_order_relaxed);
		atomic_fetch_add_explicit(&nic->polled, 1, memory_order_relaxed);
	}
	u_lock_drop(&nic->chan_lock);
	if (err == 0)
		nvi_engine_kick(nic);
	return err;
}

void nvi_chan_unlist(struct nvi_chan *ch)
{
	struct nvi_nic *nic = ch->nic;

	u_lock_take(&nic->chan_lock);
	if (ch->arm.listed) {
		nic->chans[ch->arm.index] = nic->chans[--nic->chan_count];
		nic->chans[ch->arm.index]->arm.index = ch->arm.index;
		ch->arm.listed = false;
		if (atomic_load_explicit(&ch->arm.armed, memory_order_relaxed) == 0)
			atomic_fetch_sub_explicit(&nic->polled, 1, memory_order_relaxed);
		atomic_store_explicit(&ch->arm.armed, 0, memory_order_relaxed);
	}
	u_lock_drop(&nic->chan_lock);
}

/* ---- polled again ---------------------------------------------------------------------------- */

bool nvi_make_polled(struct nvi_chan *ch)
{
	if (atomic_load_explicit(&ch->arm.armed, memory_order_relaxed) == 0)
		return false;
	atomic_store_explicit(&ch->arm.armed, 0, memory_order_relaxed);
	atomic_fetch_add_explicit(&ch->nic->polled, 1, memory_order_seq_cst);
	u_out_store32(&ch->out, &ch->out_ctl->notify, ch->arm.polled_notify);
	return true;
}

void nvi_disarm_slow(struct nvi_chan *ch)
{
	u_lock_take(&ch->nic->chan_lock);
	if (ch->arm.listed) {
		nvi_make_polled(ch);
		ch->arm.seen_polls = atomic_load_explicit(&ch->rx.app_polls, memory_order_relaxed);
	}
	u_lock_drop(&ch->nic->chan_lock);
	nvi_engine_kick(ch->nic);
}
