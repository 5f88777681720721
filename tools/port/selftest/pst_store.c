/* SPDX-License-Identifier: BSD-2-Clause */
/* Stores: words arrive whole, fences order them, each byte lands where it was stored, a flush makes them visible. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pst_priv.h"

#define LINES 16u
#define LINE_STEP 192u /* no two words in one line or its prefetched neighbour */
#define WRITER_LOOKS 64u
#define LEAST 200u
#define BATCHES 4u
#define PAD_AGAIN_NS INT64_C(4000000)

/* Where the word of the i-th line lies. */
static size_t line_at(uint32_t i)
{
	return PST_AT_AREA + (size_t)i * LINE_STEP;
}

/* Stores `v` into the word of each line. */
static void lines_store(struct pst *s, uint32_t v)
{
	for (uint32_t i = 0; i < LINES; i++)
		pst_store32(&s->data, line_at(i), v);
}

/* How many of the words are older than `v`? */
static uint32_t lines_older(const struct pst *s, uint32_t v)
{
	uint32_t older = 0;

	for (uint32_t i = 0; i < LINES; i++)
		older += pst_load32(&s->data, line_at(i)) < v;
	return older;
}

/* ---- stores that nothing answers: the reader says when it has seen enough ------------------------ */

/* Calls `store` with 1, 2, ... until the reader says stop. */
static int store_on(struct pst *s, void (*store)(struct pst *s, uint32_t n))
{
	struct pst_wait w = pst_wait_begin(-1);
	int err = 0;

	for (uint32_t n = 1; err == 0 && pst_load32(&s->data, PST_AT_ACK) != PST_ACK_STOP; n++) {
		store(s, n);
		err = pst_poll(s, &w);
	}
	pst_settle(s);
	return err;
}

/* Calls `look` until it has seen enough changes.  -ETIMEDOUT: it saw none for long. */
static int look_on(struct pst *s, const struct pst_job *job, struct pst_counts *c,
		   bool (*look)(struct pst *s, struct pst_counts *c))
{
	int64_t until = u_now_ns() + job->share_ns;
	struct pst_wait w = pst_wait_begin(s->cfg->gone_ns);
	int err = 0;

	while (err == 0 && !pst_enough(until, c->tried, LEAST)) {
		if (!look(s, c)) {
			err = pst_poll(s, &w);
		} else if (++c->tried % LEAST == 0) {
			w = pst_wait_begin(s->cfg->gone_ns);
		}
	}
	pst_signal(s, PST_AT_ACK, PST_ACK_STOP);
	return err;
}

/* Two words of which each half, or byte, follows from another, so that a torn one is seen. */
static void word_store(struct pst *s, uint32_t n)
{
	pst_store64(&s->data, PST_AT_WORD, (uint64_t)~n << 32 | n);
	pst_store32(&s->data, PST_AT_HALF, (n & 0xff) * UINT32_C(0x01010101));
	pst_fence(&s->data);
}

/* Are the words whole?  True if there is another one than at the last look. */
static bool word_check(struct pst *s, struct pst_counts *c)
{
	uint64_t v = pst_load64(&s->data, PST_AT_WORD);
	uint32_t half = pst_load32(&s->data, PST_AT_HALF), n = (uint32_t)v;

	if (half != (half & 0xff) * UINT32_C(0x01010101) || (v != 0 && (uint32_t)(v >> 32) != ~n))
		pst_wrong(c, PST_WHY_TORN, n);
	if (n == s->seen)
		return false;
	s->seen = n;
	return true;
}

int pst_word_write(struct pst *s, const struct pst_job *job, struct pst_counts *c)
{
	(void)job;
	(void)c;
	return store_on(s, word_store);
}

int pst_word_read(struct pst *s, const struct pst_job *job, struct pst_counts *c)
{
	return look_on(s, job, c, word_check);
}

/* Lines, a fence, then the flag with the same number. */
static void order_store(struct pst *s, uint32_t n)
{
	lines_store(s, n);
	pst_fence(&s->data);
	pst_store32(&s->data, PST_AT_FLAG, n);
	pst_fence(&s->data);
}

static bool order_check(struct pst *s, struct pst_counts *c)
{
	uint32_t n = pst_load32(&s->data, PST_AT_FLAG);

	if (n == s->seen)
		return false;
	s->seen = n;
	if (lines_older(s, n) != 0)
		pst_wrong(c, PST_WHY_FLAG_FIRST, n);
	return true;
}

int pst_order_write(struct pst *s, const struct pst_job *job, struct pst_counts *c)
{
	(void)job;
	(void)c;
	return store_on(s, order_store);
}

int pst_order_read(struct pst *s, const struct pst_job *job, struct pst_counts *c)
{
	return look_on(s, job, c, order_check);
}

/* ---- every byte -------------------------------------------------------------------------------- */

struct plan {
	uint32_t seed, n;
	size_t end;
};

/* A number below `below`; the same plan draws the same numbers at both ends. */
static uint32_t draw(struct plan *p, uint32_t below)
{
	return pst_mix(p->seed, p->n++) % below;
}

/* The next range, of any alignment, of 1 byte to 8 KiB, most of them short; at least a byte is left free before. */
static bool plan_next(struct plan *p, size_t *at_out, size_t *len_out, bool *twice_out)
{
	static const uint32_t most[] = { 16, 16, 130, 130, 1000, 8192 };
	size_t at = p->end + 1 + draw(p, 64);
	size_t len = 1 + draw(p, most[draw(p, 6)]);

	*twice_out = draw(p, 4) == 0;
	*at_out = at;
	*len_out = len;
	p->end = at + len;
	return p->end < PST_AREA;
}

/* Bytes that follow from their place and are never 0, as those between the ranges are. */
static void fill(uint8_t *to, size_t len, uint32_t seed, size_t at)
{
	for (size_t i = 0; i < len; i++)
		to[i] = (uint8_t)(pst_mix(seed, (uint32_t)(at + i)) | 1);
}

/* Stores all ranges of a batch, from any alignment; some were stored with other bytes just before. */
static void bytes_store(struct pst *s, uint32_t seed, uint8_t *buf)
{
	struct plan p = { .seed = seed };
	uint8_t *to = (uint8_t *)s->data.out.base + PST_AT_AREA;
	size_t at, len;
	bool twice;

	while (plan_next(&p, &at, &len, &twice)) {
		uint8_t *from = buf + draw(&p, 8);

		if (twice) {
			memset(from, 0xee, len);
			u_out_copy(&s->data.out.out, to + at, from, len);
		}
		fill(from, len, seed, at);
		u_out_copy(&s->data.out.out, to + at, from, len);
	}
}

/* The area as the peer has to leave it. */
static void bytes_expect(uint32_t seed, uint8_t *area)
{
	struct plan p = { .seed = seed };
	size_t at, len;
	bool twice;

	memset(area, 0, PST_AREA);
	while (plan_next(&p, &at, &len, &twice)) {
		draw(&p, 8);
		fill(area + at, len, seed, at);
	}
}

/* A batch for each step of the reader. */
int pst_bytes_write(struct pst *s, const struct pst_job *job, struct pst_counts *c)
{
	uint8_t *buf = malloc(8192 + 8);
	uint32_t args[PST_ARGS], batch;
	int err = buf == NULL ? -ENOMEM : 0;

	(void)c;
	for (batch = 1; err == 0; batch++) {
		err = pst_hear(s, PST_STEP, args, s->cfg->gone_ns);
		if (err != 0 || args[0] == PST_ACK_STOP)
			break;
		bytes_store(s, pst_mix(job->seed, batch), buf);
		pst_settle(s);
		pst_step_say(s, batch);
	}
	free(buf);
	return err;
}

/* Counts the bytes that are not as wanted. */
static void bytes_check(struct pst *s, const uint8_t *wanted, struct pst_counts *c)
{
	const uint8_t *found = (uint8_t *)s->data.in.base + PST_AT_AREA;

	c->tried++;
	if (memcmp(found, wanted, PST_AREA) == 0)
		return;
	for (uint32_t i = 0; i < PST_AREA; i++) {
		if (found[i] != wanted[i])
			pst_wrong(c, PST_WHY_BYTES, i);
	}
}

/* Clears the area, has the peer store a batch, and compares all of it. */
int pst_bytes_read(struct pst *s, const struct pst_job *job, struct pst_counts *c)
{
	int64_t until = u_now_ns() + job->share_ns;
	uint8_t *wanted = malloc(PST_AREA);
	int err = wanted == NULL ? -ENOMEM : 0;

	while (err == 0 && !pst_enough(until, c->tried, BATCHES)) {
		memset((uint8_t *)s->data.in.base + PST_AT_AREA, 0, PST_AREA);
		pst_step_say(s, 0);
		err = pst_step_hear(s, c->tried + 1);
		if (err != 0)
			break;
		bytes_expect(pst_mix(job->seed, c->tried + 1), wanted);
		bytes_check(s, wanted, c);
	}
	if (err == 0)
		pst_step_say(s, PST_ACK_STOP);
	free(wanted);
	return err;
}

/* ---- stores told by a scratchpad: after a flush, after a fence ------------------------------------ */

/* Writes the scratchpad, again now and then, until the reader acknowledges. */
static int pad_tell(struct pst *s, uint32_t n, uint32_t old, struct pst_counts *c,
		    uint32_t *ack_out)
{
	struct pst_wait w = pst_wait_begin(s->cfg->gone_ns);
	int64_t again = u_now_ns() + PAD_AGAIN_NS;
	int err = port_peer_spad_write(s->port, 0, n);

	while (err == 0 && (*ack_out = pst_load32(&s->data, PST_AT_ACK)) == old) {
		err = pst_poll(s, &w);
		if (err == 0 && w.turns % 1024 == 0 && u_now_ns() > again) {
			err = port_peer_spad_write(s->port, 0, n);
			again = u_now_ns() + PAD_AGAIN_NS;
			c->extra++;
		}
	}
	return err;
}

/* Each round stores, flushes or fences, and then tells it by a scratchpad. */
static int told_write(struct pst *s, const struct pst_job *job, struct pst_counts *c, bool flush)
{
	uint32_t ack = 0, base = job->seed & 0x3fffffff;
	int err = 0;

	for (uint32_t n = 1; err == 0 && (ack & PST_ACK_STOP) == 0; n++) {
		lines_store(s, n);
		if (flush)
			port_flush(s->port);
		else
			pst_fence(&s->data);
		err = pad_tell(s, base + n, ack, c, &ack);
	}
	pst_settle(s);
	return err;
}

/* Looks at the stores as soon as the scratchpad tells of them; `why` if one is not there. */
static int told_read(struct pst *s, const struct pst_job *job, struct pst_counts *c, uint32_t why)
{
	int64_t until = u_now_ns() + job->share_ns;
	uint32_t base = job->seed & 0x3fffffff;
	int err = 0;

	for (uint32_t n = 1; err == 0; n++) {
		struct pst_wait w = pst_wait_begin(s->cfg->gone_ns);
		bool enough;

		while (err == 0 && port_spad_read(s->port, 0) != base + n)
			err = pst_poll(s, &w);
		if (err != 0)
			break;
		c->tried++;
		if (lines_older(s, n) != 0)
			pst_wrong(c, why, n);
		enough = pst_enough(until, c->tried, LEAST);
		pst_signal(s, PST_AT_ACK, n | (enough ? PST_ACK_STOP : 0));
		if (enough)
			break;
	}
	return err;
}

int pst_flush_write(struct pst *s, const struct pst_job *job, struct pst_counts *c)
{
	return told_write(s, job, c, true);
}

int pst_flush_read(struct pst *s, const struct pst_job *job, struct pst_counts *c)
{
	return told_read(s, job, c, PST_WHY_FLUSH_EARLY);
}

int pst_pad_order_write(struct pst *s, const struct pst_job *job, struct pst_counts *c)
{
	return told_write(s, job, c, false);
}

int pst_pad_order_read(struct pst *s, const struct pst_job *job, struct pst_counts *c)
{
	return told_read(s, job, c, PST_WHY_PAD_FIRST);
}
