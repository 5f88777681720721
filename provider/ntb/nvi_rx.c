/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receiving.  A header is copied once, the copy is checked, and only the copy is used.  On the fast
 * path, consume_plain() and what it calls compare kind and length of a whole message with its receive
 * (read_plain()); whatever they do not take is checked by w_slot_check(), and then by
 * nvi_rx_take_receive() (nvi_rx_message.c), which compares a message's length with the room of its
 * receive, or by nvi_rx_write(), which checks the range of an RDMA write.  Only slot_consumed() marks
 * slots as consumed.
 */
#include <errno.h>

#include "nvi_advert.h"
#include "nvi_fault.h"
#include "nvi_notify.h"
#include "nvi_publish.h"
#include "nvi_rx.h"
#include "nvi_rx_atomic.h"
#include "nvi_rx_message.h"
#include "nvi_rx_read.h"
#include "nvi_rx_write.h"
#include "u_copy.h"
#include "u_trace.h"
#include "vi_wq_hot.h"

#define RX_AHEAD 2u   /* slots prefetched ahead of the one that is consumed */
#define RX_SPAN 4096u /* bytes of the payload buffer that are prefetched together */

/* Marks slot n as consumed; it is not yet returned as credit. */
static inline void slot_consumed(struct nvi_chan *ch, uint32_t n)
{
	/* A: pairs with nvi_offer_read(): the slot's bytes are in their places. */
	atomic_store_explicit(&ch->rx.seq, n + 1, memory_order_release);
}

/*
 * Returns the address of a fragment's payload in the payload buffer, and moves the cursor to its end; W_F_REWOUND in
 * `flags` rewinds it before.
 */
static inline const uint8_t *place_payload(struct nvi_chan *ch, uint8_t flags, uint32_t length)
{
	if (flags & W_F_REWOUND)
		ch->rx.cursor = ch->rx.cursor_credited =
			w_payload_rewind(ch->rx.cursor, ch->in_payload_bytes);
	return ch->in_payload + w_payload_place(&ch->rx.cursor, ch->in_payload_bytes, length);
}

/* ---- the fast path --------------------------------------------------------------------------- */

/* The words of a slot that the fast path uses, each loaded once: the peer may change the slot. */
struct plain_slot {
	struct vi_wqe *wqe; /* the receive for its message */
	uint64_t what;	    /* W_WHAT(), and above it the immediate data */
	uint32_t frag;
};

/*
 * Is the slot a whole message for a receive that was checked when it was posted?  The caller checks
 * the flags and the immediate data in `what`.
 */
static inline bool read_plain(struct nvi_chan *ch, const struct w_slot *slot, struct plain_slot *s)
{
	struct vi_vi *vi = ch->vi;
	struct vi_wq *rq = &vi->rq;

	s->wqe = vi_wqe(rq, rq->next);
	memcpy(&s->what, &slot->head, sizeof(s->what));
	__asm__ volatile("" : "+r"(s->what));
	s->frag = __atomic_load_n(&slot->head.frag, __ATOMIC_RELAXED);
	/* `at_len` is 0 where the receive was not checked. */
	return u_likely(ch->rx.stream.op == 0 && s->frag <= ch->rx.stream.max_length &&
			rq->next != rq->tail && s->frag - 1 < s->wqe->at_len &&
			s->wqe->tpt_version == vi_tpt_version(&vi->nic->tpt) &&
			vi_state(vi) == VIP_STATE_CONNECTED);
}

/* Marks slot n as consumed and completes its receive, when the payload has been placed. */
static inline __attribute__((always_inline)) void
finish_plain(struct nvi_chan *ch, uint32_t n, const struct plain_slot *s, uint32_t status)
{
	struct vi_vi *vi = ch->vi;

	U_TRACE(payload_copied, ch, s->frag);
	if (u_unlikely((s->what & W_WHAT(0, W_F_ACK)) != 0))
		ch->rx.due = n;
	vi->rq.next++;
	vi->counters.MessagesReceived++;
	vi->counters.BytesReceived += s->frag;
	slot_consumed(ch, n);
	vi_wq_complete_next(&vi->rq, true, s->wqe, status, s->frag);
}

/* Makes credit due when a quarter of the payload buffer was consumed. */
static inline void ack_payload(struct nvi_chan *ch)
{
	if (ch->rx.cursor - ch->rx.cursor_credited >= ch->in_payload_bytes / 4)
		ch->rx.due = atomic_load_explicit(&ch->rx.seq, memory_order_relaxed);
}

/* Copies the payload from the slot into the receive.  False, and nothing is copied: it is too long for a slot. */
static inline bool place_inline(struct nvi_chan *ch, const struct w_slot *slot,
				const struct plain_slot *s)
{
	if (u_likely(s->frag <= W_HEAD_INLINE)) {
		u_copy_small(s->wqe->at, slot->data, s->frag);
		ch->rx.two_lines = false;
		return true;
	}
	if (u_unlikely(s->frag > W_INLINE_MAX))
		return false;
	ch->rx.two_lines = true;
	memcpy(s->wqe->at, slot->data, W_HEAD_INLINE);
	u_copy_small(s->wqe->at + W_HEAD_INLINE, slot->more, s->frag - W_HEAD_INLINE);
	return true;
}

/* Copies bytes [off, off + n) of the inline payload, a message of a packed slot. */
static inline __attribute__((always_inline)) void
copy_packed(uint8_t *dst, const struct w_slot *slot, uint32_t off, uint32_t n)
{
	uint32_t head;

	if (off + n <= W_HEAD_INLINE) {
		u_copy_small(dst, slot->data + off, n);
	} else if (off >= W_HEAD_INLINE) {
		u_copy_small(dst, slot->more + (off - W_HEAD_INLINE), n);
	} else {
		head = W_HEAD_INLINE - off;
		u_copy_small(dst, slot->data + off, head);
		u_copy_small(dst + head, slot->more, n - head);
	}
}

/*
 * Copies `count` messages into the memory of the next receives; false when one of these is too
 * short or was checked at another version of the TPT than `first`.
 */
static inline __attribute__((always_inline)) bool place_packed_of(const struct vi_wq *rq,
								  const struct w_slot *slot,
								  uint32_t count, uint32_t length,
								  const struct vi_wqe *first)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct vi_wqe *wqe = vi_wqe(rq, rq->next + i);

		if (u_unlikely(length > wqe->at_len || wqe->tpt_version != first->tpt_version))
			return false;
		copy_packed(wqe->at, slot, i * length, length);
	}
	return true;
}

/* As place_packed_of(); if the compiler knows the length, each message is one load and one store. */
static inline bool place_packed(const struct vi_wq *rq, const struct w_slot *slot, uint32_t count,
				uint32_t length, const struct vi_wqe *first)
{
	if (length == 4)
		return place_packed_of(rq, slot, count, 4, first);
	if (length == 8)
		return place_packed_of(rq, slot, count, 8, first);
	return place_packed_of(rq, slot, count, length, first);
}

/*
 * As consume_plain(), with several messages; `s` was read from the slot for the first of them.  Either all have
 * receives, or no receive is taken; then some of their bytes may still have been copied into the receives' memory.
 */
static __attribute__((noinline)) bool consume_packed(struct nvi_chan *ch, const struct w_slot *slot,
						     uint32_t n, const struct plain_slot *s)
{
	const uint32_t count = (uint32_t)(s->what >> 32), length = s->frag;
	struct vi_vi *vi = ch->vi;
	struct vi_wq *rq = &vi->rq;

	if (((uint32_t)s->what & ~W_WHAT(0, W_F_ACK)) !=
		    W_WHAT(W_OP_SEND, W_F_FIRST | W_F_LAST | W_F_PACKED) ||
	    !w_fits_packed(count, length) || count > rq->tail - rq->next ||
	    u_unlikely(!place_packed(rq, slot, count, length, s->wqe)))
		return false;
	ch->rx.two_lines = count * length > W_HEAD_INLINE;
	U_TRACE(payload_copied, ch, count * length);
	if (s->what & W_WHAT(0, W_F_ACK))
		ch->rx.due = n;
	rq->next += count;
	vi->counters.MessagesReceived += count;
	vi->counters.BytesReceived += count * length;
	ch->rx.others -= count - 1;
	slot_consumed(ch, n);
	vi_wq_complete_run(rq, true, count, VIP_STATUS_OP_RECEIVE, length);
	return true;
}

/* As consume_plain(), with payload in the payload buffer, with immediate data, or with several messages. */
static __attribute__((noinline)) bool consume_other(struct nvi_chan *ch, uint32_t n)
{
	const struct w_slot *slot = nvi_slot_in(ch, n);
	const uint32_t any = W_WHAT(0, W_F_IMM | W_F_BUFFERED | W_F_ACK | W_F_REWOUND);
	uint32_t status = VIP_STATUS_OP_RECEIVE, imm;
	const uint8_t *payload;
	struct plain_slot s;

	if (!read_plain(ch, slot, &s))
		return false;
	if (((uint32_t)s.what & ~any) != W_WHAT(W_OP_SEND, W_F_FIRST | W_F_LAST))
		return consume_packed(ch, slot, n, &s);
	imm = (uint32_t)(s.what >> 32);
	if (s.what & W_WHAT(0, W_F_IMM))
		status |= VIP_STATUS_IMMEDIATE;
	else if (imm != 0)
		return false;
	if ((s.what & W_WHAT(0, W_F_BUFFERED)) == 0) {
		if ((s.what & W_WHAT(0, W_F_REWOUND)) != 0 || !place_inline(ch, slot, &s))
			return false;
	} else {
		/*
		 * While receives are to be advertised, a message that could be placed takes the
		 * slow path, which advertises them.
		 */
		if (s.frag > w_frag_max(ch->in_payload_bytes) ||
		    (ch->rx.adverts_due && s.frag >= VI_LONG_RECV))
			return false;
		payload = place_payload(ch, s.what >> 8, s.frag);
		u_prefetch_span(payload, s.frag < RX_SPAN ? s.frag : RX_SPAN);
		memcpy(s.wqe->at, payload, s.frag);
		ack_payload(ch);
	}
	s.wqe->imm = imm;
	finish_plain(ch, n, &s, status);
	return true;
}

/*
 * Consumes a plain message of more than U_COPY_WORDS bytes in one slot.  False, and nothing changes: it is too long
 * for that.
 */
static __attribute__((noinline)) bool consume_longer(struct nvi_chan *ch, const struct w_slot *slot,
						     uint32_t n, struct vi_wqe *wqe, uint64_t what,
						     uint32_t frag)
{
	const struct plain_slot s = { wqe, what, frag };

	if (u_unlikely(!place_inline(ch, slot, &s)))
		return false;
	finish_plain(ch, n, &s, VIP_STATUS_OP_RECEIVE);
	return true;
}

/*
 * Consumes a whole message in one slot, or several, for plain receives that were checked when they were posted, and
 * returns true.  Returns false, and changes nothing, for any other slot, including malformed ones: those take the
 * slow path.
 */
static inline bool consume_plain(struct nvi_chan *ch, const struct w_slot *slot, uint32_t n)
{
	struct plain_slot s;

	U_TRACE(slot_seen, ch, n);
	if (u_unlikely(!read_plain(ch, slot, &s)))
		return false;
	if (u_unlikely((s.what & ~(uint64_t)W_WHAT(0, W_F_ACK)) !=
		       W_WHAT(W_OP_SEND, W_F_FIRST | W_F_LAST)))
		return consume_other(ch, n);
	if (s.frag > U_COPY_WORDS)
		return consume_longer(ch, slot, n, s.wqe, s.what, s.frag);
	place_inline(ch, slot, &s);
	finish_plain(ch, n, &s, VIP_STATUS_OP_RECEIVE);
	return true;
}

/* ---- the loop -------------------------------------------------------------------------------- */

/*
 * Copies and checks the next slot, and moves rx.cursor past its payload, so this is done once for a slot.
 * 0; -EAGAIN: there is none; -EPROTO: it is malformed, and *s has what an error report needs.
 */
static int check_slot(struct nvi_chan *ch, struct nvi_rx_slot *s)
{
	uint32_t n = atomic_load_explicit(&ch->rx.seq, memory_order_relaxed);
	const struct w_slot *slot = nvi_slot_in(ch, n);

	if (!nvi_slot_came(slot, n))
		return -EAGAIN;
	s->number = n;
	s->message = 0;
	s->op = slot->head.op;
	s->flags = slot->head.flags;
	s->arg = slot->head.arg;
	s->frag = slot->head.frag;
	s->in = slot;
	s->buffered = NULL;
	/* The compiler must not load the slot again instead of using the copies: the peer may change the slot. */
	__asm__ volatile("" : "+m"(*s));
	if (s->op == W_OP_WRITE || s->op == W_OP_READ_REQ || s->op == W_OP_ATOMIC_REQ) {
		memcpy(&s->rdma, slot->data, sizeof(s->rdma));
		if (s->op == W_OP_READ_REQ)
			memcpy(&s->offer, slot->data + sizeof(s->rdma), sizeof(s->offer));
		if (s->op == W_OP_ATOMIC_REQ)
			memcpy(&s->atomic, slot->data + sizeof(s->rdma), sizeof(s->atomic));
		__asm__ volatile("" : "+m"(*s));
	}
	if (w_slot_check(&ch->rx.stream, s->op, s->flags, slot->head.reserved, s->arg, s->frag,
			 &s->rdma, &s->inline_off) != 0 ||
	    (s->op == W_OP_ATOMIC_REQ && w_atomic_check(&s->atomic) != 0))
		return -EPROTO;
	if (s->flags & W_F_BUFFERED)
		s->buffered = place_payload(ch, s->flags, s->frag);
	return 0;
}

/* Handles a checked slot by its operation; a fault that it finds is marked. */
static void take_in(struct nvi_chan *ch, const struct nvi_rx_slot *s)
{
	switch (s->op) {
	case W_OP_SEND:
		if (s->flags & W_F_PACKED)
			nvi_rx_packed(ch, s);
		else
			nvi_rx_send(ch, s);
		break;
	case W_OP_WRITE:
		nvi_rx_write(ch, s);
		break;
	case W_OP_READ_REQ:
		nvi_rx_read_request(ch, s);
		break;
	case W_OP_READ_RESP:
		nvi_rx_read_response(ch, s);
		break;
	case W_OP_ABORT:
		nvi_rx_abort(ch, s);
		break;
	case W_OP_ATOMIC_REQ:
		nvi_rx_atomic_request(ch, s);
		break;
	case W_OP_NOP: /* only its W_F_ACK matters */
		break;
	}
}

void nvi_rx_return_credit(struct nvi_chan *ch)
{
	uint32_t n = atomic_load_explicit(&ch->rx.seq, memory_order_relaxed);

	ch->rx.due = n + ch->in_mask / 4 + 1;
	if (n == ch->rx.credited)
		return;
	nvi_count_returned(ch, n);
	ch->rx.cursor_credited = ch->rx.cursor;
	/*
	 * A: pairs with nvi_tx_credit() at the peer: the slots and payload buffer may be written
	 * again.
	 */
	u_out_store32(&ch->out, &ch->out_ctl->credit, n);
	u_out_fence(&ch->out);
	nvi_ring_credit(ch);
}

/* Have so many slots been consumed that credit has to go back now? */
static inline bool credit_due(const struct nvi_chan *ch)
{
	uint32_t n = atomic_load_explicit(&ch->rx.seq, memory_order_relaxed);

	return (int32_t)(n - ch->rx.due) >= 0;
}

/* Counts consumed slots, makes the channel polled, and returns credit that is due.  True if credit went back. */
static inline bool after_rx(struct nvi_chan *ch, uint32_t consumed)
{
	ch->vi->counters.SlotsReceived += consumed;
	/* After rx.seq was stored. */
	nvi_fence_for_arming(ch);
	nvi_disarm(ch);
	if (u_likely(!credit_due(ch)) || vi_state(ch->vi) != VIP_STATE_CONNECTED)
		return false;
	nvi_rx_return_credit(ch);
	return true;
}

/*
 * Prefetches a later slot in a stream of messages.  A sender that is ahead has already written it;
 * from one that is not, the prefetch would take the line away.  Before that, calls nvi_prefetch_next() instead.
 */
static inline void rx_prefetch(struct nvi_chan *ch, uint32_t n)
{
	const struct w_slot *slot = nvi_slot_in(ch, n + RX_AHEAD);

	if (ch->rx.streak++ < RX_AHEAD) {
		nvi_prefetch_next(ch);
		return;
	}
	__builtin_prefetch(slot);
	if (ch->rx.two_lines)
		__builtin_prefetch(slot->more);
}

/* Consumes a batch of slots of any kind.  Returns NVI_RX_ANY, or NVI_RX_NOTHING if it consumed none. */
static __attribute__((noinline)) enum nvi_rx_came rx_any(struct nvi_chan *ch)
{
	return nvi_rx(ch, NVI_RX_BATCH) != 0 ? NVI_RX_ANY : NVI_RX_NOTHING;
}

enum nvi_rx_came nvi_rx_next(struct nvi_chan *ch)
{
	uint32_t n = atomic_load_explicit(&ch->rx.seq, memory_order_relaxed);
	const struct w_slot *slot = nvi_slot_in(ch, n);

	if (!nvi_slot_came(slot, n)) {
		if (ch->rx.two_lines)
			__builtin_prefetch(slot->more);
		ch->rx.streak = 0;
		return NVI_RX_NOTHING;
	}
	rx_prefetch(ch, n);
	if (u_unlikely(!consume_plain(ch, slot, n)))
		return rx_any(ch);
	return after_rx(ch, 1) ? NVI_RX_ANY : NVI_RX_MESSAGE;
}

int nvi_rx(struct nvi_chan *ch, uint32_t budget)
{
	struct nvi_rx_slot s;
	uint32_t consumed = 0;
	int err = 0;

	while (consumed < budget && vi_state(ch->vi) == VIP_STATE_CONNECTED) {
		uint32_t n = atomic_load_explicit(&ch->rx.seq, memory_order_relaxed);

		if (!nvi_slot_came(nvi_slot_in(ch, n), n))
			break;
		if (u_likely(consume_plain(ch, nvi_slot_in(ch, n), n))) {
			consumed++;
			if (credit_due(ch))
				nvi_rx_return_credit(ch);
			continue;
		}
		err = check_slot(ch, &s);
		if (err != 0)
			break;
		take_in(ch, &s);
		consumed++;
		/*
		 * A slot that breaks the connection is not counted as consumed: credit would
		 * acknowledge it.
		 */
		if (u_unlikely(nvi_chan_has_fault(ch, NVI_FAULT_RX)))
			break;
		if (s.flags & W_F_ACK)
			ch->rx.due = s.number;
		nvi_count_messages(ch, s.op, s.flags, s.arg);
		slot_consumed(ch, s.number);
		if (s.buffered != NULL) {
			ack_payload(ch);
			if (credit_due(ch))
				nvi_rx_return_credit(ch);
		}
	}
	if (u_unlikely(err == -EPROTO))
		nvi_rx_protocol_error(ch, &s);
	if (u_unlikely(ch->rx.adverts_due) && err == 0 && !nvi_chan_has_fault(ch, NVI_FAULT_RX))
		nvi_advertise(ch);
	if (consumed != 0) {
		/* The word that a CQ may compare is that of a slot which has been consumed. */
		if (ch->vi->rq.cq != NULL)
			vi_cq_unwatch(&ch->vi->rq);
		after_rx(ch, consumed);
	}
	return (int)consumed;
}
