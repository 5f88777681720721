/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Publishing slots.  Every slot of a channel is published here, under tx_lock: by
 * nvi_publish_plain() where the slices are mapped memory and nothing is held for retransmission,
 * else by nvi_publish().  Retransmission stores slots again by nvi_store_slot().
 */
#ifndef NVI_PUBLISH_H
#define NVI_PUBLISH_H

#include "nvi_credit.h"
#include "nvi_notify.h"
#include "u_trace.h"

/*
 * Enters the slot that was just published; `cursor`: the end of its payload in the payload buffer.
 */
static inline void nvi_slot_published(struct nvi_chan *ch, uint64_t cursor, uint8_t flags)
{
	ch->tx.cursor = cursor;
	U_TRACE(slot_published, ch, ch->tx.seq);
	ch->tx.after[ch->tx.seq & ch->out_mask] = cursor;
	ch->tx.seq++;
	if (flags & W_F_ACK)
		ch->tx.asked = ch->tx.seq;
}

/*
 * Publishes the next slot: `line` up to its sequence word, `more_len` bytes of `more` behind that,
 * and last the sequence word.  On resumable channels a copy is held.  Does not ring.
 */
void nvi_publish(struct nvi_chan *ch, const struct w_slot *line, const uint8_t *more,
		 uint32_t more_len, uint64_t cursor);
/* Publishes a slot without payload. */
void nvi_publish_bare(struct nvi_chan *ch, uint8_t op, uint8_t flags);
/* Writes slot n, the sequence word last; also one that was published before on another path. */
void nvi_store_slot(struct nvi_chan *ch, uint32_t n, const struct w_slot *line, const uint8_t *more,
		    uint32_t more_len);
/*
 * Publishes the answer to a read of n <= W_INLINE_MAX bytes in one slot; false, and nothing done,
 * when the answer has to wait.  Caller holds both locks.
 */
bool nvi_publish_read_answer(struct nvi_chan *ch, const void *src, uint32_t n);
/*
 * Has the peer consumed all that had been sent when this was asked first? Asks it for credit.
 * Caller holds tx_lock and asks again when credit came.
 */
bool nvi_tx_drained(struct nvi_chan *ch);

/* Is a slot free, and nothing under way that the next message would have to follow? */
static inline bool nvi_may_publish(const struct nvi_chan *ch)
{
	return ch->tx.msg.op == 0 && nvi_slots_used(ch) <= ch->out_mask &&
	       atomic_load_explicit(&ch->breaking.faults, memory_order_relaxed) == 0 &&
	       atomic_load_explicit(&ch->answers.head, memory_order_relaxed) ==
		       atomic_load_explicit(&ch->answers.tail, memory_order_relaxed);
}

/* As nvi_may_publish(), and nvi_publish_plain() may be used. */
static inline bool nvi_may_publish_plain(const struct nvi_chan *ch)
{
	return ch->plain && nvi_may_publish(ch);
}

/*
 * Publishes a message of one slot, whose inline payload the caller has stored: the header and,
 * last, the sequence word.  Rings if the peer asked for that.
 */
static inline void nvi_publish_plain(struct nvi_chan *ch, struct w_slot *slot, uint8_t op,
				     uint32_t length, uint32_t imm, uint8_t flags)
{
	uint64_t word = W_WHAT(op, flags | W_F_FIRST | W_F_LAST) | (uint64_t)imm << 32;

	U_TRACE(payload_written, ch, ch->tx.seq);
	memcpy(&slot->head, &word, sizeof(word));
	word = length | (uint64_t)w_seq(ch->tx.seq) << 32;
	/* A: payload and header before the sequence, which goes with the length in one store. */
	__atomic_store_n((uint64_t *)(void *)&slot->head.frag, word, __ATOMIC_RELEASE);
	nvi_slot_published(ch, ch->tx.cursor, flags);
	nvi_ring_slots(ch);
}

#endif
