/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A write into granted memory is a store: it needs no slot and no other copy, and is complete when
 * the post returns.  If a completion has to mean that the write arrived, it comes with the next
 * check, which flushes the link for all such writes (nvi_writes_flush()).
 *
 * Order: a write may not overtake the VI's earlier messages, so it is direct only when the peer has
 * consumed every slot; slots of writes ask for credit at once.  Later messages are published after
 * a fence, and only after all writes that may be lost were flushed.
 */
#include <errno.h>

#include "nvi_credit.h"
#include "nvi_fault.h"
#include "nvi_store.h"
#include "nvi_write.h"
#include "vi_wq_hot.h"

/* ---- completing ------------------------------------------------------------------------------ */

static void count_write(struct nvi_chan *ch, uint64_t bytes)
{
	ch->vi->counters.RdmaWrites++;
	ch->vi->counters.MessagesSent++;
	ch->vi->counters.BytesSent += bytes;
}

/* The first n of the unflushed writes have arrived: completes them. */
static void complete_writes(struct nvi_chan *ch, uint32_t n)
{
	struct vi_wq *sq = &ch->vi->sq;

	for (uint32_t at = sq->next - ch->tx.unflushed; n > 0; at++, n--) {
		count_write(ch, vi_wqe(sq, at)->length);
		ch->tx.unflushed--;
		nvi_complete_send(sq, at, 0);
	}
}

/*
 * The unflushed writes may have been lost with the link: puts them back into the send queue and drops all grants or, if
 * the channel is not resumable, marks the fault.
 */
static void writes_lost(struct nvi_chan *ch)
{
	if (ch->retx == NULL) {
		nvi_fault_tx(ch, (struct nvi_fault){ NVI_BREAK_LOST, W_ERR_NONE, 0, 0 });
		return;
	}
	ch->vi->sq.next -= ch->tx.unflushed;
	ch->tx.unflushed = 0;
	nvi_grants_drop(ch);
}

bool nvi_writes_settle(struct nvi_chan *ch)
{
	if (ch->tx.unflushed == 0)
		return true;
	if (u_unlikely(!nvi_link_stands(ch->port_use, ch->generation)))
		return false;
	complete_writes(ch, ch->tx.unflushed);
	return true;
}

bool nvi_writes_flush(struct nvi_chan *ch)
{
	if (u_likely(nvi_writes_settle(ch)))
		return true;
	writes_lost(ch);
	return false;
}

int nvi_writes_check(struct nvi_chan *ch)
{
	struct nvi_port *port = ch->port_use;
	uint32_t stores = ch->tx.stores, generation = ch->generation, since;
	bool stands;

	if (u_likely(ch->tx.unflushed == 0))
		return 0;
	atomic_fetch_add_explicit(&port->users, 1, memory_order_relaxed);
	u_biased_drop(&ch->vi->tx_lock);
	stands = nvi_link_stands(port, generation);
	u_biased_take(&ch->vi->tx_lock);
	nvi_port_put(port);
	/*
	 * While tx_lock was free, other writes may have been stored, and earlier ones flushed or
	 * taken back.
	 */
	since = ch->tx.stores - stores;
	if (ch->vi->chan != ch || ch->tx.unflushed <= since)
		return 0;
	if (u_likely(stands))
		complete_writes(ch, ch->tx.unflushed - since);
	else
		writes_lost(ch);
	return 1;
}

/*
 * Completes a write that was just stored, or counts it as unflushed if that has to wait for a flush.  Returns
 * NVI_METHOD_DONE.
 */
static inline enum nvi_write_method finish_write(struct nvi_chan *ch, struct vi_wqe *wqe)
{
	struct vi_wq *sq = &ch->vi->sq;

	wqe->mark = wqe->first = ch->tx.seq;
	sq->next++;
	if (ch->retx != NULL || ch->level == VIP_SERVICE_RELIABLE_RECEPTION) {
		ch->tx.unflushed++;
		ch->tx.stores++;
		atomic_store_explicit(&ch->tx.more, true, memory_order_relaxed);
		return NVI_METHOD_DONE;
	}
	count_write(ch, wqe->length);
	if (u_likely(wqe->tpt_version == vi_tpt_version(&ch->vi->nic->tpt)))
		vi_wq_complete_next(sq, false, wqe, VIP_STATUS_OP_RDMA_WRITE, wqe->length);
	else
		nvi_complete_send(sq, sq->next - 1, 0);
	return NVI_METHOD_DONE;
}

/* ---- posting --------------------------------------------------------------------------------- */

/* Has the peer consumed every slot, and is every send complete, but for direct writes?  Takes in credit. */
static inline bool all_consumed(struct nvi_chan *ch)
{
	if (atomic_load_explicit(&ch->tx.credit, memory_order_relaxed) != ch->tx.seq &&
	    (nvi_tx_credit(ch) <= 0 ||
	     atomic_load_explicit(&ch->tx.credit, memory_order_relaxed) != ch->tx.seq))
		return false;
	return nvi_sq_done(&ch->vi->sq) + ch->tx.unflushed == ch->vi->sq.next;
}

bool nvi_write_unqueued(struct vi_vi *vi, const uint8_t *at, uint32_t n, uint64_t addr,
			uint32_t handle)
{
	struct nvi_chan *ch = vi->chan;
	struct nvi_grant *g = nvi_grant_find(ch, handle);

	if (u_unlikely(g == NULL || !nvi_grant_covers(g, addr, n) || n > NVI_DIRECT_MAX ||
		       ch->level == VIP_SERVICE_RELIABLE_RECEPTION || ch->tx.msg.op != 0 ||
		       !all_consumed(ch) || nvi_chan_breaks(ch)))
		return false;
	nvi_store_piece(&g->map.out, nvi_grant_at(g, addr), at, n, 0);
	u_out_fence(&g->map.out);
	g->uses++;
	count_write(ch, n);
	return true;
}

bool nvi_write_waits(const struct nvi_chan *ch, uint32_t n)
{
	return ch->tx.asked == ch->tx.seq &&
	       (n >= NVI_WRITE_WAIT ||
		(ch->tx.write_run >= NVI_WRITE_RUN && ch->tx.write_end == ch->tx.seq));
}

enum nvi_write_method nvi_write_queued(struct nvi_chan *ch, struct vi_wqe *wqe)
{
	const uint32_t plain = VIP_CONTROL_OP_MASK | VIP_CONTROL_IMMEDIATE | VIP_CONTROL_RESERVED;
	VIP_ADDRESS_SEGMENT remote;
	struct nvi_grant *g;

	if ((wqe->control & plain) != VIP_CONTROL_OP_RDMAWRITE || wqe->segs < 2 ||
	    wqe->length == 0 || wqe->length > NVI_DIRECT_MAX || ch->tx.msg.op != 0)
		return NVI_METHOD_SLOTS;
	remote = *vi_wqe_remote(wqe);
	g = nvi_grant_for_write(ch, &remote, wqe->length);
	if (g == NULL || u_unlikely(nvi_chan_breaks(ch)))
		return NVI_METHOD_SLOTS;
	if (!all_consumed(ch))
		return nvi_write_waits(ch, wqe->length) ? NVI_METHOD_WAIT : NVI_METHOD_SLOTS;
	if (nvi_store(ch, g, wqe, remote.Data.AddressBits) != 0)
		return NVI_METHOD_SLOTS;
	return finish_write(ch, wqe);
}
