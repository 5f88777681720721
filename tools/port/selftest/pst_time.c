/* SPDX-License-Identifier: BSD-2-Clause */
/* What each primitive costs: reported, not judged. */
#include <errno.h>
#include <stdlib.h>

#include "pst_priv.h"

#define ROUNDS 1000u
#define RATE_NS INT64_C(50000000)
#define LOST_MOST 3u
#define STOP UINT32_MAX
#define SLEEP_NS INT64_C(20000000)
#define BIT UINT32_C(1)

enum { MODE_WORDS = 1, MODE_RINGS, MODE_NONE, MODE_END };

struct samples {
	uint32_t n, ns[ROUNDS];
};

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* One more sample, of the time since then; those after the first ROUNDS do not count. */
static void sample(struct samples *t, int64_t since)
{
	if (t->n < ROUNDS)
		t->ns[t->n++] = (uint32_t)u_min64((uint64_t)(u_now_ns() - since), UINT32_MAX);
}

/* A row of the report.  The helper has no report: it measures nothing that is kept. */
static void measured(struct pst *s, const char *name, const char *unit, size_t bytes, double mid,
		     double p99)
{
	struct pst_report *r = s->report;

	if (r != NULL && r->measures < PST_MEASURES_MAX)
		r->measure[r->measures++] = (struct pst_measure){
			.name = name, .unit = unit, .bytes = bytes, .mid = mid, .p99 = p99
		};
}

/* Times in microseconds; `parts` of which make one sample. */
static void timed(struct pst *s, const char *name, struct samples *t, double parts)
{
	if (t->n == 0)
		return;
	qsort(t->ns, t->n, sizeof(t->ns[0]), compare);
	measured(s, name, "us", 0, t->ns[t->n / 2] / parts / 1e3,
		 t->ns[t->n * 99 / 100] / parts / 1e3);
	t->n = 0;
}

/* ---- the end that measures ---------------------------------------------------------------------- */

/* Has the other end answer in a mode; it does when this returns. */
static int mode_begin(struct pst *s, uint32_t mode)
{
	uint32_t args[PST_ARGS];

	pst_store32(&s->data, PST_AT_FLAG, 0);
	pst_settle(s);
	pst_step_say(s, mode);
	return pst_hear(s, PST_STEP, args, s->cfg->gone_ns);
}

/* Tells the other end to stop answering, and waits until it has; `err` is passed on. */
static int mode_end(struct pst *s, int err)
{
	uint32_t args[PST_ARGS];

	pst_signal(s, PST_AT_FLAG, STOP);
	return err != 0 ? err : pst_hear(s, PST_STEP, args, s->cfg->gone_ns);
}

/* Half the time until a word that the other end polls for, and sends back, is here again. */
static int words(struct pst *s, struct samples *t, int64_t until)
{
	uint32_t back = 0;
	int err = mode_begin(s, MODE_WORDS);

	for (uint32_t n = 1; err == 0 && n <= ROUNDS && !pst_enough(until, n, 20); n++) {
		int64_t since = u_now_ns();

		pst_store32(&s->data, PST_AT_FLAG, n);
		pst_fence(&s->data);
		err = pst_await(s, PST_AT_ACK, back, &back);
		sample(t, since);
	}
	err = mode_end(s, err);
	timed(s, "word, one way", t, 2);
	return err;
}

/* -ENOENT: the ring or its answer was lost. */
static int ring_round(struct pst *s)
{
	struct pst_wait w = pst_wait_begin(s->cfg->lost_ns / 8);
	uint32_t ticket = port_irq_ticket(s->port->irq);
	int err = 0;

	port_peer_db_ring(s->port, BIT);
	while (err == 0 && (port_db_read(s->port) & BIT) == 0) {
		port_irq_wait(s->port->irq, ticket, BIT, SLEEP_NS);
		w.turns |= 63;
		err = pst_poll(s, &w);
	}
	port_db_clear(s->port, BIT);
	return err == -ETIMEDOUT ? -ENOENT : err;
}

/* Half the time until a ring has woken the other end and its ring this one. */
static int rings(struct pst *s, struct samples *t, int64_t until)
{
	uint32_t lost = 0;
	int err = mode_begin(s, MODE_RINGS);

	for (uint32_t n = 1; err == 0 && n <= ROUNDS && !pst_enough(until, n, 20); n++) {
		int64_t since = u_now_ns();

		err = ring_round(s);
		if (err == 0)
			sample(t, since);
		else if (err == -ENOENT && ++lost < LOST_MOST)
			err = 0;
	}
	err = mode_end(s, err == -ENOENT ? 0 : err);
	timed(s, "ring to wake, one way", t, 2);
	return err;
}

static void flushes(struct pst *s, struct samples *t)
{
	for (uint32_t n = 1; n <= ROUNDS / 4; n++) {
		int64_t since = u_now_ns();

		port_flush(s->port);
		sample(t, since);
	}
	timed(s, "flush", t, 1);
}

/* Scratchpads: of this side read, of the peer written, of the peer read. */
static void pads(struct pst *s, struct samples *t)
{
	for (int what = 0; what < 3; what++) {
		static const char *const names[] = { "scratchpad, read",
						     "scratchpad of the peer, written",
						     "scratchpad of the peer, read" };

		for (uint32_t n = 1; n <= ROUNDS / 4; n++) {
			int64_t since = u_now_ns();

			if (what == 0)
				port_spad_read(s->port, 0);
			else if (what == 1)
				port_peer_spad_write(s->port, 0, n);
			else
				port_peer_spad_read(s->port, 0);
			sample(t, since);
		}
		timed(s, names[what], t, 1);
	}
}

/* Stores the area again and again, `bytes` at a time, for about `ns`; the flush at the end counts, too. */
static void rate(struct pst *s, const void *buf, size_t bytes, int64_t ns)
{
	int64_t begin = u_now_ns(), end;
	double total = 0;

	do {
		for (size_t at = 0; at + bytes <= PST_AREA; at += bytes)
			u_out_copy(&s->data.out.out, (uint8_t *)s->data.out.base + PST_AT_AREA + at,
				   buf, bytes);
		pst_fence(&s->data);
		total += PST_AREA;
		end = u_now_ns();
	} while (end - begin < ns);
	port_flush(s->port);
	end = u_now_ns();
	measured(s, "stores", "MB/s", bytes, total / 1e6 / ((double)(end - begin) / 1e9), 0);
}

/* The judge measures: words, rings, then what needs no answer. */
int pst_time_write(struct pst *s, const struct pst_job *job, struct pst_counts *c)
{
	struct samples *t = calloc(1, sizeof(*t));
	void *buf = calloc(1, PST_AREA);
	int64_t share = job->share_ns / 4, each = (int64_t)u_min64((uint64_t)share / 4, RATE_NS);
	int err = t == NULL || buf == NULL ? -ENOMEM : words(s, t, u_now_ns() + share);

	(void)c;
	if (err == 0)
		err = rings(s, t, u_now_ns() + share);
	if (err == 0)
		err = mode_begin(s, MODE_NONE);
	if (err == 0) {
		flushes(s, t);
		pads(s, t);
		for (size_t bytes = 64; bytes <= PST_AREA; bytes *= 8)
			rate(s, buf, bytes, each);
		err = mode_begin(s, MODE_END);
	}
	free(buf);
	free(t);
	return err;
}

/* ---- the end that answers ----------------------------------------------------------------------- */

/* Stores each word back that comes. */
static int words_answer(struct pst *s)
{
	uint32_t v = 0;
	int err = 0;

	while (err == 0 && v != STOP) {
		err = pst_await(s, PST_AT_FLAG, v, &v);
		pst_store32(&s->data, PST_AT_ACK, v);
		pst_fence(&s->data);
	}
	return err;
}

/* Sleeps, and answers each ring with one. */
static int rings_answer(struct pst *s)
{
	struct pst_wait w = pst_wait_begin(-1);
	uint32_t ticket;
	int err = 0;

	while (err == 0 && pst_load32(&s->data, PST_AT_FLAG) != STOP) {
		ticket = port_irq_ticket(s->port->irq);
		if ((port_db_read(s->port) & BIT) != 0) {
			port_db_clear(s->port, BIT);
			port_peer_db_ring(s->port, BIT);
		} else {
			port_irq_wait(s->port->irq, ticket, BIT, SLEEP_NS);
		}
		w.turns |= 63;
		err = pst_poll(s, &w);
	}
	return err;
}

/* Answers in the mode that the judge names, until it names the last. */
int pst_time_read(struct pst *s, const struct pst_job *job, struct pst_counts *c)
{
	uint32_t args[PST_ARGS] = { 0 };
	int err = 0;

	(void)job;
	(void)c;
	while (err == 0 && args[0] != MODE_END) {
		err = pst_hear(s, PST_STEP, args, s->cfg->gone_ns);
		if (err != 0)
			break;
		port_db_clear(s->port, UINT32_MAX);
		pst_step_say(s, args[0]);
		if (args[0] == MODE_WORDS)
			err = words_answer(s);
		else if (args[0] == MODE_RINGS)
			err = rings_answer(s);
		if (err == 0 && (args[0] == MODE_WORDS || args[0] == MODE_RINGS))
			pst_step_say(s, MODE_END);
	}
	return err;
}
