/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <string.h>

#include "nvi_advert.h"
#include "nvi_break.h"
#include "nvi_conn.h"
#include "nvi_credit.h"
#include "nvi_fast.h"
#include "nvi_grant.h"
#include "nvi_notify.h"
#include "nvi_parts.h"
#include "nvi_remote.h"
#include "nvi_rx.h"
#include "nvi_write.h"
#include "vi_wq_hot.h"

/* ---- opening --------------------------------------------------------------------------------- */

/* Resets the channel's state for a new connection.  Caller holds both locks. */
static void reset_state(struct nvi_chan *ch)
{
	ch->tx.seq = ch->tx.rung = ch->tx.asked = ch->tx.came = ch->tx.nop_end = 0;
	ch->tx.limit = ch->out_mask + 1;
	ch->tx.drains = ch->tx.refuses = false;
	ch->tx.write_run = ch->tx.write_end = 0;
	ch->tx.run_bytes = 0;
	ch->tx.unflushed = 0;
	atomic_store(&ch->tx.more, false);
	ch->tx.cursor = ch->tx.consumed = ch->tx.freed = ch->tx.turn = 0;
	memset(&ch->tx.msg, 0, sizeof(ch->tx.msg));
	memset(&ch->rx.msg, 0, sizeof(ch->rx.msg));
	atomic_store(&ch->tx.credit, 0);
	atomic_store(&ch->tx.read_tail, 0);
	atomic_store(&ch->rx.read_head, 0);
	atomic_store(&ch->tx.waiting, 0);
	atomic_store(&ch->rx.seq, 0);
	ch->rx.credited = 0;
	ch->rx.cursor = ch->rx.cursor_credited = 0;
	ch->rx.due = ch->in_mask / 4 + 1;
	ch->rx.two_lines = false;
	ch->rx.streak = 0;
	ch->rx.stream = (struct w_stream){ .max_length = (uint32_t)ch->vi->max_transfer,
					   .payload_bytes = ch->in_payload_bytes };
	atomic_store(&ch->answers.head, 0);
	atomic_store(&ch->answers.tail, 0);
	atomic_store(&ch->breaking.faults, 0);
	atomic_store(&ch->arm.by_app, 0);
	atomic_store(&ch->arm.armed, 0);
	ch->arm.polled_notify = ch->arm.quiet = ch->arm.moves = 0;
	ch->tx.grant_last = ch->tx.grants;
	ch->tx.wrote = ch->tx.direct_writes = ch->tx.unheard = false;
	ch->tx.acked = ch->tx.others = 0;
	ch->tx.rdma_end = ch->tx.bytes_end = ch->tx.placed_at = ch->tx.placed_end = 0;
	ch->breaking.reported = false;
	ch->level = ch->vi->level;
}

/*
 * Makes the VI Connected, over these parts.  0; -ETIMEDOUT: its attempt has ended; -EHOSTUNREACH: the link has changed
 * since the parts were made; -ENOMEM.  On failure the parts stay the caller's.  Caller holds both locks.
 */
static int connect(struct nvi_chan *ch, const struct w_linked *linked, struct nvi_parts *p)
{
	struct vi_vi *vi = ch->vi;
	int err;

	/* VipDisconnect() may have ended the attempt: then the connection is not wanted. */
	if (vi_state(vi) != VIP_STATE_CONNECT_PENDING || ch->attempt != linked->token)
		return -ETIMEDOUT;
	nvi_chan_place(ch, linked, p);
	reset_state(ch);
	err = nvi_chan_list(ch);
	if (err != 0)
		return err;
	/* From here on nvi_check_links() sees changes of the link; an earlier change is seen here. */
	if (nvi_port_generation(p->port) != p->generation) {
		nvi_chan_unlist(ch);
		return -EHOSTUNREACH;
	}
	vi->chan = ch;
	vi->fast = ch->retx != NULL ? &nvi_fast_resumable : &nvi_fast;
	vi->counters.ConnectionsOpened++;
	vi_set_state(vi, VIP_STATE_CONNECTED);
	nvi_adverts_begin(ch);
	/* Sends at reception level complete later, and nvi_send_unqueued() stores into memory. */
	if (ch->level == VIP_SERVICE_RELIABLE_RECEPTION || (ch->retx == NULL && !ch->plain))
		vi->unqueued_max = 0;
	if (vi->sq.cq != NULL)
		vi_cq_mark(&vi->sq);
	if (vi->rq.cq != NULL)
		vi_cq_mark(&vi->rq);
	return 0;
}

int nvi_chan_open(struct nvi_nic *nic, struct vi_vi *vi, const struct w_linked *linked, int fd_in,
		  int fd_out)
{
	struct nvi_parts parts = { 0 };
	int err = nvi_parts_make(nic, linked, fd_in, fd_out, &parts);

	if (err == 0) {
		vi_lock_both(vi);
		err = connect(vi->prov, linked, &parts);
		vi_unlock_both(vi);
	}
	if (err != 0)
		nvi_parts_free(&parts);
	return err;
}

/* ---- taking apart ---------------------------------------------------------------------------- */

/* Ends grants and mappings of the connection, and frees its parts.  Caller holds both locks. */
static void disconnect(struct nvi_chan *ch)
{
	struct nvi_parts parts = { .port = ch->port_use,
				   .in = ch->in_map,
				   .out = ch->out_map,
				   .payload_after = ch->tx.after,
				   .retx = ch->retx,
				   .placeholder_mem = ch->placeholder_mem,
				   .placeholder_bytes = ch->placeholder_bytes };

	nvi_chan_unlist(ch);
	nvi_grants_drop(ch);
	nvi_remotes_end(ch);
	nvi_parts_free(&parts);
	ch->port_use = NULL;
	ch->tx.after = NULL;
	ch->retx = NULL;
	ch->placeholder_mem = NULL;
}

/*
 * Makes the last exchange: takes in the peer's credit, and returns credit for all slots consumed here.  Nothing is sent
 * after it.
 */
static void poll_last(struct nvi_chan *ch)
{
	nvi_tx_credit(ch);
	nvi_writes_settle(ch);
	if (vi_state(ch->vi) == VIP_STATE_CONNECTED) {
		nvi_rx_return_credit(ch);
		port_flush(ch->port);
	}
	nvi_stop_sending(ch);
}

uint64_t nvi_chan_close(struct vi_vi *vi)
{
	struct nvi_chan *ch = vi->prov;
	uint64_t conn;
	bool open;

	nvi_chan_unwatch(ch);
	vi_lock_both(vi);
	open = vi->chan == ch;
	if (open)
		poll_last(ch);
	nvi_wake_closer(ch);
	vi->chan = NULL;
	ch->breaking.draining = false;
	vi->fast = &vi_fast_none;
	vi_wq_flush(&vi->sq, VIP_STATUS_DESC_FLUSHED_ERROR);
	vi_wq_flush(&vi->rq, VIP_STATUS_DESC_FLUSHED_ERROR);
	vi_set_state(vi, VIP_STATE_IDLE);
	ch->attempt = 0;
	if (open)
		disconnect(ch);
	nvi_chan_unwatched(ch);
	vi_unlock_both(vi);
	conn = open ? nvi_chan_conn(ch) : 0;
	return nvi_chan_forget(ch->nic, ch, conn) ? conn : 0;
}
