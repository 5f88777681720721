/* SPDX-License-Identifier: BSD-2-Clause */
#include "st_parting.h"

/*
 * Under rx and tx: tells the other end what was read, and that nobody reads on; true: it knows, or the VI is broken.
 */
static bool has_told(struct st_stream *s)
{
	struct st_link *l = s->link;
	uint64_t credit[2] = { s->rx.position, s->rx.bytes }, closed = 1;
	int rc = 0;

	if (s->rx.path == ST_RX_RING && s->rx.told != s->rx.position) {
		rc = st_link_word(s, l, offsetof(struct st_words, credit), credit, sizeof(credit));
		if (rc == 0)
			s->rx.told = s->rx.position;
	}
	if (rc == 0 && !l->told_closed) {
		rc = st_link_word(s, l, offsetof(struct st_words, closed), &closed, sizeof(closed));
		l->told_closed = rc == 0;
	}
	return atomic_load(&l->broken) || (rc == 0 && VipxFlush(l->vi, 0) != VIP_TIMEOUT);
}

bool st_parting_due(struct st_stream *s)
{
	/* On TCP the other end writes nothing by itself; with both on the ring, it finds this one's end at once. */
	if (atomic_load(&s->phase) != ST_PHASE_UP || s->rx.path == ST_RX_TCP || s->rx.fin ||
	    (s->rx.path == ST_RX_RING && s->tx.path == ST_TX_RING))
		return false;
	return s->rx.path == ST_RX_TOKEN || s->rx.path == ST_RX_MARK || !has_told(s);
}

bool st_parting_step(struct st_stream *s)
{
	if (!s->tcp_due || atomic_load(&s->phase) != ST_PHASE_UP || atomic_load(&s->dead) ||
	    atomic_load(&s->link->broken))
		return false;
	st_lock(&s->rx_lock);
	st_rx_step(s);
	st_rx_token_due(s, st_now_ns());
	st_lock(&s->tx_lock);
	st_link_reap(s, s->link);
	s->tcp_due = st_parting_due(s);
	st_unlock(&s->tx_lock);
	/* Bytes that nobody has read are answered by a reset, as in the kernel. */
	if (!s->tcp_due && s->rx.stash != NULL)
		st_sys_linger_reset(s->fd);
	st_unlock(&s->rx_lock);
	return s->tcp_due;
}
