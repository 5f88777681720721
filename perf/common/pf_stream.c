/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stream of messages, in rounds.  A round is pf_round_len() messages on each VI in turn; the
 * receiver acknowledges each round with an empty message on VI 0, and the sender has at most
 * pf_rounds_ahead() rounds without acknowledgement, so no message ever misses a receive.  After
 * the RDMA writes of a round, which the target does not see, goes an empty message per VI.
 * RDMA reads need neither: their completions bound the window.
 */
#include <errno.h>
#include <string.h>

#include "pf_stream.h"

#define MARK_ACK 0xac4b0000u
#define MARK_END 0xe4d00000u

struct stream {
	struct pf_ep *ep;
	const struct pf_batch *b;
	uint32_t len;		      /* messages per VI and round */
	uint32_t ahead;		      /* rounds without acknowledgement */
	bool unchanged;		      /* see pf_posts_unchanged() */
	uint64_t acks;		      /* rounds of this side that the peer has acknowledged */
	uint64_t arrived[PF_MAX_VIS]; /* messages (writes: marks) received on each VI */
	struct pf_hist *hist;	      /* NULL on the server */
	int64_t last_ack;
};

static int add_sample(struct stream *s)
{
	int64_t now;
	int rc;

	if (!s->hist)
		return 0;
	now = pf_now();
	rc = pf_hist_add(s->hist, (uint64_t)(now - s->last_ack));
	s->last_ack = now;
	return rc;
}

static bool is_ack(const VIP_DESCRIPTOR *d)
{
	return (d->CS.Status & VIP_STATUS_IMMEDIATE) && d->CS.ImmediateData == MARK_ACK &&
	       (d->CS.Status & VIP_STATUS_OP_MASK) == VIP_STATUS_OP_RECEIVE;
}

/* Is the content of message m of VI k, in descriptor d, correct? */
static int check_arrival(struct stream *s, uint32_t k, const VIP_DESCRIPTOR *d, uint64_t m)
{
	struct pf_ep *ep = s->ep;

	if (ep->p.op != PF_WRITE && d->CS.Length != s->b->size)
		return pf_fail(ep, "message %llu of VI %u has %u bytes, %u were sent",
			       (unsigned long long)m, k, d->CS.Length, s->b->size);
	if (!ep->p.verify || ep->p.op == PF_WRITE)
		return 0;
	if (ep->p.op == PF_SEND)
		return pf_check(ep, pf_recv_data(d), s->b->size, k, m);
	return pf_check(ep, pf_recv_slot(ep, k, m), s->b->size, k, m);
}

/* The mark after a round of writes: now the whole round can be checked. */
static int check_writes(struct stream *s, uint32_t k, uint64_t round)
{
	struct pf_ep *ep = s->ep;
	uint64_t m = s->b->first + round * s->len, end = m + s->len;
	int rc = 0;

	for (; ep->p.verify && !rc && m < end; m++)
		rc = pf_check(ep, pf_recv_slot(ep, k, m), s->b->size, k, m);
	return rc;
}

/* Reaps one arrival of any kind from VI k. */
static int take_arrival(struct stream *s, uint32_t k)
{
	VIP_DESCRIPTOR *d;
	int rc = pf_take(s->ep, k, PF_RECVQ, &d);

	if (rc)
		return rc;
	if (is_ack(d)) {
		s->acks++;
		rc = add_sample(s);
	} else if (s->ep->p.op == PF_WRITE) {
		rc = check_writes(s, k, s->arrived[k]++);
	} else {
		rc = check_arrival(s, k, d, s->b->first + s->arrived[k]);
		s->arrived[k]++;
	}
	return rc ? rc : pf_repost(s->ep, k, d);
}

/* Posts what --batch has held back on all VIs. */
static int flush_all(struct stream *s)
{
	uint32_t k;
	int rc = 0;

	for (k = 0; !rc && k < s->ep->vi_count; k++)
		rc = pf_flush(s->ep, k);
	return rc;
}

static int await_acks(struct stream *s, uint64_t wanted)
{
	int rc = 0;

	while (!rc && s->acks < wanted)
		rc = take_arrival(s, 0);
	return rc ? rc : pf_flush(s->ep, 0);
}

static int send_message(struct stream *s, uint32_t k, uint64_t m)
{
	if (s->ep->p.verify && s->ep->p.op != PF_READ)
		pf_fill(pf_send_slot(s->ep, k, m), s->b->size, k, m);
	return pf_post_message(s->ep, k, m, s->b->size);
}

/* How many of the messages that are left in a round go together. */
static uint32_t together(const struct stream *s, uint64_t left)
{
	uint32_t most = pf_posts_many(s->ep) ? s->ep->p.batch : s->ep->vi_count == 1 ? s->len : 1;

	return left < most ? (uint32_t)left : most;
}

static int post_round_again(struct stream *s)
{
	uint32_t i, k, n;
	int rc = 0;

	for (i = 0; !rc && i < s->len; i += n) {
		n = together(s, s->len - i);
		for (k = 0; !rc && k < s->ep->vi_count; k++)
			rc = pf_post_again(s->ep, k, n);
	}
	return rc;
}

static int receive_round_again(struct stream *s, uint32_t k, uint64_t end)
{
	uint32_t n;
	int rc = 0;

	while (!rc && s->arrived[k] < end) {
		rc = pf_receive_again(s->ep, k, together(s, end - s->arrived[k]), s->b->size, &n);
		if (!rc)
			s->arrived[k] += n;
	}
	return rc;
}

static int post_round(struct stream *s, uint64_t round)
{
	uint64_t first = s->b->first + round * s->len;
	uint32_t i, k;
	int rc = 0;

	if (s->unchanged)
		return post_round_again(s);
	for (i = 0; !rc && i < s->len; i++) {
		for (k = 0; !rc && k < s->ep->vi_count; k++)
			rc = send_message(s, k, first + i);
	}
	for (k = 0; !rc && s->ep->p.op == PF_WRITE && k < s->ep->vi_count; k++)
		rc = pf_post_mark(s->ep, k, MARK_END);
	return rc ? rc : flush_all(s);
}

static int send_round(struct stream *s, uint64_t round)
{
	int rc = round >= s->ahead ? await_acks(s, round - s->ahead + 1) : 0;

	return rc ? rc : post_round(s, round);
}

static int receive_round(struct stream *s, uint64_t round)
{
	uint64_t per_round = s->ep->p.op == PF_WRITE ? 1 : s->len;
	uint32_t k;
	int rc = 0;

	for (k = 0; !rc && k < s->ep->vi_count; k++) {
		if (s->unchanged)
			rc = receive_round_again(s, k, (round + 1) * per_round);
		while (!rc && s->arrived[k] < (round + 1) * per_round)
			rc = take_arrival(s, k);
	}
	/* The receives before the acknowledgement: the peer may send when it has that. */
	rc = rc ? rc : flush_all(s);
	rc = rc ? rc : pf_post_mark(s->ep, 0, MARK_ACK);
	return rc ? rc : pf_flush(s->ep, 0);
}

static int reap_all(struct stream *s)
{
	uint32_t k;
	int rc = 0;

	for (k = 0; !rc && k < s->ep->vi_count; k++)
		rc = pf_reap(s->ep, k, 0);
	return rc;
}

/* ---- reads: only the side that reads is active ---- */

static int finish_read(struct stream *s, uint32_t k, uint64_t m)
{
	struct pf_ep *ep = s->ep;
	VIP_DESCRIPTOR *d;
	int rc = pf_take(ep, k, PF_SENDQ, &d);

	if (rc)
		return rc;
	ep->vis[k].outstanding--;
	if (!ep->p.verify)
		return 0;
	return pf_check(ep, pf_recv_slot(ep, k, m), s->b->size, k, m % ep->send_slots);
}

static int finish_round_of_reads(struct stream *s, uint64_t round)
{
	uint64_t first = s->b->first + round * s->len;
	uint32_t i, k;
	int rc = 0;

	for (i = 0; !rc && i < s->len; i++) {
		for (k = 0; !rc && k < s->ep->vi_count; k++)
			rc = finish_read(s, k, first + i);
	}
	return rc ? rc : add_sample(s);
}

static int read_all(struct stream *s)
{
	uint64_t posted = 0, done = 0;
	int rc = 0;

	while (!rc && done < s->b->count) {
		if (posted < s->b->count && posted - done < s->ahead)
			rc = post_round(s, posted++);
		else
			rc = finish_round_of_reads(s, done++);
	}
	return rc;
}

/* ---- both sides ---- */

static int run_rounds(struct stream *s, bool sending, bool receiving)
{
	uint64_t r;
	int rc = 0;

	for (r = 0; !rc && r < s->b->count; r++) {
		if (sending)
			rc = send_round(s, r);
		if (!rc && receiving)
			rc = receive_round(s, r);
	}
	if (!rc && sending)
		rc = await_acks(s, s->b->count);
	return rc ? rc : reap_all(s);
}

static int run_stream(struct stream *s, bool active)
{
	if (s->ep->p.op == PF_READ)
		return active || s->ep->p.bidir ? read_all(s) : 0;
	return run_rounds(s, active || s->ep->p.bidir, !active || s->ep->p.bidir);
}

static void stream_init(struct stream *s, struct pf_run *run, const struct pf_batch *batch)
{
	memset(s, 0, sizeof(*s));
	s->ep = &run->ep;
	s->b = batch;
	s->len = pf_round_len(&run->ep.p);
	s->ahead = pf_rounds_ahead(&run->ep.p);
	s->unchanged = pf_posts_unchanged(s->ep);
}

int pf_stream_client(struct pf_run *run, const struct pf_batch *batch)
{
	struct stream s;
	int64_t start;
	int rc;

	stream_init(&s, run, batch);
	if (s.unchanged)
		pf_prepare_all(s.ep, batch->size);
	s.hist = &run->hist;
	start = s.last_ack = pf_now();
	rc = run_stream(&s, true);
	run->elapsed_ns += s.last_ack - start;
	return rc;
}

int pf_stream_server(struct pf_run *run, const struct pf_batch *batch)
{
	struct stream s;

	stream_init(&s, run, batch);
	return run_stream(&s, false);
}
