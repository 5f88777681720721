/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receiving: from slots into receive descriptors and registered memory.
 * nvi_rx() is the only reader of slots and payload.  A header is copied once,
 * the copy is checked (w_slot_check()), the copy is used.
 */
#include <errno.h>

#include "nvi.h"
#include "u_copy.h"
#include "u_time.h"
#include "vi_hot.h"

#define RX_AHEAD 2u   /* slots fetched ahead of the one that is consumed */
#define RX_SPAN 4096u /* bytes of the payload buffer asked for at once */

/* A slot, copied and checked. */
struct rx_slot {
	uint8_t op, flags;
	uint32_t arg, frag;
	uint32_t number;	 /* counted from 0 */
	const struct w_slot *in; /* inline payload lies here, */
	uint32_t inline_off;	 /* from this offset; */
	const uint8_t *buffered; /* or here */
	struct w_rdma rdma;
};

static bool reliable(const struct nvi_chan *ch)
{
	return ch->level != VIP_SERVICE_UNRELIABLE;
}

/* Copies payload bytes [off, off + n) of the slot to dst. */
static void payload_copy(const struct rx_slot *s, void *dst, uint32_t off, uint32_t n)
{
	uint32_t at = s->inline_off + off, head;

	if (s->buffered != NULL) {
		memcpy(dst, s->buffered + off, n);
		return;
	}
	head = at < W_HEAD_INLINE ? W_HEAD_INLINE - at : 0;
	if (head > n)
		head = n;
	memcpy(dst, s->in->data + (at < W_HEAD_INLINE ? at : 0), head);
	if (n > head)
		memcpy((uint8_t *)dst + head, s->in->more + (at + head - W_HEAD_INLINE), n - head);
}

/* ---- receive descriptors -------------------------------------------------------------------- */

/* Takes the next receive descriptor, for so many bytes. 0, or the error report for the peer. */
static enum w_err take_receive(struct nvi_chan *ch, uint32_t bytes)
{
	struct nvi_rx_message *m = &ch->rx;
	struct vi_wq *rq = &ch->vi->rq;
	struct vi_wqe *wqe;

	if (rq->next == rq->tail) {
		ch->vi->counters.RecvQueueEmpty++;
		vi_event_raise(ch->vi->nic, ch->vi, VIP_RESOURCE_VI, VIP_ERROR_RECVQ_EMPTY);
		return W_ERR_NO_DESC;
	}
	m->entry = rq->next++;
	m->has_entry = true;
	wqe = vi_wqe(rq, m->entry);
	m->status = vi_desc_check_recv(ch->vi, wqe, bytes);
	if (m->status == 0 && vi_sg_init(&m->sg, ch->vi, wqe, VI_WRITE, bytes) != 0)
		m->status = VIP_STATUS_PROTECTION_ERROR;
	if (m->status == VIP_STATUS_LENGTH_ERROR)
		return W_ERR_TOO_LONG;
	return m->status != 0 ? W_ERR_RECV_DESC : W_ERR_NONE;
}

static void complete_receive(struct nvi_chan *ch, uint32_t status, uint32_t length)
{
	struct nvi_rx_message *m = &ch->rx;

	m->has_entry = false;
	vi_wq_complete(&ch->vi->rq, m->entry, status, length);
}

/*
 * The message under way failed.  Its receive descriptor, if it has one, says
 * so; reliable connections break and the sender is told; unreliable ones drop the rest.
 */
static void fail_message(struct nvi_chan *ch, const struct rx_slot *s, enum w_err err,
			 uint32_t op_status, bool raise, VIP_ERROR_CODE event)
{
	struct nvi_rx_message *m = &ch->rx;

	m->discard = true;
	ch->vi->counters.Dropped++;
	if (m->has_entry)
		complete_receive(ch, op_status | m->status, 0);
	if (raise)
		vi_event_raise(ch->vi->nic, ch->vi, VIP_RESOURCE_VI, event);
	if (reliable(ch))
		nvi_fault_rx(ch, (struct nvi_fault){ NVI_BREAK_LOCAL, err, s->number });
}

static void count_message(struct nvi_chan *ch, uint32_t total)
{
	ch->vi->counters.MessagesReceived++;
	ch->vi->counters.BytesReceived += total;
}

/* ---- sends ---------------------------------------------------------------------------------- */

/* Scatters the fragment over the receive descriptor. 0 or -EFAULT. */
static int scatter(struct vi_sg *sg, const struct rx_slot *s)
{
	for (uint32_t off = 0; off < s->frag;) {
		uint8_t *dst;
		uint32_t len;

		if (vi_sg_next(sg, s->frag - off, &dst, &len) != 0)
			return -EFAULT;
		payload_copy(s, dst, off, len);
		off += len;
	}
	return 0;
}

static void rx_send(struct nvi_chan *ch, const struct rx_slot *s)
{
	struct nvi_rx_message *m = &ch->rx;
	enum w_err err;

	if (s->flags & W_F_FIRST) {
		m->discard = m->has_entry = false;
		m->status = 0;
		m->total = s->flags & W_F_LAST ? s->frag : s->arg;
		err = take_receive(ch, m->total);
		if (u_unlikely(err != W_ERR_NONE)) {
			fail_message(ch, s, err, VIP_STATUS_OP_RECEIVE, false, 0);
			return;
		}
	}
	if (u_unlikely(m->discard))
		return;
	if (u_unlikely(scatter(&m->sg, s) != 0)) {
		m->status = VIP_STATUS_PROTECTION_ERROR;
		ch->vi->counters.ProtectionErrors++;
		fail_message(ch, s, W_ERR_RECV_DESC, VIP_STATUS_OP_RECEIVE, false, 0);
		return;
	}
	U_TRACE(payload_copied, ch, s->frag);
	if (s->flags & W_F_LAST) {
		uint32_t status = VIP_STATUS_OP_RECEIVE;

		if (s->flags & W_F_IMM) {
			vi_wqe(&ch->vi->rq, m->entry)->imm = s->arg;
			status |= VIP_STATUS_IMMEDIATE;
		}
		count_message(ch, m->total);
		complete_receive(ch, status, m->total);
	}
}

/* ---- RDMA writes ---------------------------------------------------------------------------- */

/* Where bytes [done, done + n) of the write go, or NULL. Checked for each fragment: regions come and go. */
static uint8_t *write_target(struct nvi_chan *ch, uint32_t n)
{
	const struct nvi_rx_message *m = &ch->rx;

	if (!ch->vi->rdma_write)
		return NULL;
	return vi_tpt_check(ch->vi->nic, ch->vi->ptag, m->rdma.addr + m->done, n, m->rdma.handle,
			    VI_REMOTE_WRITE);
}

/*
 * The immediate data of a write: completes a receive descriptor with `error` bits.
 * False when that failed, and the message with it.
 */
static bool write_immediate(struct nvi_chan *ch, const struct rx_slot *s, uint32_t error)
{
	struct nvi_rx_message *m = &ch->rx;
	enum w_err err = take_receive(ch, 0);

	if (err != W_ERR_NONE) {
		fail_message(ch, s, err, VIP_STATUS_OP_REMOTE_RDMA_WRITE, false, 0);
		return false;
	}
	if (error != 0) {
		complete_receive(ch, VIP_STATUS_OP_REMOTE_RDMA_WRITE | error, 0);
		return true;
	}
	vi_wqe(&ch->vi->rq, m->entry)->imm = s->arg;
	count_message(ch, m->total);
	complete_receive(ch, VIP_STATUS_OP_REMOTE_RDMA_WRITE | VIP_STATUS_IMMEDIATE, m->total);
	return true;
}

/* With immediate data the refusal is told in the receive descriptor, else by an event. */
static void refuse_write(struct nvi_chan *ch, const struct rx_slot *s)
{
	struct nvi_rx_message *m = &ch->rx;

	ch->vi->counters.ProtectionErrors++;
	if ((s->flags & W_F_IMM) && take_receive(ch, 0) == W_ERR_NONE)
		m->status = VIP_STATUS_RDMA_PROT_ERROR;
	fail_message(ch, s, W_ERR_RDMA_PROT, VIP_STATUS_OP_REMOTE_RDMA_WRITE, !m->has_entry,
		     VIP_ERROR_RDMAW_PROT);
}

static void place_write(struct nvi_chan *ch, const struct rx_slot *s, uint8_t *dst)
{
	uint8_t bytes[W_INLINE_MAX];

	if (s->buffered != NULL) {
		if (s->flags & W_F_LAST)
			u_copy_last_last(dst, s->buffered, s->frag);
		else
			u_copy_shared(dst, s->buffered, s->frag);
		return;
	}
	payload_copy(s, bytes, 0, s->frag);
	u_copy_last_last(dst, bytes, s->frag);
}

static void begin_write(struct nvi_chan *ch, const struct rx_slot *s)
{
	struct nvi_rx_message *m = &ch->rx;

	m->discard = m->has_entry = false;
	m->status = 0;
	m->total = s->flags & W_F_LAST ? s->frag : s->arg;
	m->done = 0;
	m->rdma = s->rdma;
	if (u_unlikely(write_target(ch, m->total) == NULL))
		refuse_write(ch, s);
}

static void rx_write(struct nvi_chan *ch, const struct rx_slot *s)
{
	struct nvi_rx_message *m = &ch->rx;
	uint8_t *dst;

	if (s->flags & W_F_FIRST) {
		begin_write(ch, s);
		if (m->discard)
			return;
	}
	if (u_unlikely(m->discard))
		return;
	dst = write_target(ch, s->frag);
	if (u_unlikely(dst == NULL)) {
		refuse_write(ch, s);
		return;
	}
	place_write(ch, s, dst);
	U_TRACE(payload_copied, ch, s->frag);
	m->done += s->frag;
	if (!(s->flags & W_F_LAST))
		return;
	if (s->flags & W_F_IMM)
		write_immediate(ch, s, 0);
	else
		count_message(ch, m->total);
}

static void protocol_error(struct nvi_chan *ch, const struct rx_slot *s)
{
	ch->vi->counters.ProtocolErrors++;
	nvi_fault_rx(ch, (struct nvi_fault){ NVI_BREAK_PROTOCOL, W_ERR_PROTOCOL, s->number });
}

/* The sender could not finish its message: only on the unreliable level it goes on after that. */
static void rx_abort(struct nvi_chan *ch, const struct rx_slot *s)
{
	const uint32_t bits = VIP_STATUS_PARTIAL_ERROR | VIP_STATUS_TRANSPORT_ERROR;
	struct nvi_rx_message *m = &ch->rx;

	if (reliable(ch)) {
		protocol_error(ch, s);
		return;
	}
	if (m->discard)
		return;
	m->discard = true;
	if (m->has_entry) {
		ch->vi->counters.Dropped++;
		complete_receive(ch, VIP_STATUS_OP_RECEIVE | bits, 0);
	} else if (ch->stream.imm == 0 || write_immediate(ch, s, bits)) {
		ch->vi->counters.Dropped++;
		if (ch->stream.imm == 0)
			vi_event_raise(ch->vi->nic, ch->vi, VIP_RESOURCE_VI, VIP_ERROR_RDMAW_ABORT);
	}
}

/* ---- RDMA reads ----------------------------------------------------------------------------- */

static void queue_answer(struct nvi_chan *ch, const struct rx_slot *s, uint32_t tail)
{
	ch->answers[tail % NVI_READS_MAX].rdma = s->rdma;
	ch->answers[tail % NVI_READS_MAX].slot = s->number;
	atomic_store_explicit(&ch->answer_tail, tail + 1, memory_order_release);
	/* Whoever made progress goes on with the sending side, without this lock. */
	u_biased_take(&ch->vi->tx_lock);
	nvi_tx_update_waiting(ch);
	u_biased_drop(&ch->vi->tx_lock);
}

static bool answer_now(struct nvi_chan *ch, const struct rx_slot *s, const void *src)
{
	bool sent = false;

	if (s->rdma.length <= W_INLINE_MAX) {
		u_biased_take(&ch->vi->tx_lock);
		sent = nvi_answer_now(ch, src, s->rdma.length);
		u_biased_drop(&ch->vi->tx_lock);
	}
	return sent;
}

/* The peer wants to read: a short answer goes out at once, any other is queued. */
static void rx_read_request(struct nvi_chan *ch, const struct rx_slot *s)
{
	uint32_t tail = atomic_load_explicit(&ch->answer_tail, memory_order_relaxed);
	struct vi_vi *vi = ch->vi;
	const void *src = NULL;

	if (!reliable(ch) ||
	    tail - atomic_load_explicit(&ch->answer_head, memory_order_acquire) >= NVI_READS_MAX) {
		protocol_error(ch, s);
		return;
	}
	if (vi->rdma_read)
		src = vi_tpt_check(vi->nic, vi->ptag, s->rdma.addr, s->rdma.length, s->rdma.handle,
				   VI_REMOTE_READ);
	if (src == NULL) {
		vi->counters.ProtectionErrors++;
		ch->rx.has_entry = false;
		fail_message(ch, s, W_ERR_RDMA_PROT, 0, true, VIP_ERROR_RDMAR_PROT);
		return;
	}
	if (!answer_now(ch, s, src))
		queue_answer(ch, s, tail);
}

/* Starts placing the answer to the oldest read. 0, or -EPROTO when no such answer is due. */
static int begin_read_response(struct nvi_chan *ch, const struct rx_slot *s)
{
	struct nvi_rx_message *m = &ch->rx;
	uint32_t head = atomic_load_explicit(&ch->read_head, memory_order_relaxed);
	struct vi_wqe *wqe;
	int err = 0;

	/* R: pairs with begin_rdma() in nvi_tx.c. */
	if (head == atomic_load_explicit(&ch->read_tail, memory_order_acquire))
		return -EPROTO;
	m->discard = m->has_entry = false;
	m->status = 0;
	m->total = s->flags & W_F_LAST ? s->frag : s->arg;
	m->entry = ch->reads[head % NVI_READS_MAX];
	u_biased_take(&ch->vi->tx_lock);
	wqe = vi_wqe(&ch->vi->sq, m->entry);
	if (wqe->length != m->total)
		err = -EPROTO;
	else if (vi_sg_init(&m->sg, ch->vi, wqe, VI_WRITE, m->total) != 0)
		m->status = VIP_STATUS_PROTECTION_ERROR;
	u_biased_drop(&ch->vi->tx_lock);
	return err;
}

static void end_read_response(struct nvi_chan *ch)
{
	struct nvi_rx_message *m = &ch->rx;
	uint32_t head = atomic_load_explicit(&ch->read_head, memory_order_relaxed);

	u_biased_take(&ch->vi->tx_lock);
	atomic_store_explicit(&ch->read_head, head + 1, memory_order_release);
	nvi_complete_send(&ch->vi->sq, m->entry, m->status);
	if (m->status != 0)
		nvi_fault_rx(ch, (struct nvi_fault){ NVI_BREAK_LOCAL, W_ERR_SENDER, 0 });
	else
		nvi_tx_progress(ch);
	u_biased_drop(&ch->vi->tx_lock);
}

/* The whole answer to a plain read, in one slot; false, and nothing done, for any other. */
static bool read_response_now(struct nvi_chan *ch, const struct rx_slot *s)
{
	uint32_t head = atomic_load_explicit(&ch->read_head, memory_order_relaxed);
	struct vi_vi *vi = ch->vi;
	struct vi_wqe *wqe;
	bool plain;

	if ((s->flags & (W_F_FIRST | W_F_LAST)) != (W_F_FIRST | W_F_LAST) ||
	    /* R: pairs with read_now() in nvi_tx.c. */
	    head == atomic_load_explicit(&ch->read_tail, memory_order_acquire))
		return false;
	u_biased_take(&vi->tx_lock);
	wqe = vi_wqe(&vi->sq, ch->reads[head % NVI_READS_MAX]);
	plain = wqe->at != NULL && wqe->length == s->frag &&
		wqe->epoch == vi_tpt_epoch(&vi->nic->tpt);
	if (plain) {
		payload_copy(s, wqe->at, 0, s->frag);
		atomic_store_explicit(&ch->read_head, head + 1, memory_order_release);
		nvi_complete_send(&vi->sq, ch->reads[head % NVI_READS_MAX], 0);
		nvi_tx_progress(ch);
	}
	u_biased_drop(&vi->tx_lock);
	return plain;
}

static void rx_read_response(struct nvi_chan *ch, const struct rx_slot *s)
{
	struct nvi_rx_message *m = &ch->rx;

	if (read_response_now(ch, s))
		return;

	if ((s->flags & W_F_FIRST) && begin_read_response(ch, s) != 0) {
		protocol_error(ch, s);
		return;
	}
	if (m->status == 0 && scatter(&m->sg, s) != 0)
		m->status = VIP_STATUS_PROTECTION_ERROR;
	U_TRACE(payload_copied, ch, s->frag);
	if (s->flags & W_F_LAST)
		end_read_response(ch);
}

/* ---- the fast path -------------------------------------------------------------------------- */

/*
 * A whole message in one slot, for a plain receive that was looked at when it was posted.
 * Takes it and returns true, or leaves all as it is: whatever is not just so - also
 * everything malformed - takes the slow path.
 */
static inline bool rx_short(struct nvi_chan *ch, uint32_t n)
{
	const struct w_slot *slot = &ch->in_slots[n & ch->in_mask];
	struct vi_wq *rq = &ch->vi->rq;
	struct vi_wqe *wqe = vi_wqe(rq, rq->next);
	uint32_t status = VIP_STATUS_OP_RECEIVE, frag, arg, what;
	const uint8_t *payload;
	uint64_t word;
	bool in_payload;

	U_TRACE(slot_seen, ch, n);
	/* One load each: the peer may change the slot. */
	memcpy(&word, &slot->head, sizeof(word));
	__asm__ volatile("" : "+r"(word));
	frag = __atomic_load_n(&slot->head.frag, __ATOMIC_RELAXED);
	what = (uint32_t)word;
	arg = (uint32_t)(word >> 32);
	if (what & W_WHAT(0, W_F_IMM))
		status |= VIP_STATUS_IMMEDIATE;
	else if (u_unlikely(arg != 0))
		return false;
	in_payload = (what & W_WHAT(0, W_F_BUFFERED)) != 0;
	if (u_unlikely((what & ~W_WHAT(0, W_F_IMM | W_F_BUFFERED | W_F_ACK)) !=
			       W_WHAT(W_OP_SEND, W_F_FIRST | W_F_LAST) ||
		       ch->stream.op != 0 || frag > ch->stream.max_length || rq->next == rq->tail ||
		       frag > (in_payload ? w_frag_max(ch->in_payload_bytes) : W_INLINE_MAX) ||
		       wqe->at == NULL || frag > wqe->at_len || frag == 0 ||
		       wqe->epoch != vi_tpt_epoch(&ch->vi->nic->tpt)))
		return false;
	if (what & W_WHAT(0, W_F_ACK))
		ch->rx_ack = true;
	if (in_payload) {
		payload = ch->in_payload +
			  w_payload_place(&ch->rx_cursor, ch->in_payload_bytes, frag);
		u_prefetch_span(payload, frag < RX_SPAN ? frag : RX_SPAN);
		memcpy(wqe->at, payload, frag);
	} else if (u_likely(frag <= W_HEAD_INLINE)) {
		u_copy_small(wqe->at, slot->data, frag);
		ch->rx_two_lines = false;
	} else {
		ch->rx_two_lines = true;
		memcpy(wqe->at, slot->data, W_HEAD_INLINE);
		u_copy_small(wqe->at + W_HEAD_INLINE, slot->more, frag - W_HEAD_INLINE);
	}
	U_TRACE(payload_copied, ch, frag);
	wqe->imm = arg;
	rq->next++;
	ch->vi->counters.MessagesReceived++;
	ch->vi->counters.BytesReceived += frag;
	atomic_store_explicit(&ch->rx_seq, n + 1, memory_order_relaxed);
	vi_wq_complete_next(rq, wqe, status, frag);
	return true;
}

/* ---- the loop ------------------------------------------------------------------------------- */

/* Copies and checks the next slot. -EAGAIN: none, -EPROTO: nonsense. */
static int next_slot(struct nvi_chan *ch, struct rx_slot *s)
{
	uint32_t n = atomic_load_explicit(&ch->rx_seq, memory_order_relaxed);
	const struct w_slot *slot = &ch->in_slots[n & ch->in_mask];

	/* R: pairs with publish() at the peer. */
	if (atomic_load_explicit(&slot->head.seq, memory_order_acquire) != w_seq(n))
		return -EAGAIN;
	s->number = n;
	s->op = slot->head.op;
	s->flags = slot->head.flags;
	s->arg = slot->head.arg;
	s->frag = slot->head.frag;
	s->in = slot;
	s->buffered = NULL;
	/* The copies above must not be made again from the slot, which the peer may change. */
	__asm__ volatile("" : "+m"(*s));
	if (s->op == W_OP_WRITE || s->op == W_OP_READ_REQ) {
		memcpy(&s->rdma, slot->data, sizeof(s->rdma));
		__asm__ volatile("" : "+m"(*s));
	}
	if (w_slot_check(&ch->stream, s->op, s->flags, slot->head.reserved, s->arg, s->frag,
			 &s->rdma, &s->inline_off) != 0)
		return -EPROTO;
	if (s->flags & W_F_BUFFERED)
		s->buffered = ch->in_payload +
			      w_payload_place(&ch->rx_cursor, ch->in_payload_bytes, s->frag);
	return 0;
}

static void take_slot(struct nvi_chan *ch, const struct rx_slot *s)
{
	switch (s->op) {
	case W_OP_SEND:
		rx_send(ch, s);
		break;
	case W_OP_WRITE:
		rx_write(ch, s);
		break;
	case W_OP_READ_REQ:
		rx_read_request(ch, s);
		break;
	case W_OP_READ_RESP:
		rx_read_response(ch, s);
		break;
	case W_OP_ABORT:
		rx_abort(ch, s);
		break;
	case W_OP_NOP: /* its W_F_ACK says all */
		break;
	}
}

void nvi_rx_return_credit(struct nvi_chan *ch)
{
	uint32_t n = atomic_load_explicit(&ch->rx_seq, memory_order_relaxed);

	ch->rx_ack = false;
	if (n == ch->rx_credited)
		return;
	ch->rx_credited = n;
	ch->rx_cursor_credited = ch->rx_cursor;
	/*
	 * A: pairs with nvi_tx_credit() at the peer: the slots and payload buffer may be written
	 * again.
	 */
	u_out_store32(&ch->out, &ch->out_ctl->credit, n);
	u_out_fence(&ch->out);
	nvi_ring_credit(ch);
}

/* Credit goes back when asked for, or by the quarter. */
static bool credit_due(const struct nvi_chan *ch)
{
	uint32_t n = atomic_load_explicit(&ch->rx_seq, memory_order_relaxed);

	return ch->rx_ack || n - ch->rx_credited > ch->in_mask / 4 ||
	       ch->rx_cursor - ch->rx_cursor_credited >= ch->in_payload_bytes / 4;
}

static void after_rx(struct nvi_chan *ch, uint32_t consumed)
{
	ch->vi->counters.SlotsReceived += consumed;
	/* rx_seq before the check of `armed`: whoever arms looks the other way round. */
	if (u_unlikely(ch->must_fence))
		atomic_thread_fence(memory_order_seq_cst);
	else
		atomic_signal_fence(memory_order_seq_cst);
	nvi_disarm(ch);
	if (u_unlikely(credit_due(ch)) && vi_state(ch->vi) == VIP_STATE_CONNECTED)
		nvi_rx_return_credit(ch);
}

static inline void rx_prefetch(struct nvi_chan *ch, uint32_t n)
{
	const struct w_slot *slot = &ch->in_slots[n & ch->in_mask];

	__builtin_prefetch(slot);
	if (ch->rx_two_lines)
		__builtin_prefetch(slot->more);
}

int nvi_rx_next(struct nvi_chan *ch)
{
	uint32_t n = atomic_load_explicit(&ch->rx_seq, memory_order_relaxed);

	if (!nvi_rx_ready(ch)) {
		if (ch->rx_two_lines)
			__builtin_prefetch(ch->in_slots[n & ch->in_mask].more);
		ch->rx_streak = 0;
		return 0;
	}
	/* A sender that is ahead has written these; one that is not would have them stolen. */
	if (ch->rx_streak++ >= RX_AHEAD)
		rx_prefetch(ch, n + RX_AHEAD);
	if (u_unlikely(vi_state(ch->vi) != VIP_STATE_CONNECTED || !rx_short(ch, n)))
		return nvi_rx(ch, NVI_RX_BATCH);
	after_rx(ch, 1);
	return 1;
}

int nvi_rx(struct nvi_chan *ch, uint32_t budget)
{
	struct rx_slot s;
	uint32_t consumed = 0;
	int err = 0;

	while (consumed < budget && vi_state(ch->vi) == VIP_STATE_CONNECTED) {
		if (!nvi_rx_ready(ch))
			break;
		if (u_likely(rx_short(ch,
				      atomic_load_explicit(&ch->rx_seq, memory_order_relaxed)))) {
			consumed++;
			if (credit_due(ch))
				nvi_rx_return_credit(ch);
			continue;
		}
		err = next_slot(ch, &s);
		if (err != 0)
			break;
		take_slot(ch, &s);
		consumed++;
		/* A slot that breaks the connection is not consumed: credit would acknowledge it. */
		if (u_unlikely(nvi_chan_has_fault(ch, NVI_FAULT_RX)))
			break;
		if (s.flags & W_F_ACK)
			ch->rx_ack = true;
		atomic_store_explicit(&ch->rx_seq, s.number + 1, memory_order_relaxed);
		if (s.buffered != NULL && credit_due(ch))
			nvi_rx_return_credit(ch);
	}
	if (u_unlikely(err == -EPROTO))
		protocol_error(ch, &s);
	if (consumed != 0)
		after_rx(ch, consumed);
	return (int)consumed;
}
