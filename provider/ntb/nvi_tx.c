/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sending: from the send queue (and from the peer's read requests) into slots.
 * tx_fragment() is the only writer of payload and slots.
 *
 * When a descriptor completes:
 *  - unreliable: when its last fragment is out;
 *  - reliable delivery: the same if it went inline, else when the peer has
 *    consumed its last slot, because only then the buffer is not needed again;
 *  - reliable reception: when the peer has consumed its last slot;
 *  - RDMA read: when the answer has been placed (nvi_rx.c).
 */
#include <errno.h>

#include "nvi.h"
#include "u_copy.h"
#include "vi_hot.h"

#define TX_BUDGET (1u << 20)
#define TX_AHEAD 8u    /* slots asked for ahead of the one written */
#define TX_WHOLE 8192u /* a message up to this long is one fragment */
#define TX_FRAG_MIN 4096u
#define TX_STREAM 6u /* slots in flight that make it a stream */

static bool is_read(const struct vi_wqe *wqe)
{
	return (wqe->control & VIP_CONTROL_OP_MASK) == VIP_CONTROL_OP_RDMAREAD;
}

void nvi_tx_update_waiting(struct nvi_chan *ch)
{
	const struct vi_wq *sq = &ch->vi->sq;
	bool answers = atomic_load_explicit(&ch->answer_tail, memory_order_relaxed) !=
		       atomic_load_explicit(&ch->answer_head, memory_order_relaxed);
	uint32_t waiting = ch->tx.op != 0 || nvi_sq_done(sq) != sq->tail || answers ||
			   ch->tx_drains;

	if (waiting != atomic_load_explicit(&ch->tx_waiting, memory_order_relaxed))
		atomic_store_explicit(&ch->tx_waiting, waiting, memory_order_release);
}

/* ---- credit and completion ------------------------------------------------------------------ */

/* Completes the descriptors whose last slot the peer has consumed. */
static void complete_acked(struct nvi_chan *ch, uint32_t credit)
{
	struct vi_wq *sq = &ch->vi->sq;

	for (uint32_t n = nvi_sq_done(sq); n != sq->next - ch->tx_unflushed; n++) {
		struct vi_wqe *wqe = vi_wqe(sq, n);

		if (wqe->status != 0 || is_read(wqe))
			continue;
		if (ch->tx.op != 0 && ch->tx.op != W_OP_READ_RESP && ch->tx.entry == n)
			break;
		if ((int32_t)(credit - wqe->mark) < 0)
			break;
		nvi_complete_send(sq, n, 0);
	}
}

int nvi_tx_credit(struct nvi_chan *ch)
{
	/* R: pairs with the release in nvi_rx_return_credit() at the peer. */
	return nvi_tx_take_credit(ch,
				  atomic_load_explicit(&ch->in_ctl->credit, memory_order_acquire));
}

int nvi_tx_take_credit(struct nvi_chan *ch, uint32_t credit)
{
	uint32_t before = atomic_load_explicit(&ch->tx_credit, memory_order_relaxed);
	uint32_t fresh = credit - before;

	if (u_likely(fresh == 0))
		return 0;
	if (fresh > ch->tx_seq - before)
		return -EPROTO;
	atomic_store_explicit(&ch->tx_credit, credit, memory_order_relaxed);
	ch->payload_freed = ch->payload_after[(credit - 1) & ch->out_mask];
	nvi_disarm(ch);
	complete_acked(ch, credit);
	return 1;
}

/* The peer gave credit for slots that were never sent. */
static void credit_fault(struct nvi_chan *ch)
{
	ch->vi->counters.ProtocolErrors++;
	nvi_fault_tx(ch, (struct nvi_fault){ NVI_BREAK_PROTOCOL, W_ERR_PROTOCOL, 0 });
}

/* The message is out (all its slots published). */
static void finish_message(struct nvi_chan *ch, bool inline_only)
{
	struct nvi_tx_message *m = &ch->tx;
	struct vi_wq *sq = &ch->vi->sq;
	struct vi_wqe *wqe;
	uint8_t op = m->op;

	m->op = 0;
	if (op == W_OP_READ_RESP)
		return;
	wqe = vi_wqe(sq, m->entry);
	wqe->mark = ch->tx_seq;
	if (op == W_OP_READ_REQ)
		return;
	if (op == W_OP_WRITE)
		ch->write_end = ch->tx_seq;
	ch->vi->counters.MessagesSent++;
	ch->vi->counters.BytesSent += m->total;
	if (!m->ack || (ch->level == VIP_SERVICE_RELIABLE_DELIVERY && inline_only))
		nvi_complete_send(sq, m->entry, 0);
}

/* ---- the next message ----------------------------------------------------------------------- */

/* An answer to a read of the peer; its source is checked again for each fragment. */
static bool begin_answer(struct nvi_chan *ch)
{
	uint32_t head = atomic_load_explicit(&ch->answer_head, memory_order_relaxed);
	struct nvi_tx_message *m = &ch->tx;

	/* R: pairs with rx_read_request() in nvi_rx.c. */
	if (head == atomic_load_explicit(&ch->answer_tail, memory_order_acquire))
		return false;
	m->op = W_OP_READ_RESP;
	m->rdma = ch->answers[head % NVI_READS_MAX].rdma;
	m->entry = ch->answers[head % NVI_READS_MAX].slot;
	/* Before the answer is out: the peer may send its next request when it has the last byte. */
	atomic_store_explicit(&ch->answer_head, head + 1, memory_order_release);
	m->total = m->rdma.length;
	m->done = 0;
	m->with_rdma = m->with_imm = m->ack = false;
	return true;
}

/* The descriptor cannot be sent: it completes with the error, and on reliable levels so does the connection. */
static void refuse_descriptor(struct nvi_chan *ch, uint32_t entry, uint32_t bits)
{
	if (bits & VIP_STATUS_PROTECTION_ERROR)
		ch->vi->counters.ProtectionErrors++;
	nvi_complete_send(&ch->vi->sq, entry, bits);
	if (ch->level != VIP_SERVICE_UNRELIABLE)
		nvi_fault_tx(ch, (struct nvi_fault){ NVI_BREAK_LOCAL, W_ERR_SENDER, 0 });
}

/*
 * May a descriptor be refused that cannot be sent?  On reliable levels that breaks the connection: not
 * before all that was sent before it has arrived, so that none of it is flushed.
 */
static bool may_refuse(struct nvi_chan *ch, uint32_t entry)
{
	return ch->level == VIP_SERVICE_UNRELIABLE ||
	       (nvi_tx_drained(ch) && nvi_sq_done(&ch->vi->sq) == entry);
}

static uint32_t check_descriptor(struct nvi_chan *ch, const struct vi_wqe *wqe)
{
	if (is_read(wqe) && ch->level == VIP_SERVICE_UNRELIABLE)
		return VIP_STATUS_FORMAT_ERROR;
	return vi_desc_check_send(ch->vi, wqe);
}

static void begin_rdma(struct nvi_chan *ch, const struct vi_wqe *wqe)
{
	const VIP_ADDRESS_SEGMENT *remote = vi_wqe_remote(wqe);
	struct nvi_tx_message *m = &ch->tx;

	m->with_rdma = true;
	m->rdma.addr = remote->Data.AddressBits;
	m->rdma.handle = remote->Handle;
	m->rdma.length = 0;
	if (!is_read(wqe)) {
		m->op = W_OP_WRITE;
		/* Nothing but writes was sent since the last one? */
		ch->write_run = ch->tx_seq == ch->write_end ? ch->write_run + 1 : 1;
		ch->vi->counters.RdmaWrites++;
		return;
	}
	m->op = W_OP_READ_REQ;
	m->with_imm = false; /* the bit means nothing on a read */
	m->rdma.length = wqe->length;
	m->total = 0;
	m->ack = false;
	ch->vi->counters.RdmaReads++;
	/* A: pairs with nvi_rx.c: the read is known before its request is out. */
	uint32_t tail = atomic_load_explicit(&ch->read_tail, memory_order_relaxed);
	ch->reads[tail % NVI_READS_MAX] = m->entry;
	atomic_store_explicit(&ch->read_tail, tail + 1, memory_order_release);
}

/* May the descriptor start, with respect to fence and reads under way? */
static bool may_start(const struct nvi_chan *ch, const struct vi_wqe *wqe, uint32_t entry)
{
	if ((wqe->control & VIP_CONTROL_QFENCE) && nvi_sq_done(&ch->vi->sq) != entry)
		return false;
	return !is_read(wqe) ||
	       atomic_load_explicit(&ch->read_tail, memory_order_relaxed) -
			       atomic_load_explicit(&ch->read_head, memory_order_acquire) <
		       NVI_READS_MAX;
}

/* Starts the next descriptor. Returns false when there is none, or it has to wait. */
static bool begin_descriptor(struct nvi_chan *ch)
{
	struct vi_wq *sq = &ch->vi->sq;
	struct nvi_tx_message *m = &ch->tx;

	while (sq->next != sq->tail) {
		uint32_t entry = sq->next;
		struct vi_wqe *wqe = vi_wqe(sq, entry);
		uint32_t bits;

		if (!may_start(ch, wqe, entry) || ch->tx_direct >= TX_BUDGET)
			return false;
		if (ch->grants_held != 0 && vi_wqe_there(sq, wqe)) {
			enum nvi_write_method method = nvi_write_queued(ch, wqe);

			if (method == NVI_METHOD_DONE)
				continue;
			if (method == NVI_METHOD_WAIT)
				return false;
		}
		if (u_unlikely(ch->tx_unflushed != 0)) {
			if (!nvi_writes_flush(ch) && nvi_chan_breaks(ch))
				return false;
			continue;
		}
		bits = check_descriptor(ch, wqe);
		if (bits == 0 && vi_sg_init(&m->sg, ch->vi, wqe, is_read(wqe) ? VI_WRITE : VI_READ,
					    wqe->length) != 0)
			bits = VIP_STATUS_PROTECTION_ERROR;
		if (u_unlikely(bits != 0 && !may_refuse(ch, entry)))
			return false;
		sq->next++;
		if (u_unlikely(bits != 0)) {
			refuse_descriptor(ch, entry, bits);
			if (ch->level != VIP_SERVICE_UNRELIABLE)
				return false;
			continue;
		}
		ch->tx_drains = false; /* if it was to be refused, it has come good */
		wqe->first = ch->tx_seq;
		m->entry = entry;
		m->total = wqe->length;
		m->done = 0;
		m->with_rdma = false;
		m->with_imm = (wqe->control & VIP_CONTROL_IMMEDIATE) != 0;
		m->imm = wqe->imm;
		m->ack = ch->level != VIP_SERVICE_UNRELIABLE;
		if ((wqe->control & VIP_CONTROL_OP_MASK) == VIP_CONTROL_OP_SENDRECV)
			m->op = W_OP_SEND;
		else
			begin_rdma(ch, wqe);
		return true;
	}
	return false;
}

/* ---- fragments ------------------------------------------------------------------------------ */

/* From memory that the consumer shares with its peer. */
static void copy_region(const struct u_out *out, void *dst, const void *src, uint32_t n)
{
	if (out != NULL && out->ops != NULL)
		u_out_copy(out, dst, src, n);
	else
		u_copy_shared(dst, src, n);
}

/* Copies n payload bytes of the message to dst (outbound if `out`). 0 or -EFAULT. */
static int gather(struct nvi_chan *ch, const struct u_out *out, uint8_t *dst, uint32_t n)
{
	struct nvi_tx_message *m = &ch->tx;

	if (m->op == W_OP_READ_RESP) {
		const void *src = vi_tpt_check(ch->vi->nic, ch->vi->ptag, m->rdma.addr + m->done, n,
					       m->rdma.handle, VI_REMOTE_READ);

		if (src == NULL)
			return -EFAULT;
		copy_region(out, dst, src, n);
		return 0;
	}
	while (n > 0) {
		uint8_t *src;
		uint32_t len;

		if (vi_sg_next(&m->sg, n, &src, &len) != 0)
			return -EFAULT;
		if (out != NULL)
			u_out_copy(out, dst, src, len);
		else
			memcpy(dst, src, len);
		dst += len;
		n -= len;
	}
	return 0;
}

static uint32_t slots_used(const struct nvi_chan *ch)
{
	return ch->tx_seq - atomic_load_explicit(&ch->tx_credit, memory_order_relaxed);
}

/*
 * Is there a slot, and (offset_out != NULL) payload buffer for n bytes? Takes in credit when it
 * looks full.
 */
static bool reserve(struct nvi_chan *ch, bool in_payload, uint32_t n, uint32_t *offset_out,
		    uint64_t *cursor_out)
{
	for (int round = 0;; round++) {
		uint64_t cursor = ch->payload_cursor;

		if (in_payload)
			*offset_out = w_payload_place(&cursor, ch->out_payload_bytes, n);
		if (u_likely(slots_used(ch) <= ch->out_mask &&
			     cursor - ch->payload_freed <= ch->out_payload_bytes)) {
			*cursor_out = cursor;
			return true;
		}
		if (round > 0)
			return false;
		ch->vi->counters.Stalls++;
		if (nvi_tx_credit(ch) < 0) {
			credit_fault(ch);
			return false;
		}
	}
}

static uint8_t fragment_flags(const struct nvi_tx_message *m, bool last, bool in_payload)
{
	uint8_t flags = 0;

	if (m->done == 0)
		flags |= W_F_FIRST;
	if (last)
		flags |= W_F_LAST;
	if (m->with_imm)
		flags |= W_F_IMM;
	if (in_payload)
		flags |= W_F_BUFFERED;
	return flags;
}

static void store_slot(struct nvi_chan *ch, uint32_t n, const struct w_slot *line,
		       const uint8_t *more, uint32_t more_len)
{
	struct w_slot *slot = &ch->out_slots[n & ch->out_mask];

	if (more_len > 0)
		u_out_copy(&ch->out, slot->more, more, more_len);
	u_out_copy(&ch->out, slot, line, offsetof(struct w_slot, head.seq));
	U_TRACE(payload_written, ch, n);
	u_out_fence(&ch->out);
	u_out_store32(&ch->out, &slot->head.seq, w_seq(n));
}

/* As much of the slot as was published, and where its payload came from. */
static void keep(struct nvi_chan *ch, const struct w_slot *line, const uint8_t *more,
		 uint32_t more_len)
{
	struct nvi_retx_slot *k = &ch->retx[ch->tx_seq & ch->out_mask];
	const struct nvi_tx_message *m = &ch->tx;

	memcpy(&k->line, line, offsetof(struct w_slot, head.seq));
	memcpy(k->line.more, more, more_len);
	if ((line->head.flags & W_F_BUFFERED) == 0)
		return;
	k->answer = m->op == W_OP_READ_RESP;
	k->handle = m->rdma.handle;
	k->addr = m->rdma.addr + m->done;
	k->entry = m->entry;
	k->offset = m->done;
}

/* Writes the slot and, last, the sequence that publishes it. */
static void publish(struct nvi_chan *ch, struct w_slot *line, const uint8_t *more,
		    uint32_t more_len, uint64_t cursor)
{
	if (ch->retx != NULL)
		keep(ch, line, more, more_len);
	store_slot(ch, ch->tx_seq, line, more, more_len);
	U_TRACE(slot_published, ch, ch->tx_seq);
	ch->payload_after[ch->tx_seq & ch->out_mask] = cursor;
	ch->payload_cursor = cursor;
	ch->tx_seq++;
	if (line->head.flags & W_F_ACK)
		ch->tx_asked = ch->tx_seq;
	ch->vi->counters.SlotsSent++;
}

static void publish_bare(struct nvi_chan *ch, uint8_t op, uint8_t flags)
{
	struct w_slot line = { .head = { .op = op, .flags = flags } };

	publish(ch, &line, line.more, 0, ch->payload_cursor);
}

bool nvi_tx_drained(struct nvi_chan *ch)
{
	if (nvi_tx_credit(ch) < 0) {
		credit_fault(ch);
		return false;
	}
	if (slots_used(ch) == 0)
		return true;
	if (!ch->tx_drains) {
		/* Of a full fifo credit comes unasked. */
		if (ch->tx_asked != ch->tx_seq && slots_used(ch) > ch->out_mask)
			return false;
		if (ch->tx_asked != ch->tx_seq)
			publish_bare(ch, W_OP_NOP, W_F_ACK);
		u_out_fence(&ch->out);
		ch->tx_drain = ch->tx_seq;
		ch->tx_drains = true;
		atomic_store_explicit(&ch->tx_waiting, 1, memory_order_release);
		/* The peer's application may poll nothing just now: its engine does. */
		if (ch->placeholder_mem == NULL)
			nvi_ring(ch);
	}
	return (int32_t)(atomic_load_explicit(&ch->tx_credit, memory_order_relaxed) -
			 ch->tx_drain) >= 0;
}

/* Nothing of the message is read any more, whatever becomes of its memory. */
static void give_up_source(struct nvi_tx_message *m)
{
	m->sg.at_left = 0;
	m->sg.desc_handle = m->sg.handle = 0;
	m->sg.left = 1;
	m->sg.need = 1;
}

/*
 * The source of the message went away between its fragments (deregistered).
 * Nothing of this fragment was published.
 */
static void abandon_message(struct nvi_chan *ch)
{
	struct nvi_tx_message *m = &ch->tx;
	uint8_t op = m->op;

	if (op != W_OP_READ_RESP) {
		give_up_source(m);
		if (!may_refuse(ch, m->entry))
			return;
	}
	m->op = 0;
	if (op == W_OP_READ_RESP) {
		ch->vi->counters.ProtectionErrors++;
		vi_event_raise(ch->vi->nic, ch->vi, VIP_RESOURCE_VI, VIP_ERROR_RDMAR_PROT);
		/* Its entry is the slot of the peer's request. */
		nvi_fault_tx(ch, (struct nvi_fault){ NVI_BREAK_LOCAL, W_ERR_RDMA_PROT, m->entry });
		return;
	}
	if (ch->level == VIP_SERVICE_UNRELIABLE && m->done > 0)
		publish_bare(ch, W_OP_ABORT, W_F_LAST);
	refuse_descriptor(ch, m->entry, VIP_STATUS_PROTECTION_ERROR);
}

/*
 * Of a message alone the peer copies one fragment while the next is written; in a stream it has
 * others to copy, and long fragments are cheaper.
 */
static uint32_t fragment_bytes(const struct nvi_chan *ch, uint32_t total, uint32_t left)
{
	uint32_t most = total / 4 < TX_FRAG_MIN ? TX_FRAG_MIN : total / 4;

	if (most > ch->out_frag_max || slots_used(ch) >= TX_STREAM)
		most = ch->out_frag_max;
	most &= ~(uint32_t)(U_LINE - 1);
	return left < most ? left : most;
}

/* Sends one fragment of the message under way. False when it must wait or was given up. */
static bool tx_fragment(struct nvi_chan *ch)
{
	struct nvi_tx_message *m = &ch->tx;
	uint32_t head_bytes = m->with_rdma ? sizeof(m->rdma) : 0;
	uint32_t left = m->total - m->done, n = left, offset = 0;
	bool in_payload = left > W_INLINE_MAX - head_bytes, last;
	uint8_t bytes[W_INLINE_MAX];
	struct w_slot line;
	uint64_t cursor;
	int err;

	if (in_payload)
		n = fragment_bytes(ch, m->total, n);
	if (!reserve(ch, in_payload, n, &offset, &cursor))
		return false;
	if (head_bytes != 0)
		memcpy(bytes, &m->rdma, sizeof(m->rdma));
	err = in_payload ? gather(ch, &ch->out, ch->out_payload + offset, n)
			 : gather(ch, NULL, bytes + head_bytes, n);
	if (u_unlikely(err != 0)) {
		abandon_message(ch);
		return false;
	}
	last = n == left;
	memcpy(line.data, bytes, W_HEAD_INLINE);
	line.head.op = m->op;
	line.head.flags = fragment_flags(m, last, in_payload);
	/* One that completes when it is out does not wait for credit, but direct writes do. */
	if (last && (m->op == W_OP_WRITE || (ch->grants_held != 0 && m->op == W_OP_SEND) ||
		     (m->ack && (ch->level == VIP_SERVICE_RELIABLE_RECEPTION || m->total != n ||
				 in_payload))))
		line.head.flags |= W_F_ACK;
	line.head.reserved = 0;
	line.head.arg = last ? (m->with_imm ? m->imm : 0) : m->done == 0 ? m->total : 0;
	line.head.frag = m->op == W_OP_READ_REQ ? (uint32_t)sizeof(m->rdma) : n;
	if (!in_payload)
		head_bytes += n;
	publish(ch, &line, bytes + W_HEAD_INLINE,
		head_bytes > W_HEAD_INLINE ? head_bytes - W_HEAD_INLINE : 0, cursor);
	m->done += n;
	m->with_rdma = false;
	if (last)
		finish_message(ch, m->total == n && !in_payload);
	return true;
}

/* ---- once more ------------------------------------------------------------------------------ */

/* Copies a fragment from where it came from to its place in the payload buffer.  0 or -EFAULT. */
static int payload_again(struct nvi_chan *ch, const struct nvi_retx_slot *k, uint32_t offset)
{
	uint32_t skip = k->offset, left = k->line.head.frag, len;
	uint8_t *dst = ch->out_payload + offset, *src;
	struct vi_vi *vi = ch->vi;
	struct vi_sg sg;

	if (k->answer) {
		const void *at =
			vi_tpt_check(vi->nic, vi->ptag, k->addr, left, k->handle, VI_REMOTE_READ);

		if (at == NULL)
			return -EFAULT;
		copy_region(&ch->out, dst, at, left);
		return 0;
	}
	if (vi_sg_init(&sg, vi, vi_wqe(&vi->sq, k->entry), VI_READ, (uint64_t)k->offset + left) !=
	    0)
		return -EFAULT;
	while (left > 0) {
		if (vi_sg_next(&sg, skip > 0 ? skip : left, &src, &len) != 0)
			return -EFAULT;
		if (skip > 0) {
			skip -= len;
			continue;
		}
		u_out_copy(&ch->out, dst, src, len);
		dst += len;
		left -= len;
	}
	return 0;
}

/* The source went away, which the consumer may not do with a descriptor that is not complete. */
static void lost_source(struct nvi_chan *ch, const struct nvi_retx_slot *k)
{
	if (k->answer) {
		ch->vi->counters.ProtectionErrors++;
		vi_event_raise(ch->vi->nic, ch->vi, VIP_RESOURCE_VI, VIP_ERROR_RDMAR_PROT);
		nvi_fault_tx(ch, (struct nvi_fault){ NVI_BREAK_LOCAL, W_ERR_SENDER, 0 });
		return;
	}
	if (ch->tx.op != 0 && ch->tx.entry == k->entry)
		ch->tx.op = 0;
	refuse_descriptor(ch, k->entry, VIP_STATUS_PROTECTION_ERROR);
}

int nvi_tx_again(struct nvi_chan *ch)
{
	uint32_t n = atomic_load_explicit(&ch->tx_credit, memory_order_relaxed);
	uint64_t cursor = ch->payload_freed;

	for (; n != ch->tx_seq; n++) {
		struct nvi_retx_slot *k = &ch->retx[n & ch->out_mask];
		uint32_t frag = k->line.head.frag;

		if ((k->line.head.flags & W_F_BUFFERED) &&
		    payload_again(ch, k, w_payload_place(&cursor, ch->out_payload_bytes, frag)) !=
			    0) {
			/* What lies behind it is not sent. */
			ch->tx_seq = n;
			lost_source(ch, k);
			return -EFAULT;
		}
		store_slot(ch, n, &k->line, k->line.more, W_TAIL_INLINE);
	}
	u_out_fence(&ch->out);
	return 0;
}

/* ---- the loop ------------------------------------------------------------------------------- */

static bool work_left(const struct nvi_chan *ch)
{
	const struct vi_wq *sq = &ch->vi->sq;

	return ch->tx.op != 0 || sq->next != sq->tail ||
	       atomic_load_explicit(&ch->answer_tail, memory_order_relaxed) !=
		       atomic_load_explicit(&ch->answer_head, memory_order_relaxed);
}

/*
 * Sends what can be sent, TX_BUDGET bytes at most: nobody shall wait long for
 * the locks.  tx_more says that credit was not what ended it.
 */
static uint32_t tx_run(struct nvi_chan *ch)
{
	uint32_t start = ch->tx_seq;
	uint64_t end = ch->payload_cursor + TX_BUDGET;
	bool more = false;

	ch->tx_direct = 0;
	while (!more && atomic_load_explicit(&ch->faults, memory_order_relaxed) == 0 &&
	       vi_state(ch->vi) == VIP_STATE_CONNECTED) {
		if (ch->tx.op == 0 && !begin_answer(ch) && !begin_descriptor(ch))
			break;
		if (!tx_fragment(ch))
			break;
		more = ch->payload_cursor >= end;
	}
	more = ((more || ch->tx_direct >= TX_BUDGET) && work_left(ch)) || ch->tx_unflushed != 0;
	if (more != atomic_load_explicit(&ch->tx_more, memory_order_relaxed))
		atomic_store_explicit(&ch->tx_more, more, memory_order_relaxed);
	if (ch->tx_seq != start) {
		u_out_fence(&ch->out);
		nvi_ring_slots(ch);
	}
	return ch->tx_seq - start;
}

int nvi_tx_progress(struct nvi_chan *ch)
{
	int credit = nvi_tx_credit(ch);
	uint32_t sent;

	if (credit < 0) {
		credit_fault(ch);
		return 1;
	}
	sent = tx_run(ch);
	nvi_tx_update_waiting(ch);
	return credit != 0 || sent != 0 || ch->tx_direct != 0;
}

/* ---- the fast path -------------------------------------------------------------------------- */

/* Nothing stands in the way of a message. */
static inline bool nothing_before(const struct nvi_chan *ch)
{
	return ch->tx.op == 0 && slots_used(ch) <= ch->out_mask &&
	       atomic_load_explicit(&ch->faults, memory_order_relaxed) == 0 &&
	       atomic_load_explicit(&ch->answer_head, memory_order_relaxed) ==
		       atomic_load_explicit(&ch->answer_tail, memory_order_relaxed);
}

/* And the peer's memory is written with plain stores. */
static inline bool may_send_now(const struct nvi_chan *ch)
{
	return ch->plain && nothing_before(ch);
}

/* Header and, last, the sequence that publishes the slot. */
static inline void publish_short(struct nvi_chan *ch, struct w_slot *slot, uint8_t op,
				 uint32_t length, uint32_t imm, uint8_t flags)
{
	uint64_t word = W_WHAT(op, flags | W_F_FIRST | W_F_LAST) | (uint64_t)imm << 32;

	U_TRACE(payload_written, ch, ch->tx_seq);
	memcpy(&slot->head, &word, sizeof(word));
	word = length | (uint64_t)w_seq(ch->tx_seq) << 32;
	/* A: payload and header before the sequence, which goes with the length in one store. */
	__atomic_store_n((uint64_t *)(void *)&slot->head.frag, word, __ATOMIC_RELEASE);
	U_TRACE(slot_published, ch, ch->tx_seq);
	ch->payload_after[ch->tx_seq & ch->out_mask] = ch->payload_cursor;
	ch->tx_seq++;
	if (flags & W_F_ACK)
		ch->tx_asked = ch->tx_seq;
	nvi_ring_slots(ch);
}

static inline void count_sent(struct nvi_chan *ch, uint32_t length)
{
	ch->vi->counters.SlotsSent++;
	ch->vi->counters.MessagesSent++;
	ch->vi->counters.BytesSent += length;
}

/* From the consumer's memory, which was looked at just now, straight into the peer's. */
bool nvi_send_now(struct vi_vi *vi, const uint8_t *at, uint32_t n, uint16_t control, uint32_t imm)
{
	struct nvi_chan *ch = vi->chan;
	struct w_slot *slot = &ch->out_slots[ch->tx_seq & ch->out_mask], *ahead;
	bool with_imm = (control & VIP_CONTROL_IMMEDIATE) != 0;

	if (u_unlikely(n > W_INLINE_MAX || ch->level == VIP_SERVICE_RELIABLE_RECEPTION ||
		       !may_send_now(ch)))
		return false;
	ahead = &ch->out_slots[(ch->tx_seq + TX_AHEAD) & ch->out_mask];
	u_prefetch_write(ahead);
	if (u_likely(n <= W_HEAD_INLINE)) {
		u_copy_small(slot->data, at, n);
	} else {
		u_prefetch_write(ahead->more);
		memcpy(slot->data, at, W_HEAD_INLINE);
		u_copy_small(slot->more, at + W_HEAD_INLINE, n - W_HEAD_INLINE);
	}
	publish_short(ch, slot, W_OP_SEND, n, with_imm ? imm : 0,
		      (uint8_t)((with_imm ? W_F_IMM : 0) | (ch->grants_held != 0 ? W_F_ACK : 0)));
	count_sent(ch, n);
	return true;
}

bool nvi_send_resumable(struct vi_vi *vi, const uint8_t *at, uint32_t n, uint16_t control,
			uint32_t imm)
{
	struct nvi_chan *ch = vi->chan;
	bool with_imm = (control & VIP_CONTROL_IMMEDIATE) != 0;
	uint32_t head = n < W_HEAD_INLINE ? n : W_HEAD_INLINE;
	struct w_slot line = {
		.head = { .op = W_OP_SEND,
			  .flags = (uint8_t)(W_F_FIRST | W_F_LAST | (with_imm ? W_F_IMM : 0) |
					     (ch->grants_held != 0 ? W_F_ACK : 0)),
			  .arg = with_imm ? imm : 0,
			  .frag = n },
	};

	if (n > W_INLINE_MAX || ch->level == VIP_SERVICE_RELIABLE_RECEPTION || !nothing_before(ch))
		return false;
	u_copy_small(line.data, at, head);
	publish(ch, &line, at + head, n - head, ch->payload_cursor);
	u_out_fence(&ch->out);
	nvi_ring_slots(ch);
	vi->counters.MessagesSent++;
	vi->counters.BytesSent += n;
	return true;
}

bool nvi_answer_now(struct nvi_chan *ch, const void *src, uint32_t n)
{
	struct w_slot *slot = &ch->out_slots[ch->tx_seq & ch->out_mask];
	uint32_t head = n < W_HEAD_INLINE ? n : W_HEAD_INLINE;

	if (!may_send_now(ch))
		return false;
	u_copy_shared(slot->data, src, head);
	if (n > head)
		u_copy_shared(slot->more, (const uint8_t *)src + head, n - head);
	publish_short(ch, slot, W_OP_READ_RESP, n, 0, 0);
	ch->vi->counters.SlotsSent++;
	return true;
}

/*
 * The descriptor just posted, if it is plain and fits into one fragment through the payload buffer:
 * copied from its memory, which was looked at as it was posted.  Returns false, and did nothing,
 * for any other.
 */
static bool send_buffered(struct nvi_chan *ch)
{
	struct vi_wq *sq = &ch->vi->sq;
	struct vi_wqe *wqe = vi_wqe(sq, sq->next);
	struct w_slot *slot = &ch->out_slots[ch->tx_seq & ch->out_mask];
	bool with_imm = (wqe->control & VIP_CONTROL_IMMEDIATE) != 0;
	bool ack = ch->level != VIP_SERVICE_UNRELIABLE;
	uint64_t cursor = ch->payload_cursor;
	uint32_t offset, n = wqe->length;

	if (wqe->at == NULL || wqe->segs != 1 || sq->next + 1 != sq->tail || n <= W_INLINE_MAX ||
	    n > ch->out_frag_max || ch->tx_unflushed != 0 ||
	    (n > TX_WHOLE && slots_used(ch) < TX_STREAM) || !may_send_now(ch))
		return false;
	offset = w_payload_place(&cursor, ch->out_payload_bytes, n);
	if (u_unlikely(cursor - ch->payload_freed > ch->out_payload_bytes))
		return false;
	u_copy_ahead(ch->out_payload + offset, wqe->at, n);
	ch->payload_cursor = cursor;
	wqe->first = ch->tx_seq;
	publish_short(ch, slot, W_OP_SEND, n, with_imm ? wqe->imm : 0,
		      (uint8_t)(W_F_BUFFERED | (ack ? W_F_ACK : 0) | (with_imm ? W_F_IMM : 0)));
	wqe->mark = ch->tx_seq;
	sq->next++;
	count_sent(ch, n);
	if (!ack)
		nvi_complete_send(sq, sq->next - 1, 0);
	return true;
}

/* The request of a plain read that was just posted; false, and nothing done, for any other. */
static bool read_now(struct nvi_chan *ch)
{
	struct vi_wq *sq = &ch->vi->sq;
	uint32_t tail = atomic_load_explicit(&ch->read_tail, memory_order_relaxed);
	struct w_slot *slot = &ch->out_slots[ch->tx_seq & ch->out_mask];
	struct vi_wqe *wqe = vi_wqe(sq, sq->next);
	const VIP_ADDRESS_SEGMENT *remote;
	struct w_rdma rdma;

	if (wqe->at == NULL || !is_read(wqe) || sq->next + 1 != sq->tail || ch->tx_unflushed != 0 ||
	    ch->level == VIP_SERVICE_UNRELIABLE || !may_send_now(ch) ||
	    tail - atomic_load_explicit(&ch->read_head, memory_order_acquire) >= NVI_READS_MAX)
		return false;
	remote = vi_wqe_remote(wqe);
	rdma = (struct w_rdma){ remote->Data.AddressBits, remote->Handle, wqe->length };
	memcpy(slot->data, &rdma, sizeof(rdma));
	ch->reads[tail % NVI_READS_MAX] = sq->next;
	/* A: pairs with nvi_rx.c: the read is known before its request is out. */
	atomic_store_explicit(&ch->read_tail, tail + 1, memory_order_release);
	wqe->first = ch->tx_seq;
	publish_short(ch, slot, W_OP_READ_REQ, sizeof(rdma), 0, 0);
	wqe->mark = ch->tx_seq;
	sq->next++;
	ch->vi->counters.RdmaReads++;
	ch->vi->counters.SlotsSent++;
	return true;
}

/* The write just posted, directly or soon so; false when it is for tx_run(). */
static bool write_now(struct nvi_chan *ch)
{
	struct vi_wq *sq = &ch->vi->sq;
	struct vi_wqe *wqe = vi_wqe(sq, sq->next);

	return sq->next + 1 == sq->tail && may_start(ch, wqe, sq->next) &&
	       nvi_write_queued(ch, wqe) != NVI_METHOD_SLOTS;
}

void nvi_post_send(struct vi_vi *vi)
{
	struct nvi_chan *ch = vi->chan;

	if (!send_buffered(ch) && !read_now(ch) && !write_now(ch)) {
		tx_run(ch);
		nvi_break_after_tx(ch);
	}
	nvi_tx_update_waiting(ch);
	if (atomic_load_explicit(&ch->tx_waiting, memory_order_relaxed) == 0)
		return;
	/*
	 * The notify request may not ask for credit yet.  Who arms looks at tx_waiting after a
	 * barrier.
	 */
	if (u_unlikely(ch->must_fence))
		atomic_thread_fence(memory_order_seq_cst);
	else
		atomic_signal_fence(memory_order_seq_cst);
	nvi_disarm(ch);
}
