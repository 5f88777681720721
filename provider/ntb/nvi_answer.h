/* SPDX-License-Identifier: BSD-2-Clause */
/* Answers to RDMA reads that are stored into the reader's memory and announced by one slot. */
#ifndef NVI_ANSWER_H
#define NVI_ANSWER_H

#include "nvi_write.h"

#define NVI_PLACE_READ_MIN (W_INLINE_MAX + 1) /* a shorter answer travels in its slot */

/* ---- the end that reads; caller holds tx_lock ------------------------------------------------- */

/*
 * May the answer to a read of the send queue be stored into the memory of its descriptor?  If so, `offer` describes
 * that memory and the slots consumed so far, else it is unchanged.  Not for answers shorter than NVI_PLACE_READ_MIN.
 */
bool nvi_offer_read(const struct nvi_chan *ch, const struct vi_wqe *wqe, struct w_offer *offer);

/* Notes for read n of the connection, before it counts as under way, if its request has an offer. */
static inline void nvi_note_offer(struct nvi_chan *ch, uint32_t n, bool offered)
{
	uint32_t bit = UINT32_C(1) << n % NVI_READS_MAX;

	ch->tx.offered = offered ? ch->tx.offered | bit : ch->tx.offered & ~bit;
}

/* Does the request of read n of the connection have an offer? */
static inline bool nvi_was_offered(const struct nvi_chan *ch, uint32_t n)
{
	return (ch->tx.offered >> n % NVI_READS_MAX & 1) != 0;
}

/* ---- the end that answers; caller holds tx_lock ----------------------------------------------- */

/*
 * Chooses how the answer, the next message, is sent; sends nothing.  NVI_METHOD_DONE: by nvi_answer_place();
 * NVI_METHOD_WAIT: not before credit comes.  Asks for a grant if one is missing.
 */
enum nvi_write_method nvi_answer_method(struct nvi_chan *ch, const struct nvi_answer *answer);
/*
 * Stores the next piece of the answer that is the message under way, and publishes its slot after the last piece,
 * without ringing.  If the right has ended, or the link is lost, the message is no longer placed, and begins again.
 * 1: this step is done; 0: it has to wait; -EFAULT: the memory that is read is gone.
 */
int nvi_answer_place(struct nvi_chan *ch);
/*
 * The path is lost, and bytes that were stored over it may be, too: a placed answer that is under way begins again,
 * through slots.
 */
void nvi_answer_anew(struct nvi_chan *ch);

#endif
