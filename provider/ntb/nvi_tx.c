/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When a descriptor completes, by the level of the connection:
 *  - unreliable: when its last fragment is out;
 *  - reliable delivery, sent inline: when its last fragment is out;
 *  - reliable delivery, sent otherwise: when the peer has consumed its last slot,
 *    because only then the buffer is not needed again;
 *  - reliable reception: when the peer has consumed its last slot;
 *  - RDMA read: when the answer has been placed (nvi_rx_read.c).
 */
#include <errno.h>

#include "nvi_answer.h"
#include "nvi_credit.h"
#include "nvi_payload.h"
#include "nvi_place.h"
#include "nvi_publish.h"
#include "nvi_refuse.h"
#include "nvi_store.h"
#include "nvi_tx.h"
#include "nvi_write.h"
#include "u_copy.h"
#include "vi_wq_hot.h"

#define TX_BUDGET (1u << 20)
#define TX_FRAG_MIN 4096u

/* ---- the next message ------------------------------------------------------------------------ */

/* All slots of the message are published: completes its descriptor, unless that waits for credit. */
static void finish_message(struct nvi_chan *ch, bool inline_only)
{
	struct nvi_tx_message *m = &ch->tx.msg;
	struct vi_wq *sq = &ch->vi->sq;
	struct vi_wqe *wqe;
	uint8_t op = m->op;

	m->op = 0;
	if (op == W_OP_READ_RESP)
		return;
	wqe = vi_wqe(sq, m->entry);
	wqe->mark = ch->tx.seq;
	if (nvi_is_read(wqe))
		return;
	if (op == W_OP_WRITE)
		ch->tx.write_end = ch->tx.seq;
	ch->vi->counters.MessagesSent++;
	ch->vi->counters.BytesSent += m->total;
	if (!m->ack || (ch->level == VIP_SERVICE_RELIABLE_DELIVERY && inline_only))
		nvi_complete_send(sq, m->entry, 0);
}

/*
 * Begins an answer to a read of the peer; its source is checked again for each fragment.  1: begun; 0: there
 * is none; -EAGAIN: it has to wait, and all that follows it.
 */
static int begin_read_answer(struct nvi_chan *ch)
{
	uint32_t head = atomic_load_explicit(&ch->answers.head, memory_order_relaxed);
	const struct nvi_answer *answer = &ch->answers.queue[head % NVI_READS_MAX];
	struct nvi_tx_message *m = &ch->tx.msg;
	enum nvi_write_method method;

	/* R: pairs with nvi_rx_queue_answer() in nvi_rx_read.c. */
	if (head == atomic_load_explicit(&ch->answers.tail, memory_order_acquire))
		return 0;
	method = nvi_answer_method(ch, answer);
	if (method == NVI_METHOD_WAIT)
		return -EAGAIN;
	m->op = W_OP_READ_RESP;
	m->read_req = (struct w_read_req){ answer->rdma, answer->offer };
	m->placed = method == NVI_METHOD_DONE;
	/* The last slot of an answer through slots asks for credit: after that, answers can be placed. */
	m->ack = answer->offered;
	m->is_value = answer->is_value;
	m->value = answer->value;
	m->entry = answer->slot;
	/* Before the answer is out, since the peer may send its next request when it has the last byte. */
	atomic_store_explicit(&ch->answers.head, head + 1, memory_order_release);
	m->total = m->rdma.length;
	m->done = 0;
	m->with_rdma = m->with_imm = false;
	return 1;
}

/* Returns 0 if the descriptor can be sent, else the VIP_STATUS bits of the error. */
static uint32_t check_descriptor(struct nvi_chan *ch, const struct vi_wqe *wqe)
{
	if (nvi_is_read(wqe) && ch->level == VIP_SERVICE_UNRELIABLE)
		return VIP_STATUS_FORMAT_ERROR;
	return vi_desc_check_send(ch->vi, wqe);
}

/* Fills in the request of an atomic operation, for the wire. */
static void begin_atomic(struct nvi_tx_message *m, const struct vi_wqe *wqe)
{
	const VIPX_ATOMIC_SEGMENT *operands = vi_wqe_atomic(wqe);

	m->op = W_OP_ATOMIC_REQ;
	m->atomic_req.atomic = (struct w_atomic){ .operand = operands->Operand,
						  .compare = operands->Compare,
						  .op = wqe->imm,
						  .fetch = wqe->segs > VI_ATOMIC_SEGMENTS };
}

/* Begins a write, a read or an atomic operation as the message under way; notes the latter two as to be answered. */
static void begin_rdma(struct nvi_chan *ch, const struct vi_wqe *wqe)
{
	const VIP_ADDRESS_SEGMENT *remote = vi_wqe_remote(wqe);
	struct nvi_tx_message *m = &ch->tx.msg;

	m->with_rdma = true;
	m->rdma.addr = remote->Data.AddressBits;
	m->rdma.handle = remote->Handle;
	m->rdma.length = 0;
	if (!nvi_is_read(wqe)) {
		m->op = W_OP_WRITE;
		/* Counts the write in a run if no other message was sent since the last write. */
		ch->tx.write_run = ch->tx.seq == ch->tx.write_end ? ch->tx.write_run + 1 : 1;
		ch->vi->counters.RdmaWrites++;
		return;
	}
	m->op = W_OP_READ_REQ;
	m->with_imm = false; /* the bit means nothing on a read */
	m->rdma.length = wqe->length;
	m->total = 0;
	m->ack = false;
	m->offered = nvi_offer_read(ch, wqe, &m->read_req.offer);
	if ((wqe->control & VIP_CONTROL_OP_MASK) == VIPX_CONTROL_OP_ATOMIC)
		begin_atomic(m, wqe);
	ch->vi->counters.RdmaReads++;
	/*
	 * A: pairs with begin_read_response() in nvi_rx_read.c: the read is known before its
	 * request is out.
	 */
	uint32_t tail = atomic_load_explicit(&ch->tx.read_tail, memory_order_relaxed);
	ch->tx.reads[tail % NVI_READS_MAX] = m->entry;
	nvi_note_offer(ch, tail, m->offered);
	atomic_store_explicit(&ch->tx.read_tail, tail + 1, memory_order_release);
}

bool nvi_tx_may_start(const struct nvi_chan *ch, const struct vi_wqe *wqe, uint32_t entry)
{
	if ((wqe->control & VIP_CONTROL_QFENCE) && nvi_sq_done(&ch->vi->sq) != entry)
		return false;
	return !nvi_is_read(wqe) ||
	       atomic_load_explicit(&ch->tx.read_tail, memory_order_relaxed) -
			       atomic_load_explicit(&ch->rx.read_head, memory_order_acquire) <
		       NVI_READS_MAX;
}

/*
 * Starts the next descriptor, after those that can be stored or placed at once.  False: there is none, it has to
 * wait, or it was refused.
 */
static bool begin_descriptor(struct nvi_chan *ch)
{
	struct vi_wq *sq = &ch->vi->sq;
	struct nvi_tx_message *m = &ch->tx.msg;

	while (sq->next != sq->tail) {
		uint32_t entry = sq->next;
		struct vi_wqe *wqe = vi_wqe(sq, entry);
		uint32_t bits;

		if (!nvi_tx_may_start(ch, wqe, entry) || ch->tx.run_bytes >= TX_BUDGET)
			return false;
		if (ch->tx.grants_held != 0 && vi_wqe_there(sq, wqe)) {
			enum nvi_write_method method = nvi_write_queued(ch, wqe);

			if (method == NVI_METHOD_DONE)
				continue;
			if (method == NVI_METHOD_WAIT)
				return false;
		}
		if (u_unlikely(ch->tx.unflushed != 0)) {
			if (!nvi_writes_flush(ch) && nvi_chan_breaks(ch))
				return false;
			continue;
		}
		if (nvi_may_place(wqe)) {
			enum nvi_write_method method = nvi_place_queued(ch, wqe);

			if (method == NVI_METHOD_DONE)
				continue;
			if (method == NVI_METHOD_WAIT)
				return false;
		}
		bits = check_descriptor(ch, wqe);
		if (bits == 0 &&
		    vi_sg_init(&m->sg, ch->vi, wqe, nvi_is_read(wqe) ? VI_WRITE : VI_READ,
			       wqe->length) != 0)
			bits = VIP_STATUS_PROTECTION_ERROR;
		if (u_unlikely(bits != 0 && !nvi_may_refuse(ch, entry)))
			return false;
		sq->next++;
		if (u_unlikely(bits != 0)) {
			nvi_refuse(ch, entry, bits);
			if (ch->level != VIP_SERVICE_UNRELIABLE)
				return false;
			continue;
		}
		wqe->first = ch->tx.seq;
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

/* ---- fragments ------------------------------------------------------------------------------- */

/* Copies n payload bytes of the message to dst (outbound if `out`). 0 or -EFAULT. */
static int gather(struct nvi_chan *ch, const struct u_out *out, uint8_t *dst, uint32_t n)
{
	struct nvi_tx_message *m = &ch->tx.msg;

	if (m->op == W_OP_READ_RESP && m->is_value) {
		memcpy(dst, &m->value, n);
		return 0;
	}
	if (m->op == W_OP_READ_RESP) {
		const void *src = vi_tpt_check(ch->vi->nic, ch->vi->ptag, m->rdma.addr + m->done, n,
					       m->rdma.handle, VI_REMOTE_READ);

		if (src == NULL)
			return -EFAULT;
		nvi_copy_region(out, dst, src, n);
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

/*
 * The length of the message that may go to the start of the payload buffer with its next fragment, UINT32_MAX: it may
 * not.  Answers to reads may not: what asks for credit for each would cost more.
 */
static uint32_t length_to_place(const struct nvi_tx_message *m)
{
	return m->done == 0 && m->op != W_OP_READ_RESP ? m->total : UINT32_MAX;
}

/*
 * Is there a slot, and with `in_payload` room in the payload buffer for n bytes of the message?  Sets *p to their
 * place; it has no flags if they go into the slot.  Takes in credit when there seems to be none, or as
 * nvi_payload_place() does, and marks a fault if that is wrong.
 */
static bool reserve(struct nvi_chan *ch, bool in_payload, uint32_t n, struct nvi_payload *p)
{
	const uint32_t length = length_to_place(&ch->tx.msg);

	for (int round = 0;; round++) {
		*p = (struct nvi_payload){ .cursor = ch->tx.cursor };
		if (u_likely(nvi_slots_used(ch) <= ch->out_mask &&
			     (!in_payload || nvi_payload_place(ch, length, n, p))))
			return true;
		if (round > 0)
			return false;
		ch->vi->counters.Stalls++;
		if (nvi_tx_credit(ch) < 0) {
			nvi_credit_fault(ch);
			return false;
		}
	}
}

/* Returns the flags of the next fragment, but for W_F_ACK. */
static uint8_t fragment_flags(const struct nvi_tx_message *m, bool last,
			      const struct nvi_payload *p)
{
	uint8_t flags = p->flags;

	if (m->done == 0)
		flags |= W_F_FIRST;
	if (last)
		flags |= W_F_LAST;
	if (m->with_imm)
		flags |= W_F_IMM;
	return flags;
}

/*
 * The length of the next fragment.  While no other message is under way, fragments are short, so that the peer
 * copies one while the next is written; in a stream it has others to copy, and long fragments are cheaper.
 */
static uint32_t fragment_bytes(const struct nvi_chan *ch, uint32_t total, uint32_t left)
{
	uint32_t most = total / 4 < TX_FRAG_MIN ? TX_FRAG_MIN : total / 4;

	if (most > ch->out_frag_max || nvi_slots_used(ch) >= NVI_TX_STREAM)
		most = ch->out_frag_max;
	most &= ~(uint32_t)(U_LINE - 1);
	return left < most ? left : most;
}

/* The bytes that a slot of a request, or the first of a write, carries before its payload. */
static uint32_t request_bytes(const struct nvi_tx_message *m)
{
	if (m->op == W_OP_ATOMIC_REQ)
		return sizeof(m->atomic_req);
	return m->op == W_OP_READ_REQ && m->offered ? sizeof(m->read_req) : sizeof(m->rdma);
}

/*
 * Does the last fragment of the message ask for credit?  `buffered`: bytes of it are in the payload buffer.  A message
 * that completes when it is out does not wait for credit, but direct writes do, and the next that may go to the start
 * of the payload buffer.
 */
static bool asks_for_credit(const struct nvi_chan *ch, bool buffered)
{
	const struct nvi_tx_message *m = &ch->tx.msg;

	return m->op == W_OP_WRITE || m->returns || (ch->tx.direct_writes && m->op == W_OP_SEND) ||
	       (m->ack && (ch->level == VIP_SERVICE_RELIABLE_RECEPTION || buffered));
}

/* Sends one fragment of the message under way. False when it must wait or was given up. */
static bool tx_fragment(struct nvi_chan *ch)
{
	struct nvi_tx_message *m = &ch->tx.msg;
	uint32_t head_bytes = m->with_rdma ? request_bytes(m) : 0;
	uint32_t left = m->total - m->done, n = left;
	bool in_payload = left > W_INLINE_MAX - head_bytes, last;
	uint8_t bytes[W_INLINE_MAX];
	struct w_slot line;
	struct nvi_payload p;
	int err;

	if (in_payload)
		n = fragment_bytes(ch, m->total, n);
	if (!reserve(ch, in_payload, n, &p))
		return false;
	if (head_bytes != 0)
		memcpy(bytes, &m->rdma, sizeof(m->rdma));
	if (u_unlikely(head_bytes > sizeof(m->rdma)))
		memcpy(bytes, &m->atomic_req, head_bytes);
	err = in_payload ? gather(ch, &ch->out, ch->out_payload + p.offset, n)
			 : gather(ch, NULL, bytes + head_bytes, n);
	if (u_unlikely(err != 0)) {
		nvi_abandon_message(ch);
		return false;
	}
	last = n == left;
	memcpy(line.data, bytes, W_HEAD_INLINE);
	line.head.op = m->op;
	line.head.flags = fragment_flags(m, last, &p);
	if (m->done == 0)
		m->returns = p.returns;
	if (last && asks_for_credit(ch, m->total != n || in_payload))
		line.head.flags |= W_F_ACK;
	line.head.reserved = 0;
	line.head.arg = last ? (m->with_imm ? m->imm : 0) : m->done == 0 ? m->total : 0;
	line.head.frag = m->op == W_OP_READ_REQ || m->op == W_OP_ATOMIC_REQ ? head_bytes : n;
	if (!in_payload)
		head_bytes += n;
	nvi_publish(ch, &line, bytes + W_HEAD_INLINE,
		    head_bytes > W_HEAD_INLINE ? head_bytes - W_HEAD_INLINE : 0, p.cursor);
	if (in_payload) {
		nvi_payload_take(ch, &p);
		ch->tx.run_bytes += n;
	}
	m->done += n;
	m->with_rdma = false;
	if (last)
		finish_message(ch, m->total == n && !in_payload);
	return true;
}

/* As tx_fragment(), for an answer that is placed. */
static bool tx_piece(struct nvi_chan *ch)
{
	int got = nvi_answer_place(ch);

	if (u_unlikely(got < 0))
		nvi_abandon_message(ch);
	return got > 0;
}

/* ---- the loop -------------------------------------------------------------------------------- */

/* Is a message under way?  Begins one if none is; an answer that has to wait is not overtaken. */
static bool begin_message(struct nvi_chan *ch)
{
	int answer = ch->tx.msg.op == 0 ? begin_read_answer(ch) : 1;

	return answer > 0 || (answer == 0 && begin_descriptor(ch));
}

/* Is a message under way, or a descriptor or an answer still to be started? */
static bool work_left(const struct nvi_chan *ch)
{
	const struct vi_wq *sq = &ch->vi->sq;

	return ch->tx.msg.op != 0 || sq->next != sq->tail || nvi_answers_left(ch);
}

/*
 * TX_BUDGET bytes at most, so that no thread waits long for the locks.  Afterwards tx.more asks for
 * another run: this one ended by that limit, or left writes to be flushed.
 */
uint32_t nvi_tx_run(struct nvi_chan *ch)
{
	uint32_t start = ch->tx.seq;
	bool more;

	ch->tx.run_bytes = 0;
	while (ch->tx.run_bytes < TX_BUDGET &&
	       atomic_load_explicit(&ch->breaking.faults, memory_order_relaxed) == 0 &&
	       vi_state(ch->vi) == VIP_STATE_CONNECTED) {
		if (!begin_message(ch))
			break;
		if (!(ch->tx.msg.op == W_OP_READ_RESP && ch->tx.msg.placed ? tx_piece(ch)
									   : tx_fragment(ch)))
			break;
	}
	more = (ch->tx.run_bytes >= TX_BUDGET && work_left(ch)) || ch->tx.unflushed != 0;
	if (u_unlikely(more))
		nvi_want_progress(ch);
	else if (atomic_load_explicit(&ch->tx.more, memory_order_relaxed))
		atomic_store_explicit(&ch->tx.more, false, memory_order_relaxed);
	if (ch->tx.seq != start) {
		u_out_fence(&ch->out);
		nvi_ring_slots(ch);
	}
	return ch->tx.seq - start;
}

int nvi_tx_progress(struct nvi_chan *ch)
{
	int credit = nvi_tx_credit(ch);
	uint32_t sent;

	if (credit < 0) {
		nvi_credit_fault(ch);
		return 1;
	}
	sent = nvi_tx_run(ch);
	nvi_tx_update_waiting(ch);
	return credit != 0 || sent != 0 || ch->tx.run_bytes != 0;
}
