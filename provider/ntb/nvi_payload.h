/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The payload buffer of the peer: where messages begin in it; and messages of one fragment, where the slices are mapped
 * memory.  Callers hold tx_lock.
 */
#ifndef NVI_PAYLOAD_H
#define NVI_PAYLOAD_H

#include "nvi_credit.h"
#include "u_copy.h"

/* the bytes that are copied after the line of the slot was prefetched */
#define NVI_PAYLOAD_LAST 512u

/*
 * A message up to NVI_PAYLOAD_SHORT bytes is best stored where the one before was, if those after the last slot of the
 * peer had at most NVI_PAYLOAD_TURN bytes together; longer ones, and streams, best where none was for a while.
 */
#define NVI_PAYLOAD_SHORT 4096u
#define NVI_PAYLOAD_TURN (32u << 10)

/* Where lines are demoted, dialogues go to the start of the payload buffer once they are so far from it. */
#define NVI_PAYLOAD_DEMOTED (256u << 10)

/* The place of a fragment in the payload buffer: it begins at `offset`. */
struct nvi_payload {
	uint64_t cursor, freed, turn; /* those of nvi_sending, once the fragment is there */
	uint32_t came;		      /* likewise */
	uint32_t offset;
	uint8_t flags;
	bool answers; /* a slot of the peer came since the last fragment */
	bool returns; /* it goes to the start if the peer has consumed all payload before it */
};

/*
 * Finds room for n bytes.  A short message that answers goes to the start if all payload before it has been consumed,
 * for which this takes in credit; all others go through the whole buffer.  `length`: that of the message that begins
 * with these bytes, or UINT32_MAX: they do not go to the start.  Returns false when credit must come first, or is
 * wrong.
 */
static inline bool nvi_payload_place(struct nvi_chan *ch, uint32_t length, uint32_t n,
				     struct nvi_payload *p)
{
	p->cursor = ch->tx.cursor;
	p->came = atomic_load_explicit(&ch->rx.seq, memory_order_relaxed);
	p->flags = W_F_BUFFERED;
	p->answers = p->came != ch->tx.came;
	p->returns =
		p->answers && length <= NVI_PAYLOAD_SHORT &&
		p->cursor - ch->tx.turn <= NVI_PAYLOAD_TURN &&
		(!ch->demotes || (p->cursor & (ch->out_payload_bytes - 1)) >= NVI_PAYLOAD_DEMOTED);
	if (p->returns && ch->tx.consumed != p->cursor && nvi_tx_credit(ch) < 0)
		return false;
	p->freed = ch->tx.freed;
	if (p->returns && ch->tx.consumed == p->cursor) {
		p->cursor = p->freed = w_payload_rewind(p->cursor, ch->out_payload_bytes);
		p->flags |= W_F_REWOUND;
	}
	p->turn = p->answers ? p->cursor : ch->tx.turn;
	p->offset = w_payload_place(&p->cursor, ch->out_payload_bytes, n);
	return u_likely(p->cursor - p->freed <= ch->out_payload_bytes);
}

/* The fragment is in its place. */
static inline void nvi_payload_take(struct nvi_chan *ch, const struct nvi_payload *p)
{
	ch->tx.cursor = p->cursor;
	ch->tx.freed = p->freed;
	ch->tx.turn = p->turn;
	ch->tx.came = p->came;
}

/*
 * Copies into the payload buffer, and takes the room.  Where the processor gains by that, prefetches the lines of the
 * payload, and that of the slot when so little is left that it is stored before polls of the peer take it
 * back.
 */
static inline void nvi_payload_copy(struct nvi_chan *ch, const struct nvi_payload *p,
				    const uint8_t *src, uint32_t n, const struct w_slot *slot)
{
	uint8_t *dst = ch->out_payload + p->offset;
	uint32_t last = n / 2 & ~(U_LINE - 1);

	nvi_payload_take(ch, p);
	if (!ch->prefetches) {
		memcpy(dst, src, n);
		return;
	}
	if (last > NVI_PAYLOAD_LAST)
		last = NVI_PAYLOAD_LAST;
	u_copy_ahead(dst, src, n - last);
	u_prefetch_write(slot);
	u_copy_ahead(dst + n - last, src + n - last, last);
}

/*
 * Called after the slot was published.  The peer takes an answer at once, and gets its lines sooner from the cache
 * that all processors share, so they are demoted to that.  In a stream they are not, since that takes the time of the
 * sender.
 */
static inline void nvi_payload_demote(const struct nvi_chan *ch, const struct nvi_payload *p,
				      uint32_t n)
{
	if (p->answers && ch->demotes)
		u_demote_span(ch->out_payload + p->offset, n);
}

#endif
