/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages of one fragment in the payload buffer of the peer.  Callers hold tx_lock, and the slices are mapped
 * memory.
 */
#ifndef NVI_PAYLOAD_H
#define NVI_PAYLOAD_H

#include "nvi_credit.h"
#include "u_copy.h"

/* the bytes that are copied after the line of the slot was prefetched */
#define NVI_PAYLOAD_LAST 512u

/*
 * The place of a message in the payload buffer: it begins at `offset`.  `answers`: a message of the peer came since
 * the last one that was buffered, so this one is not in a stream.
 */
struct nvi_payload {
	uint64_t cursor; /* the end of its payload */
	uint32_t offset;
	uint8_t flags;
	bool answers;
};

/*
 * Finds room for n bytes, which nvi_payload_copy() takes.  If the processor cannot demote lines, and the peer has
 * consumed all messages before this one, it goes to the beginning of the buffer.  Returns false, and changes nothing in
 * the channel, when credit must come first; takes in none itself.
 */
static inline bool nvi_payload_place(struct nvi_chan *ch, uint32_t n, struct nvi_payload *p)
{
	const uint32_t came = atomic_load_explicit(&ch->rx.seq, memory_order_relaxed);
	uint64_t freed = ch->tx.freed;

	p->cursor = ch->tx.cursor;
	p->flags = W_F_BUFFERED;
	if (!ch->demotes && nvi_slots_used(ch) == 0) {
		p->cursor = freed = w_payload_rewind(p->cursor, ch->out_payload_bytes);
		p->flags |= W_F_REWOUND;
	}
	p->offset = w_payload_place(&p->cursor, ch->out_payload_bytes, n);
	if (u_unlikely(p->cursor - freed > ch->out_payload_bytes))
		return false;
	ch->tx.freed = freed;
	p->answers = came != ch->tx.came;
	ch->tx.came = came;
	return true;
}

/*
 * Copies into the payload buffer, takes the room (tx.cursor), and prefetches the line of the slot when so little is
 * left that the slot is stored before the peer's polls take the line back.
 */
static inline void nvi_payload_copy(struct nvi_chan *ch, const struct nvi_payload *p,
				    const uint8_t *src, uint32_t n, const struct w_slot *slot)
{
	uint8_t *dst = ch->out_payload + p->offset;
	uint32_t last = n / 2 & ~(U_LINE - 1);

	if (last > NVI_PAYLOAD_LAST)
		last = NVI_PAYLOAD_LAST;
	u_copy_ahead(dst, src, n - last);
	u_prefetch_write(slot);
	u_copy_ahead(dst + n - last, src + n - last, last);
	ch->tx.cursor = p->cursor;
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
