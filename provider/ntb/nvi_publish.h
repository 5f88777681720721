/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Publishing slots.  Every slot of a channel is published here, under tx_lock: by
 * nvi_store_plain() where the slices are mapped memory and nothing is held for retransmission,
 * else by nvi_publish().  Retransmission stores slots again by nvi_store_slot().
 */
#ifndef NVI_PUBLISH_H
#define NVI_PUBLISH_H

#include "nvi_credit.h"
#include "nvi_notify.h"
#include "u_trace.h"

#define NVI_TX_AHEAD                                                                               \
	8u /* so far ahead of the slot written one is prefetched, in a stream of sends */

/*
 * Updates the counts that placed messages rely on, for the slot being published, before nvi_slot_published().  A whole
 * send that was not placed changes none.
 */
static inline void nvi_note_slot(struct nvi_chan *ch, uint8_t op, uint8_t flags, uint32_t arg)
{
	uint64_t n;

	if (op == W_OP_SEND && (flags & (W_F_FIRST | W_F_PLACED | W_F_PACKED)) == W_F_FIRST)
		return;
	n = nvi_slots_sent(ch);
	ch->tx.others += (uint64_t)1 - w_receives(op, flags, arg);
	if (flags & W_F_PLACED) {
		if (ch->tx.placed_end != n)
			ch->tx.placed_at = n;
		ch->tx.placed_end = n + 1;
	} else if (op != W_OP_SEND && op != W_OP_NOP) {
		ch->tx.rdma_end = n + 1;
		if (op == W_OP_WRITE || op == W_OP_READ_RESP)
			ch->tx.bytes_end = n + 1;
	}
}

/* Returns the address of slot n of the peer's fifo. */
static inline struct w_slot *nvi_slot_out(const struct nvi_chan *ch, uint32_t n)
{
	return &ch->out_slots[n & ch->out_mask];
}

/*
 * Chooses the line that a post prefetches first.  If a message of the peer has come since the last send, it is that
 * of the next slot: the peer polls that, but the line has to be fetched in any case.  Otherwise it is that of a later
 * slot, which the peer does not poll yet.  The address of the latter is odd.
 *
 * No line is prefetched after a longer message: while the next message of this kind waits for a second line, or is
 * copied into the payload buffer, the peer's polls would take the line back.
 *
 * This function: a message was sent that took `length` bytes.
 */
static inline void nvi_prefetch_later(struct vi_vi *vi, const struct nvi_chan *ch, uint32_t length)
{
	const uint8_t *later = (const uint8_t *)nvi_slot_out(ch, ch->tx.seq + NVI_TX_AHEAD) + 1;

	vi_prefetch_hint(vi, u_likely(length <= W_HEAD_INLINE) ? later : (const uint8_t *)vi);
}

/* Does the post prefetch the line of a later slot? */
static inline bool nvi_prefetches_later(const struct vi_vi *vi)
{
	return ((uintptr_t)atomic_load_explicit(&vi->prefetch, memory_order_relaxed) & 1) != 0;
}

/* A message of the peer came: the next post prefetches the line of the next slot instead of that of a later one. */
static inline void nvi_prefetch_next(struct nvi_chan *ch)
{
	uintptr_t later = (uintptr_t)atomic_load_explicit(&ch->vi->prefetch, memory_order_relaxed);
	uint32_t n = (uint32_t)((later - (uintptr_t)ch->out_slots) / W_SLOT_BYTES);

	if (later & 1)
		vi_prefetch_hint(ch->vi, nvi_slot_out(ch, n - NVI_TX_AHEAD));
}

/*
 * Counts slot `seq`, the next one, as published; `cursor`: the end of its payload in the payload buffer.  With W_F_ACK
 * in `flags`, notes that this slot asks the peer for credit.
 */
static inline void nvi_slot_published(struct nvi_chan *ch, uint32_t seq, uint64_t cursor,
				      uint8_t flags)
{
	U_TRACE(slot_published, ch, seq);
	ch->tx.after[seq & ch->out_mask] = cursor;
	ch->tx.seq = seq + 1;
	if (flags & W_F_ACK)
		ch->tx.asked = seq + 1;
}

/*
 * Publishes the next slot: writes `line` up to its sequence word, `more_len` bytes of `more` into
 * its second line, and last the sequence word.  A slot must be free.  On resumable channels it holds a copy.  Does not
 * ring: the caller passes u_out_fence(), then rings.
 */
void nvi_publish(struct nvi_chan *ch, const struct w_slot *line, const uint8_t *more,
		 uint32_t more_len, uint64_t cursor);
/* As nvi_publish(), for a slot without payload. */
void nvi_publish_bare(struct nvi_chan *ch, uint8_t op, uint8_t flags);
/*
 * Writes slot n, the sequence word last, which is not taken from `line`; also one that was published before on another
 * path.  Counts nothing.
 */
void nvi_store_slot(struct nvi_chan *ch, uint32_t n, const struct w_slot *line, const uint8_t *more,
		    uint32_t more_len);
/*
 * Publishes the answer to a read of n <= W_INLINE_MAX bytes in one slot, and rings; returns false, and does nothing,
 * when the answer has to wait or the channel is not plain.  Caller holds both locks.
 */
bool nvi_publish_read_answer(struct nvi_chan *ch, const void *src, uint32_t n);
/*
 * Has the peer consumed the slots before `end`, which is at most tx.seq?  If not, asks the peer for credit, in a slot
 * if need be, rings if this asks for more than before, and sets tx.drains and tx.waiting until that credit comes.  If
 * the credit is wrong, marks a fault and returns false.  Caller holds tx_lock and calls again when credit came.
 */
bool nvi_tx_consumed(struct nvi_chan *ch, uint32_t end);

/*
 * By the credit taken in so far: is a slot free, and is no message, answer or fault there for which the next must wait?
 */
static inline bool nvi_may_publish(const struct nvi_chan *ch)
{
	return ch->tx.msg.op == 0 && ch->tx.seq != ch->tx.limit &&
	       atomic_load_explicit(&ch->breaking.faults, memory_order_relaxed) == 0 &&
	       !nvi_answers_left(ch);
}

/* As nvi_may_publish(); and may nvi_publish_plain() be used? */
static inline bool nvi_may_publish_plain(const struct nvi_chan *ch)
{
	return ch->plain && nvi_may_publish(ch);
}

/*
 * Publishes a message of one slot, whose inline payload the caller has stored: writes the header
 * and, last, the sequence word.  Only where ch->plain, and a slot is free.  Does not ring, nor call nvi_note_slot().
 */
static inline void nvi_store_plain(struct nvi_chan *ch, struct w_slot *slot, uint8_t op,
				   uint32_t length, uint32_t imm, uint8_t flags)
{
	uint64_t word = W_WHAT(op, flags | W_F_FIRST | W_F_LAST) | (uint64_t)imm << 32;
	const uint32_t seq = ch->tx.seq;

	U_TRACE(payload_written, ch, seq);
	memcpy(&slot->head, &word, sizeof(word));
	word = length | (uint64_t)w_seq(seq) << 32;
	/* A: payload and header before the sequence, which goes with the length in one store. */
	__atomic_store_n((uint64_t *)(void *)&slot->head.frag, word, __ATOMIC_RELEASE);
	nvi_slot_published(ch, seq, ch->tx.cursor, flags);
}

/* As nvi_store_plain(), but calls nvi_note_slot(), and rings if the peer asked for that. */
static inline void nvi_publish_plain(struct nvi_chan *ch, struct w_slot *slot, uint8_t op,
				     uint32_t length, uint32_t imm, uint8_t flags)
{
	if (op != W_OP_SEND)
		nvi_note_slot(ch, op, W_F_FIRST | W_F_LAST, 0);
	nvi_store_plain(ch, slot, op, length, imm, flags);
	nvi_ring_slots(ch);
}

#endif
