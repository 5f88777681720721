/* SPDX-License-Identifier: BSD-2-Clause */
#include "nvi_post.h"
#include "nvi_answer.h"
#include "nvi_break.h"
#include "nvi_credit.h"
#include "nvi_notify.h"
#include "nvi_payload.h"
#include "nvi_place.h"
#include "nvi_publish.h"
#include "nvi_tx.h"
#include "nvi_write.h"
#include "vi_wq_hot.h"

#define POST_WHOLE 8192u /* a lone message up to this long is one fragment */

/* ---- a short send without a queue entry ------------------------------------------------------ */

/* Counts a message, and the slot that it took. */
static inline void count_sent(struct vi_vi *vi, uint32_t length)
{
	vi->counters.SlotsSent++;
	vi->counters.MessagesSent++;
	vi->counters.BytesSent += length;
}

static inline uint32_t imm_of(const VIP_DESCRIPTOR *desc)
{
	return __atomic_load_n(&desc->CS.ImmediateData, __ATOMIC_RELAXED);
}

/*
 * After a message was published: rings if `notify` asks for that, and wakes threads that wait for completions.
 * Returns true.
 */
static __attribute__((noinline)) bool tell_sent(struct nvi_chan *ch, uint32_t notify)
{
	if (notify != 0)
		nvi_ring_slots_slow(ch, notify);
	vi_sq_announce_done(&ch->vi->sq);
	return true;
}

/*
 * May a message be sent without a queue entry?  Not if something has to go before it, no slot is free by the credit
 * taken in so far, or a fault is marked.
 */
static inline bool may_send(const struct nvi_chan *ch)
{
	return atomic_load_explicit(&ch->tx.waiting, memory_order_relaxed) == 0 &&
	       ch->tx.seq != ch->tx.limit &&
	       atomic_load_explicit(&ch->breaking.faults, memory_order_relaxed) == 0;
}

/*
 * Sends from the consumer's memory, which was checked just now, directly into the peer's slot, and appends the
 * descriptor to the queue, complete.  Returns true: the caller has asked may_send(), and n is at most W_INLINE_MAX.
 */
static inline __attribute__((always_inline)) bool send_slot(struct vi_vi *vi, struct nvi_chan *ch,
							    VIP_DESCRIPTOR *desc, const uint8_t *at,
							    uint32_t n, uint8_t flags, uint32_t imm)
{
	struct w_slot *slot = nvi_slot_out(ch, ch->tx.seq);
	struct w_slot *ahead = nvi_slot_out(ch, ch->tx.seq + NVI_TX_AHEAD);
	uint32_t notify;

	if (u_likely(n <= W_HEAD_INLINE)) {
		/* The post has prefetched the line of this slot; more sends may follow. */
		if (!nvi_prefetches_later(vi))
			u_prefetch_write(ahead);
		u_copy_small(slot->data, at, n);
	} else {
		u_prefetch_write(slot->more);
		u_prefetch_write(slot);
		u_copy_small(slot->more, at + W_HEAD_INLINE, n - W_HEAD_INLINE);
		memcpy(slot->data, at, W_HEAD_INLINE);
	}
	nvi_store_plain(ch, slot, W_OP_SEND, n, imm, flags);
	if (n > W_HEAD_INLINE) {
		u_prefetch_write(ahead);
		u_prefetch_write(ahead->more);
	}
	notify = nvi_notify_request(ch);
	nvi_prefetch_later(vi, ch, n);
	count_sent(vi, n);
	vi_sq_append_done(&vi->sq, desc, n, VIP_STATUS_OP_SEND);
	if (u_unlikely((notify | vi_wq_awaited(&vi->sq)) != 0))
		return tell_sent(ch, notify);
	return true;
}

/* As send_slot(), with the descriptor's immediate data, and asking for credit if direct writes need that. */
static __attribute__((noinline)) bool send_slot_with(struct vi_vi *vi, VIP_DESCRIPTOR *desc,
						     const uint8_t *at, uint32_t n,
						     uint16_t control)
{
	struct nvi_chan *ch = vi->chan;
	bool with_imm = (control & VIP_CONTROL_IMMEDIATE) != 0;

	return send_slot(vi, ch, desc, at, n,
			 (uint8_t)((with_imm ? W_F_IMM : 0) | (ch->tx.direct_writes ? W_F_ACK : 0)),
			 with_imm ? imm_of(desc) : 0);
}

/* As send_slot(); out of line, so that the copy of longer payloads does not cost the two-word case any registers. */
static __attribute__((noinline)) bool send_slot_longer(struct vi_vi *vi, VIP_DESCRIPTOR *desc,
						       const uint8_t *at, uint32_t n)
{
	return send_slot(vi, vi->chan, desc, at, n, 0, 0);
}

/*
 * As send_slot(), through the payload buffer; false, and nothing is sent, if the message is too long or has to wait
 * for room.  A message that may go to the start of that buffer asks for credit, so that the next one may.
 */
static __attribute__((noinline)) bool send_buffered(struct vi_vi *vi, VIP_DESCRIPTOR *desc,
						    const uint8_t *at, uint32_t n, uint16_t control)
{
	struct nvi_chan *ch = vi->chan;
	struct w_slot *slot = nvi_slot_out(ch, ch->tx.seq);
	const bool with_imm = (control & VIP_CONTROL_IMMEDIATE) != 0;
	struct nvi_payload p;
	uint32_t notify;

	if (n > ch->out_frag_max || u_unlikely(!nvi_payload_place(ch, n, n, &p)))
		return false;
	nvi_payload_copy(ch, &p, at, n, slot);
	if (ch->tx.direct_writes || p.returns)
		p.flags |= W_F_ACK;
	nvi_store_plain(ch, slot, W_OP_SEND, n, with_imm ? imm_of(desc) : 0,
			(uint8_t)(p.flags | (with_imm ? W_F_IMM : 0)));
	notify = nvi_notify_request(ch);
	nvi_payload_demote(ch, &p, n);
	nvi_prefetch_later(vi, ch, n);
	count_sent(vi, n);
	vi_sq_append_done(&vi->sq, desc, n, VIP_STATUS_OP_SEND);
	if (u_unlikely((notify | vi_wq_awaited(&vi->sq)) != 0))
		return tell_sent(ch, notify);
	return true;
}

bool nvi_send_unqueued(struct vi_vi *vi, VIP_DESCRIPTOR *desc, const uint8_t *at, uint32_t n,
		       uint16_t control)
{
	struct nvi_chan *ch = vi->chan;

	if (u_unlikely(!may_send(ch)))
		return false;
	if (n > W_INLINE_MAX)
		return send_buffered(vi, desc, at, n, control);
	if (u_unlikely((control & VIP_CONTROL_IMMEDIATE) != 0 || ch->tx.direct_writes))
		return send_slot_with(vi, desc, at, n, control);
	if (n > U_COPY_WORDS)
		return send_slot_longer(vi, desc, at, n);
	return send_slot(vi, ch, desc, at, n, 0, 0);
}

bool nvi_send_unqueued_resumable(struct vi_vi *vi, VIP_DESCRIPTOR *desc, const uint8_t *at,
				 uint32_t n, uint16_t control)
{
	struct nvi_chan *ch = vi->chan;
	bool with_imm = (control & VIP_CONTROL_IMMEDIATE) != 0;
	uint32_t head = n < W_HEAD_INLINE ? n : W_HEAD_INLINE;
	struct w_slot line = {
		.head = { .op = W_OP_SEND,
			  .flags = (uint8_t)(W_F_FIRST | W_F_LAST | (with_imm ? W_F_IMM : 0) |
					     (ch->tx.direct_writes ? W_F_ACK : 0)),
			  .arg = with_imm ? imm_of(desc) : 0,
			  .frag = n },
	};

	if (!may_send(ch))
		return false;
	u_copy_small(line.data, at, head);
	nvi_publish(ch, &line, at + head, n - head, ch->tx.cursor);
	u_out_fence(&ch->out);
	nvi_prefetch_later(ch->vi, ch, n);
	vi->counters.MessagesSent++;
	vi->counters.BytesSent += n;
	vi_sq_append_done(&vi->sq, desc, n, VIP_STATUS_OP_SEND);
	return tell_sent(ch, nvi_notify_request(ch));
}

/* ---- a descriptor that was just queued ------------------------------------------------------- */

/*
 * Sends the descriptor just posted, if it is plain and fits into one fragment in the payload
 * buffer: copies from its memory, which was checked when it was posted.  Returns false, and does
 * nothing, for any other, or if it has to wait.
 */
static bool post_buffered(struct nvi_chan *ch)
{
	struct vi_wq *sq = &ch->vi->sq;
	struct vi_wqe *wqe = vi_wqe(sq, sq->next);
	struct w_slot *slot = nvi_slot_out(ch, ch->tx.seq);
	bool with_imm = (wqe->control & VIP_CONTROL_IMMEDIATE) != 0;
	const bool waits = ch->level != VIP_SERVICE_UNRELIABLE;
	uint32_t n = wqe->length;
	struct nvi_payload p;

	if (wqe->at == NULL || wqe->segs != 1 || sq->next + 1 != sq->tail || n <= W_INLINE_MAX ||
	    n > ch->out_frag_max || ch->tx.unflushed != 0 ||
	    (n > POST_WHOLE && nvi_slots_used(ch) < NVI_TX_STREAM) || !nvi_may_publish_plain(ch) ||
	    u_unlikely(!nvi_payload_place(ch, n, n, &p)))
		return false;
	nvi_payload_copy(ch, &p, wqe->at, n, slot);
	wqe->first = ch->tx.seq;
	if (waits || p.returns)
		p.flags |= W_F_ACK;
	nvi_publish_plain(ch, slot, W_OP_SEND, n, with_imm ? wqe->imm : 0,
			  (uint8_t)(p.flags | (with_imm ? W_F_IMM : 0)));
	nvi_payload_demote(ch, &p, n);
	wqe->mark = ch->tx.seq;
	sq->next++;
	nvi_prefetch_later(ch->vi, ch, n);
	count_sent(ch->vi, n);
	if (!waits)
		nvi_complete_send(sq, sq->next - 1, 0);
	return true;
}

/*
 * Sends the request of a plain read that was just posted.  Returns false, and does nothing, for any other, or if it has
 * to wait.
 */
static bool post_read_request(struct nvi_chan *ch)
{
	struct vi_wq *sq = &ch->vi->sq;
	uint32_t tail = atomic_load_explicit(&ch->tx.read_tail, memory_order_relaxed);
	struct w_slot *slot = nvi_slot_out(ch, ch->tx.seq);
	struct vi_wqe *wqe = vi_wqe(sq, sq->next);
	const VIP_ADDRESS_SEGMENT *remote;
	struct w_read_req req;
	uint32_t bytes = sizeof(req.rdma);
	bool offered;

	if (wqe->at == NULL || !nvi_is_read(wqe) || sq->next + 1 != sq->tail ||
	    ch->tx.unflushed != 0 || ch->level == VIP_SERVICE_UNRELIABLE ||
	    !nvi_may_publish_plain(ch) ||
	    tail - atomic_load_explicit(&ch->rx.read_head, memory_order_acquire) >= NVI_READS_MAX)
		return false;
	remote = vi_wqe_remote(wqe);
	req.rdma = (struct w_rdma){ remote->Data.AddressBits, remote->Handle, wqe->length };
	memcpy(slot->data, &req.rdma, sizeof(req.rdma));
	offered = nvi_offer_read(ch, wqe, &req.offer);
	if (offered) {
		memcpy(slot->data + sizeof(req.rdma), &req.offer, sizeof(req.offer));
		bytes = sizeof(req);
	}
	ch->tx.reads[tail % NVI_READS_MAX] = sq->next;
	nvi_note_offer(ch, tail, offered);
	/*
	 * A: pairs with place_whole_read_answer() in nvi_rx_read.c: the read is known before its
	 * request is out.
	 */
	atomic_store_explicit(&ch->tx.read_tail, tail + 1, memory_order_release);
	wqe->first = ch->tx.seq;
	nvi_publish_plain(ch, slot, W_OP_READ_REQ, bytes, 0, 0);
	wqe->mark = ch->tx.seq;
	sq->next++;
	nvi_prefetch_later(ch->vi, ch, 0);
	ch->vi->counters.RdmaReads++;
	ch->vi->counters.SlotsSent++;
	return true;
}

/*
 * Stores the write that was just posted now, or leaves it until credit comes; false when it is for
 * nvi_tx_run().
 */
static bool post_write(struct nvi_chan *ch)
{
	struct vi_wq *sq = &ch->vi->sq;
	struct vi_wqe *wqe = vi_wqe(sq, sq->next);

	return sq->next + 1 == sq->tail && nvi_tx_may_start(ch, wqe, sq->next) &&
	       nvi_write_queued(ch, wqe) != NVI_METHOD_SLOTS;
}

/* Places the message that was just posted; false when it is to be sent in another way, or has to wait. */
static bool post_placed(struct nvi_chan *ch)
{
	struct vi_wq *sq = &ch->vi->sq;
	struct vi_wqe *wqe = vi_wqe(sq, sq->next);

	if (!nvi_may_place(wqe) || sq->next + 1 != sq->tail || ch->tx.unflushed != 0 ||
	    !nvi_may_publish(ch) || !nvi_tx_may_start(ch, wqe, sq->next) ||
	    nvi_place_queued(ch, wqe) != NVI_METHOD_DONE)
		return false;
	u_out_fence(&ch->out);
	nvi_ring_slots(ch);
	nvi_prefetch_later(ch->vi, ch, wqe->length);
	return true;
}

/*
 * Ends the watching of the receive queue, at once, or later if another thread holds rx_lock: called when sends wait.
 * Polls of a CQ that watch that queue do not visit the VI, and the word that they compare does not show credit.  A send
 * queue on the same CQ has been marked.
 */
static U_COLD void poll_for_credit(struct vi_vi *vi)
{
	/* The engine may hold the lock for a moment, and be interrupted there. */
	if (!u_biased_try(&vi->rx_lock)) {
		vi_cq_unwatch_later(&vi->rq);
		return;
	}
	vi_cq_unwatch(&vi->rq);
	u_biased_drop(&vi->rx_lock);
}

/* Does a CQ watch the receive queue, while the send queue is on no CQ or on another one? */
static inline bool is_watched_alone(const struct vi_vi *vi)
{
	return atomic_load_explicit(&vi->rq.hot, memory_order_relaxed) == VI_WQ_WATCHED &&
	       vi->rq.cq != vi->sq.cq;
}

/* After descriptors were queued: makes sure that those which wait for credit or answers will be continued. */
static void await_credit(struct vi_vi *vi, struct nvi_chan *ch)
{
	nvi_tx_update_waiting(ch);
	if (atomic_load_explicit(&ch->tx.waiting, memory_order_relaxed) == 0)
		return;
	/* The notify request may not ask for credit yet. */
	nvi_fence_for_arming(ch);
	nvi_disarm(ch);
	if (u_unlikely(is_watched_alone(vi)))
		poll_for_credit(vi);
}

void nvi_post_send(struct vi_vi *vi)
{
	struct nvi_chan *ch = vi->chan;

	if (!post_placed(ch) && !post_buffered(ch) && !post_read_request(ch) && !post_write(ch)) {
		nvi_tx_run(ch);
		nvi_break_after_tx(ch);
	}
	await_credit(vi, ch);
}

/* ---- several short sends in one slot --------------------------------------------------------- */

static_assert(W_INLINE_MAX <= VI_PACKED_MOST, "messages of a packed slot");

/* Stores messages of n bytes into the slot, the last one first: the second line before the first. */
static inline __attribute__((always_inline)) void
store_packed_of(struct w_slot *slot, const struct vi_packed *all, uint32_t n)
{
	uint32_t off = all->count * n, head;

	for (uint32_t i = all->count; i-- > 0;) {
		off -= n;
		if (off + n <= W_HEAD_INLINE) {
			u_copy_small(slot->data + off, all->at[i], n);
		} else if (off >= W_HEAD_INLINE) {
			u_copy_small(slot->more + (off - W_HEAD_INLINE), all->at[i], n);
		} else {
			head = W_HEAD_INLINE - off;
			u_copy_small(slot->more, all->at[i] + head, n - head);
			u_copy_small(slot->data + off, all->at[i], head);
		}
	}
}

/* Stores packed messages.  If the compiler knows the length, each is one load and one store. */
static inline void store_packed(struct w_slot *slot, const struct vi_packed *all)
{
	if (all->length == 4)
		store_packed_of(slot, all, 4);
	else if (all->length == 8)
		store_packed_of(slot, all, 8);
	else
		store_packed_of(slot, all, all->length);
}

/* Counts the messages, but not their slot. */
static inline void count_packed(struct vi_vi *vi, const struct vi_packed *all)
{
	vi->counters.MessagesSent += all->count;
	vi->counters.BytesSent += all->count * all->length;
}

/* As send_slot(): without queue entries, directly into the peer's memory.  Returns true. */
static bool send_packed_unqueued(struct vi_vi *vi, struct nvi_chan *ch, const struct vi_packed *all)
{
	struct w_slot *slot = nvi_slot_out(ch, ch->tx.seq);
	struct w_slot *ahead = nvi_slot_out(ch, ch->tx.seq + NVI_TX_AHEAD);
	const uint32_t bytes = all->count * all->length;
	uint32_t notify;

	if (bytes > W_HEAD_INLINE) {
		u_prefetch_write(slot->more);
		u_prefetch_write(ahead->more);
	}
	if (!nvi_prefetches_later(vi))
		u_prefetch_write(ahead);
	store_packed(slot, all);
	nvi_store_plain(ch, slot, W_OP_SEND, all->length, all->count,
			(uint8_t)(W_F_PACKED | (ch->tx.direct_writes ? W_F_ACK : 0)));
	ch->tx.others -= all->count - 1;
	notify = nvi_notify_request(ch);
	nvi_prefetch_later(vi, ch, 0);
	vi->counters.SlotsSent++;
	count_packed(vi, all);
	vi_sq_append_done_run(&vi->sq, all->descs, all->count, all->length, VIP_STATUS_OP_SEND);
	if (u_unlikely((notify | vi_wq_awaited(&vi->sq)) != 0))
		return tell_sent(ch, notify);
	return true;
}

/*
 * Appends the descriptors as started, for the next slot, which the caller publishes; returns the first of their
 * entries.
 */
static uint32_t queue_packed(struct nvi_chan *ch, const struct vi_packed *all)
{
	struct vi_wq *sq = &ch->vi->sq;
	struct vi_checked checked = { .tpt_version = sq->tpt_version,
				      .at_len = all->length,
				      .length = all->length,
				      .segs = 1 };
	const uint32_t first = sq->tail;

	for (uint32_t i = 0; i < all->count; i++) {
		struct vi_wqe *wqe;

		checked.at = all->at[i];
		wqe = vi_wq_append(sq, all->descs[i], all->handle, &checked);
		wqe->first = ch->tx.seq;
		wqe->mark = ch->tx.seq + 1;
	}
	sq->next = sq->tail;
	if (sq->cq != NULL)
		vi_cq_mark(sq);
	return first;
}

/*
 * Sends packed messages through the queue: they or earlier sends have to wait for credit, or the slot has to be held
 * for retransmission.  False: nothing was done, since no slot can be published now.
 */
static bool send_packed_queued(struct vi_vi *vi, struct nvi_chan *ch, const struct vi_packed *all)
{
	const bool wait = ch->level == VIP_SERVICE_RELIABLE_RECEPTION;
	const uint32_t bytes = all->count * all->length;
	struct w_slot line = {
		.head = { .op = W_OP_SEND,
			  .flags = (uint8_t)(W_F_FIRST | W_F_LAST | W_F_PACKED |
					     (wait || ch->tx.direct_writes ? W_F_ACK : 0)),
			  .arg = all->count,
			  .frag = all->length },
	};
	uint32_t first;

	if (ch->tx.unflushed != 0 || !nvi_may_publish(ch))
		return false;
	store_packed(&line, all);
	first = queue_packed(ch, all);
	nvi_publish(ch, &line, line.more, bytes > W_HEAD_INLINE ? bytes - W_HEAD_INLINE : 0,
		    ch->tx.cursor);
	u_out_fence(&ch->out);
	count_packed(vi, all);
	for (uint32_t i = 0; !wait && i < all->count; i++)
		nvi_complete_send(&vi->sq, first + i, 0);
	nvi_ring_slots(ch);
	nvi_prefetch_later(vi, ch, 0);
	await_credit(vi, ch);
	return true;
}

bool nvi_send_packed(struct vi_vi *vi, const struct vi_packed *all)
{
	struct nvi_chan *ch = vi->chan;

	/* If the count of credit is wrong, nvi_tx_run() finds that again, for the first of the descriptors. */
	if (u_unlikely(ch->tx.seq == ch->tx.limit) && nvi_tx_credit(ch) <= 0)
		return false;
	if (u_likely(ch->plain && ch->level != VIP_SERVICE_RELIABLE_RECEPTION &&
		     vi_sq_idle(&vi->sq) && may_send(ch)))
		return send_packed_unqueued(vi, ch, all);
	return send_packed_queued(vi, ch, all);
}
