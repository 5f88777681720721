/* SPDX-License-Identifier: BSD-2-Clause */
/* Channels: mapping the slices of a connection, breaking it, taking it apart. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "nvi.h"
#include "u_fd.h"
#include "u_futex.h"
#include "u_log.h"

const struct vi_fast_ops nvi_fast = {
	.send_now = nvi_send_now,
	.write_now = nvi_write_now,
	.post_send = nvi_post_send,
	.poll_recv = nvi_poll_recv,
	.progress = nvi_progress_vi,
	.unpolled = nvi_unpolled,
};

/*
 * A store that may be lost with the path is queued, and completes when it is seen to have arrived.
 */
static bool write_queued(struct vi_vi *vi, const uint8_t *at, uint32_t n, uint64_t addr,
			 uint32_t handle)
{
	return false;
}

const struct vi_fast_ops nvi_fast_resumable = {
	.send_now = nvi_send_resumable,
	.write_now = write_queued,
	.post_send = nvi_post_send,
	.poll_recv = nvi_poll_recv,
	.progress = nvi_progress_vi,
	.unpolled = nvi_unpolled,
};

static bool send_no_more(struct vi_vi *vi, const uint8_t *at, uint32_t n, uint16_t control,
			 uint32_t imm)
{
	return false;
}

static void post_no_more(struct vi_vi *vi)
{
	vi_wq_flush_new(&vi->sq, VIP_STATUS_DESC_FLUSHED_ERROR);
}

const struct vi_fast_ops nvi_fast_closing = {
	.send_now = send_no_more,
	.write_now = write_queued,
	.post_send = post_no_more,
	.poll_recv = nvi_poll_recv,
	.progress = nvi_progress_vi,
	.unpolled = nvi_unpolled,
};

/* A VI keeps its channel for ever: somebody may still look at one that has closed. */
struct nvi_chan *nvi_chan_get(struct vi_vi *vi)
{
	struct nvi_chan *ch = vi->prov;

	if (ch == NULL) {
		ch = aligned_alloc(U_LINE_PAIR, sizeof(*ch));
		if (ch == NULL)
			return NULL;
		memset(ch, 0, sizeof(*ch));
		ch->vi = vi;
	}
	ch->nic = vi->nic->prov;
	return ch;
}

/* ---- views of ports --------------------------------------------------------------------------- */

struct nvi_port *nvi_port_get(struct nvi_nic *nic, unsigned int index)
{
	struct nvi_port *p = NULL;

	if (index >= PORT_PER_HOST)
		return NULL;
	u_lock_take(&nic->chan_lock);
	p = nic->ports[index];
	if (p != NULL)
		atomic_fetch_add_explicit(&p->users, 1, memory_order_relaxed);
	u_lock_drop(&nic->chan_lock);
	return p;
}

void nvi_port_put(struct nvi_port *p)
{
	if (p != NULL && atomic_fetch_sub_explicit(&p->users, 1, memory_order_acq_rel) == 1) {
		port_close(p->port);
		free(p);
	}
}

uint32_t nvi_port_generation(const struct nvi_port *p)
{
	uint32_t generation = 0;

	return port_link_state(p->port, &generation) == PORT_LINK_UP ? generation : 0;
}

/* ---- opening -------------------------------------------------------------------------------- */

/* What the agent says of a slice is checked: it comes from the peer in part. */
static bool slice_ok(const struct w_geometry *g)
{
	return w_geometry_ok(g->slots, g->payload_bytes) &&
	       g->slice_len >= w_slice_bytes(g->slots, g->payload_bytes) && g->db_bit < PORT_DB_MAX;
}

static int map_slices(struct port *port, const struct w_linked *linked, int fd_in, int fd_out,
		      struct port_map *in, struct port_map *out)
{
	int err;

	if (!slice_ok(&linked->inbound) || !slice_ok(&linked->outbound))
		return -EPROTO;
	err = port_map(port, fd_in, linked->inbound.slice_len, PORT_INBOUND, in);
	if (err != 0)
		return err;
	err = port_map(port, fd_out, linked->outbound.slice_len, PORT_OUTBOUND, out);
	if (err != 0)
		port_unmap(port, in);
	return err;
}

static void place_inbound(struct nvi_chan *ch, const struct w_geometry *g)
{
	uint8_t *base = ch->in_map.base;

	ch->in_ctl = (struct w_control *)base;
	ch->in_slots = (struct w_slot *)(base + W_SLICE_FIFO);
	ch->in_payload = base + w_slice_payload(g->slots);
	ch->in_mask = g->slots - 1;
	ch->in_payload_bytes = g->payload_bytes;
}

static void place_outbound(struct nvi_chan *ch, const struct w_geometry *g)
{
	uint8_t *base = ch->out_map.base;

	ch->out = ch->out_map.out;
	ch->out_ctl = (struct w_control *)base;
	ch->out_slots = (struct w_slot *)(base + W_SLICE_FIFO);
	ch->out_payload = base + w_slice_payload(g->slots);
	ch->out_mask = g->slots - 1;
	ch->out_payload_bytes = g->payload_bytes;
	ch->plain = ch->out.ops == NULL && ch->retx == NULL;
	ch->out_frag_max = w_frag_max(g->payload_bytes);
	ch->db_mask = UINT32_C(1) << g->db_bit;
	ch->must_fence = g->must_fence != 0 || !u_membarrier_available();
}

/* A new connection starts from nothing. Caller holds both locks. */
static void reset_state(struct nvi_chan *ch)
{
	ch->tx_seq = ch->tx_rung = ch->tx_asked = 0;
	ch->tx_drains = false;
	ch->write_run = ch->write_end = 0;
	ch->tx_direct = 0;
	ch->tx_unflushed = 0;
	atomic_store(&ch->tx_more, false);
	ch->payload_cursor = ch->payload_freed = 0;
	memset(&ch->tx, 0, sizeof(ch->tx));
	memset(&ch->rx, 0, sizeof(ch->rx));
	atomic_store(&ch->tx_credit, 0);
	atomic_store(&ch->read_tail, 0);
	atomic_store(&ch->read_head, 0);
	atomic_store(&ch->tx_waiting, 0);
	atomic_store(&ch->rx_seq, 0);
	ch->rx_credited = 0;
	ch->rx_cursor = ch->rx_cursor_credited = 0;
	ch->rx_ack = ch->rx_two_lines = false;
	ch->rx_streak = 0;
	ch->stream = (struct w_stream){ .max_length = (uint32_t)ch->vi->max_transfer,
					.payload_bytes = ch->in_payload_bytes };
	atomic_store(&ch->answer_head, 0);
	atomic_store(&ch->answer_tail, 0);
	atomic_store(&ch->faults, 0);
	atomic_store(&ch->by_app, 0);
	atomic_store(&ch->armed, 0);
	ch->polled_notify = ch->quiet_arms = ch->armed_moves = 0;
	ch->grant_last = ch->grants;
	ch->reported = false;
	ch->level = ch->vi->level;
}

void nvi_parts_free(struct nvi_parts *p)
{
	if (p->port != NULL) {
		port_unmap(p->port->port, &p->in);
		port_unmap(p->port->port, &p->out);
	}
	nvi_port_put(p->port);
	free(p->payload_after);
	free(p->retx);
	free(p->placeholder_mem);
}

static int make_books(const struct w_linked *linked, struct nvi_parts *p)
{
	uint32_t slots = linked->outbound.slots;

	p->payload_after = calloc(slots, sizeof(*p->payload_after));
	if (linked->resumable)
		p->retx = calloc(slots, sizeof(*p->retx));
	return p->payload_after == NULL || (linked->resumable && p->retx == NULL) ? -ENOMEM : 0;
}

int nvi_parts_make(struct nvi_nic *nic, const struct w_linked *linked, int fd_in, int fd_out,
		   struct nvi_parts *p)
{
	/* Descriptors, the port's too, are missing when this process has no numbers for them. */
	int err = -EMFILE;
	char text[U_FD_ERROR];

	p->port = nvi_port_get(nic, linked->port);
	p->generation = p->port != NULL ? nvi_port_generation(p->port) : 0;
	if (make_books(linked, p) != 0)
		err = -ENOMEM;
	else if (p->port != NULL && p->generation == 0)
		err = -EHOSTUNREACH;
	else if (p->port != NULL && fd_in >= 0 && fd_out >= 0)
		err = map_slices(p->port->port, linked, fd_in, fd_out, &p->in, &p->out);
	if (err == -EMFILE)
		u_log_ratelimited(&nic->unattached, "a connection cannot be made: %s",
				  u_fd_error(EMFILE, text));
	if (fd_in >= 0)
		close(fd_in);
	if (fd_out >= 0)
		close(fd_out);
	return err;
}

void nvi_chan_place(struct nvi_chan *ch, const struct w_linked *linked, const struct nvi_parts *p)
{
	ch->port = p->port->port;
	ch->port_use = p->port;
	ch->generation = p->generation;
	ch->hops = linked->hops;
	ch->in_map = p->in;
	ch->out_map = p->out;
	ch->payload_after = p->payload_after;
	ch->retx = p->retx;
	place_inbound(ch, &linked->inbound);
	place_outbound(ch, &linked->outbound);
}

/* Caller holds both locks. */
static int connect(struct nvi_chan *ch, const struct w_linked *linked, struct nvi_parts *p)
{
	struct vi_vi *vi = ch->vi;
	int err;

	/* VipDisconnect() may have come between: then nobody wants this connection. */
	if (vi_state(vi) != VIP_STATE_CONNECT_PENDING || ch->attempt != linked->token)
		return -ETIMEDOUT;
	nvi_chan_place(ch, linked, p);
	reset_state(ch);
	err = nvi_chan_list(ch);
	if (err != 0)
		return err;
	/* From here on nvi_check_links() sees a change of the link; one before is seen here. */
	if (nvi_port_generation(p->port) != p->generation) {
		nvi_chan_unlist(ch);
		return -EHOSTUNREACH;
	}
	vi->chan = ch;
	vi->fast = ch->retx != NULL ? &nvi_fast_resumable : &nvi_fast;
	vi->counters.ConnectionsOpened++;
	vi_set_state(vi, VIP_STATE_CONNECTED);
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

/* ---- faults ---------------------------------------------------------------------------------- */

/* The engine looks at the channel, for the case that the thread that found it cannot break. */
static void fault_found(struct nvi_chan *ch, uint32_t which)
{
	atomic_fetch_or_explicit(&ch->faults, which, memory_order_relaxed);
	atomic_store_explicit(&ch->by_app, 0, memory_order_relaxed);
	nvi_disarm(ch);
	nvi_engine_kick(ch->nic);
}

void nvi_fault_tx(struct nvi_chan *ch, struct nvi_fault fault)
{
	if (nvi_chan_has_fault(ch, NVI_FAULT_TX))
		return;
	ch->tx_fault = fault;
	fault_found(ch, NVI_FAULT_TX);
}

void nvi_fault_rx(struct nvi_chan *ch, struct nvi_fault fault)
{
	if (nvi_chan_has_fault(ch, NVI_FAULT_RX))
		return;
	ch->rx_fault = fault;
	fault_found(ch, NVI_FAULT_RX);
}

/* ---- breaking ------------------------------------------------------------------------------- */

/* Credit for what was consumed, then the report, then a ring whether asked for or not. */
static void report_to_peer(struct nvi_chan *ch, enum w_err err, uint32_t slot)
{
	if (ch->reported)
		return;
	ch->reported = true;
	nvi_rx_return_credit(ch);
	u_out_store64(&ch->out, &ch->out_ctl->error, w_error_word(slot, err));
	u_out_fence(&ch->out);
	nvi_ring(ch);
}

/* The first started and incomplete send (from entry n on) completes with `bits`. */
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

/* What was under way when the peer vanished may have arrived in part. */
static void fail_outstanding(struct nvi_chan *ch)
{
	fail_send(ch, nvi_sq_done(&ch->vi->sq),
		  VIP_STATUS_TRANSPORT_ERROR | VIP_STATUS_PARTIAL_ERROR);
	if (ch->rx.has_entry) {
		ch->rx.has_entry = false;
		vi_wq_complete(&ch->vi->rq, ch->rx.entry,
			       VIP_STATUS_OP_RECEIVE | VIP_STATUS_TRANSPORT_ERROR |
				       VIP_STATUS_PARTIAL_ERROR,
			       0);
	}
}

/* Is entry n, which was started, a send that the peer may have and has not acknowledged? */
static bool is_out(const struct nvi_chan *ch, uint32_t n, const struct vi_wqe *wqe)
{
	const struct vi_wq *sq = &ch->vi->sq;

	if ((wqe->control & VIP_CONTROL_OP_MASK) == VIP_CONTROL_OP_RDMAREAD ||
	    sq->next - n <= ch->tx_unflushed || (int32_t)(ch->tx_seq - wqe->mark) < 0)
		return false;
	return ch->tx.op == 0 || ch->tx.op == W_OP_READ_RESP || ch->tx.entry != n;
}

/* Flushes the send queue but for sends that are out.  Returns whether there are such. */
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

/* A disconnect may wait for this. */
static void wake_closers(const struct nvi_chan *ch)
{
	if (ch->vi->fast == &nvi_fast_closing)
		ch->vi->nic->ops->wake(ch->vi->nic);
}

/* Nothing more is sent or awaited. */
static void stop_sending(struct nvi_chan *ch)
{
	ch->tx.op = 0;
	ch->tx_unflushed = 0;
	ch->tx_drains = false;
	atomic_store_explicit(&ch->answer_head,
			      atomic_load_explicit(&ch->answer_tail, memory_order_relaxed),
			      memory_order_relaxed);
	atomic_store_explicit(&ch->tx_waiting, 0, memory_order_relaxed);
}

/* A connection that is broken already: what its sends waited for does not come any more. */
static void end_sends(struct nvi_chan *ch, enum nvi_break why)
{
	if (why == NVI_BREAK_LOCAL ||
	    atomic_load_explicit(&ch->tx_waiting, memory_order_relaxed) == 0)
		return;
	if (why == NVI_BREAK_LOST || why == NVI_BREAK_PROTOCOL)
		fail_outstanding(ch);
	stop_sending(ch);
	vi_wq_flush(&ch->vi->sq, VIP_STATUS_DESC_FLUSHED_ERROR);
	wake_closers(ch);
}

/* Has the peer all that was sent, and this end all of what the peer began to send? */
static bool nothing_lost(const struct nvi_chan *ch)
{
	const struct vi_wq *sq = &ch->vi->sq;

	return nvi_sq_done(sq) == sq->tail &&
	       atomic_load_explicit(&ch->tx_credit, memory_order_relaxed) == ch->tx_seq &&
	       ch->stream.op == 0;
}

void nvi_chan_break(struct nvi_chan *ch, struct nvi_fault fault)
{
	enum nvi_break why = fault.why;
	uint32_t how = VI_BREAK_RAISE;

	atomic_store_explicit(&ch->faults, 0, memory_order_relaxed);
	if (vi_state(ch->vi) != VIP_STATE_CONNECTED) {
		end_sends(ch, why);
		return;
	}
	if (why == NVI_BREAK_LOCAL || why == NVI_BREAK_PROTOCOL)
		report_to_peer(ch, fault.err, fault.slot);
	/* What the peer has acknowledged is complete, not flushed, and so is what was stored. */
	nvi_tx_credit(ch);
	nvi_writes_settle(ch);
	if (why == NVI_BREAK_LOST || why == NVI_BREAK_PROTOCOL)
		fail_outstanding(ch);
	if (why == NVI_BREAK_PEER_CLOSED && nothing_lost(ch))
		how |= VI_BREAK_QUIET;
	if (why == NVI_BREAK_LOCAL && keep_sends(ch))
		how |= VI_BREAK_KEEP_SENDS;
	stop_sending(ch);
	nvi_grants_drop(ch);
	vi_break(ch->vi, how, VIP_ERROR_CONN_LOST);
	if (how & VI_BREAK_KEEP_SENDS) {
		nvi_tx_update_waiting(ch);
		nvi_disarm(ch);
	}
	wake_closers(ch);
}

/* Receiving comes first: it held rx_lock, which sending has to get. Caller holds both locks. */
static void break_for_fault(struct nvi_chan *ch)
{
	if (nvi_chan_has_fault(ch, NVI_FAULT_RX))
		nvi_chan_break(ch, ch->rx_fault);
	else if (nvi_chan_has_fault(ch, NVI_FAULT_TX))
		nvi_chan_break(ch, ch->tx_fault);
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
		if (nvi_rx(ch, NVI_RX_BATCH) == 0)
			break;
	nvi_break_after_rx(ch);
}

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
 * The first incomplete send whose slots reach past `slot`, sq->next if there is none.
 * When that one begins behind `slot`, the report is about a send that completed when
 * it was out (reliable delivery): none of those left was refused.
 */
static uint32_t find_refused(struct nvi_chan *ch, enum w_err err, uint32_t slot)
{
	struct vi_wq *sq = &ch->vi->sq;

	for (uint32_t n = nvi_sq_done(sq); n != sq->next; n++) {
		const struct vi_wqe *wqe = vi_wqe(sq, n);
		bool under_way = ch->tx.op != 0 && ch->tx.op != W_OP_READ_RESP && ch->tx.entry == n;

		if (wqe->status != 0 || (!under_way && (int32_t)(wqe->mark - slot) <= 0))
			continue;
		return err == W_ERR_PROTOCOL || (int32_t)(slot - wqe->first) >= 0 ? n : sq->next;
	}
	return sq->next;
}

/* The peer's receiver refused the message whose slot it names: its descriptor says why. */
static void apply_report(struct nvi_chan *ch, uint64_t word)
{
	enum w_err err = (enum w_err)(word & 0x7fffffffu);
	uint32_t slot = (uint32_t)(word >> 32);

	if (err != W_ERR_SENDER)
		fail_send(ch, find_refused(ch, err, slot), send_error_bits(err));
	nvi_chan_break(ch, (struct nvi_fault){ .why = NVI_BREAK_REPORTED });
}

void nvi_chan_check_breaks(struct nvi_chan *ch)
{
	struct vi_vi *vi = ch->vi;
	uint64_t word;

	u_biased_take(&vi->rx_lock);
	if (vi->chan == ch && nvi_chan_breaks(ch)) {
		/* R: the report first, then the slots: what was sent before it is seen. */
		word = atomic_load_explicit(&ch->in_ctl->error, memory_order_acquire);
		if (word != 0)
			nvi_rx_drain(ch);
		u_biased_take(&vi->tx_lock);
		if (word != 0) {
			/* The peer waits for what it sent before. */
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

uint64_t nvi_chan_conn(struct nvi_chan *ch)
{
	uint64_t conn;

	pthread_mutex_lock(&ch->nic->ctl_lock);
	conn = ch->conn;
	pthread_mutex_unlock(&ch->nic->ctl_lock);
	return conn;
}

bool nvi_chan_is_conn(struct nvi_chan *ch, struct nvi_nic *nic, uint64_t conn)
{
	bool yes;

	pthread_mutex_lock(&nic->ctl_lock);
	yes = ch->nic == nic && ch->conn == conn;
	pthread_mutex_unlock(&nic->ctl_lock);
	return yes;
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

/* ---- taking apart --------------------------------------------------------------------------- */

bool nvi_chan_forget(struct nvi_chan *ch, uint64_t conn)
{
	struct nvi_nic *nic = ch->nic;
	bool found;

	pthread_mutex_lock(&nic->ctl_lock);
	found = conn != 0 && ch->conn == conn;
	if (found) {
		struct nvi_chan **at = &nic->conns[conn % NVI_CONN_BUCKETS];

		while (*at != NULL && *at != ch)
			at = &(*at)->next;
		if (*at == ch)
			*at = ch->next;
		ch->next = NULL;
		ch->conn = 0;
	}
	pthread_mutex_unlock(&nic->ctl_lock);
	return found;
}

/* Caller holds both locks. */
static void disconnect(struct nvi_chan *ch)
{
	struct nvi_parts parts = { .port = ch->port_use,
				   .in = ch->in_map,
				   .out = ch->out_map,
				   .payload_after = ch->payload_after,
				   .retx = ch->retx,
				   .placeholder_mem = ch->placeholder_mem };

	nvi_chan_unlist(ch);
	nvi_grants_drop(ch);
	nvi_parts_free(&parts);
	ch->port_use = NULL;
	ch->payload_after = NULL;
	ch->retx = NULL;
	ch->placeholder_mem = NULL;
}

/* Both ends know what arrived: this one of what it sent, the other of what it is told here. */
static void poll_last(struct nvi_chan *ch)
{
	nvi_tx_credit(ch);
	nvi_writes_settle(ch);
	if (vi_state(ch->vi) == VIP_STATE_CONNECTED) {
		nvi_rx_return_credit(ch);
		port_flush(ch->port);
	}
	stop_sending(ch);
}

uint64_t nvi_chan_close(struct vi_vi *vi)
{
	struct nvi_chan *ch = vi->prov;
	uint64_t conn;
	bool open;

	vi_lock_both(vi);
	open = vi->chan == ch;
	if (open)
		poll_last(ch);
	wake_closers(ch);
	vi->chan = NULL;
	vi->fast = &vi_fast_none;
	vi_wq_flush(&vi->sq, VIP_STATUS_DESC_FLUSHED_ERROR);
	vi_wq_flush(&vi->rq, VIP_STATUS_DESC_FLUSHED_ERROR);
	vi_set_state(vi, VIP_STATE_IDLE);
	ch->attempt = 0;
	if (open)
		disconnect(ch);
	vi_unlock_both(vi);
	conn = open ? nvi_chan_conn(ch) : 0;
	return nvi_chan_forget(ch, conn) ? conn : 0;
}
