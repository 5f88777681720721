/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Doorbells: none lost, none before the stores that it announces, each bit by itself, masks, wake-ups.
 *
 * The writer rings and then tells that it did, by a store; only from then on the time counts after which
 * a ring is lost.
 */
#include <errno.h>
#include <stdlib.h>

#include "pst_priv.h"

#define LEAST 100u
#define SLEEP_NS INT64_C(20000000)
#define WRONG_MOST 20u
#define LOST_MOST 1u  /* each costs pst_cfg.lost_ns */
#define ALONE_MOST 3u /* stores whose ring did not come, each a quarter of that */
/* For rounds that a lost ring alone would spoil: they are repeated after a shorter time. */
#define TRIES 10u
#define SWALLOWED 3u /* ... and after the whole time, before a mask is blamed */
#define LINES 4u
#define RANDOM_MASKS 16u

/* The mask of all doorbell bits. */
static uint32_t bits_all(const struct pst *s)
{
	uint32_t n = s->port->limits.db_bits;

	return n >= 32 ? UINT32_MAX : (UINT32_C(1) << n) - 1;
}

/* The bit of round n: each in turn. */
static uint32_t bit_of(const struct pst *s, uint32_t n)
{
	return UINT32_C(1) << n % s->port->limits.db_bits;
}

/* Rings, and tells it; waits until the reader has acknowledged. */
static int ring_told(struct pst *s, uint32_t bits, uint32_t n, uint32_t old, uint32_t *ack_out)
{
	port_peer_db_ring(s->port, bits);
	pst_signal(s, PST_AT_RUNG, n);
	return pst_await(s, PST_AT_ACK, old, ack_out);
}

/* Has the writer told that it rang the n-th time?  From then on the wait is for what is lost. */
static bool rung_told(struct pst *s, uint32_t n, int64_t ns, struct pst_wait *w, bool *told)
{
	if (!*told && pst_load32(&s->data, PST_AT_RUNG) == n) {
		*told = true;
		*w = pst_wait_begin(ns);
	}
	return *told;
}

/*
 * Waits until all of `bits` are read, and the writer has told that it rang the n-th time: a bit that is read before
 * may be one that nobody rang.  -ENOENT: it has told, and they are not read within `ns` after that.
 */
static int rung_within(struct pst *s, uint32_t bits, uint32_t n, int64_t ns)
{
	struct pst_wait w = pst_wait_begin(s->cfg->gone_ns);
	bool told = false;
	int err = 0;

	while (err == 0) {
		if (rung_told(s, n, ns, &w, &told) && (port_db_read(s->port) & bits) == bits)
			return 0;
		err = pst_poll(s, &w);
	}
	return err == -ETIMEDOUT && told ? -ENOENT : err;
}

/* The same, until the ring counts as lost. */
static int rung_await(struct pst *s, uint32_t bits, uint32_t n)
{
	return rung_within(s, bits, n, s->cfg->lost_ns);
}

/* The reader's acknowledgement of round n; `flags` tell the writer what to do. */
static void acknowledge(struct pst *s, uint32_t n, uint32_t flags)
{
	pst_signal(s, PST_AT_ACK, n | flags);
}

/* ---- a ring after a store ------------------------------------------------------------------------- */

/* Each round stores, fences and rings; then the reader says whether it wants one more ring. */
int pst_ring_order_write(struct pst *s, const struct pst_job *job, struct pst_counts *c)
{
	uint32_t ack = 0;
	int err = 0;

	(void)job;
	(void)c;
	for (uint32_t n = 1; err == 0 && (ack & PST_ACK_STOP) == 0; n++) {
		for (uint32_t i = 0; i < LINES; i++)
			pst_store32(&s->data, PST_AT_AREA + i * 256, n);
		pst_fence(&s->data);
		port_peer_db_ring(s->port, bit_of(s, n));
		err = pst_await(s, PST_AT_ACK, ack, &ack);
		/* The reader wants to know whether a ring of this bit is still on its way: another one says. */
		if (err == 0 && (ack & PST_ACK_AGAIN) != 0)
			err = ring_told(s, bit_of(s, n + 1), n, ack, &ack);
	}
	pst_settle(s);
	return err;
}

/* Have all stores of round n arrived, and none of a later one? */
static bool lines_are(const struct pst *s, uint32_t n)
{
	for (uint32_t i = 0; i < LINES; i++) {
		if (pst_load32(&s->data, PST_AT_AREA + i * 256) != n)
			return false;
	}
	return true;
}

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* Notes how late the stores were that their rings overtook. */
static void late_note(struct pst_counts *c, uint32_t *late, uint32_t n)
{
	if (n == 0)
		return;
	qsort(late, n, sizeof(*late), compare);
	c->late50_ns = late[n / 2];
	c->late_most_ns = late[n - 1];
}

/*
 * The bit was read, and the stores were not there.  Either the ring came first, or nobody rang: then the
 * ring itself is still to come, before one that the writer makes now.
 */
static int early_judge(struct pst *s, struct pst_counts *c, uint32_t n, uint32_t *late_out)
{
	struct pst_wait w = pst_wait_begin(s->cfg->lost_ns);
	int64_t since = u_now_ns();
	int err = 0;

	while (err == 0 && !lines_are(s, n))
		err = pst_poll(s, &w);
	*late_out = (uint32_t)u_min64((uint64_t)(u_now_ns() - since), UINT32_MAX);
	if (err == -ETIMEDOUT) {
		pst_wrong(c, PST_WHY_STORE_LOST, n);
		return 0;
	}
	if (err == 0) {
		acknowledge(s, n, PST_ACK_AGAIN);
		err = rung_await(s, bit_of(s, n + 1), n);
	}
	if (err != 0 && err != -ENOENT)
		return err;
	if ((port_db_read(s->port) & bit_of(s, n)) != 0 && s->port->limits.db_bits > 1)
		c->extra++;
	else
		pst_wrong(c, PST_WHY_RING_FIRST, n);
	return 0;
}

/* One round.  A ring that is lost is not judged here: then the stores come alone, and count for nothing. */
static int ring_order_round(struct pst *s, struct pst_counts *c, uint32_t n, uint32_t *late_out)
{
	struct pst_wait w = pst_wait_begin(s->cfg->gone_ns), lost = { .deadline = 0 };
	int err = 0;

	*late_out = 0;
	while (err == 0 && (port_db_read(s->port) & bit_of(s, n)) == 0) {
		if (lost.deadline == 0 && lines_are(s, n))
			lost = pst_wait_begin(s->cfg->lost_ns / 4);
		if (lost.deadline != 0 && pst_poll(s, &lost) == -ETIMEDOUT)
			return 0;
		err = pst_poll(s, &w);
	}
	if (err != 0)
		return err;
	port_db_clear(s->port, bit_of(s, n));
	c->tried++;
	return lines_are(s, n) ? 0 : early_judge(s, c, n, late_out);
}

/* Clears each bit as soon as it is read, and looks at the stores at once. */
int pst_ring_order_read(struct pst *s, const struct pst_job *job, struct pst_counts *c)
{
	int64_t until = u_now_ns() + job->share_ns;
	uint32_t late[WRONG_MOST + 1], n_late = 0, lost = 0;
	bool enough = false;
	int err = 0;

	for (uint32_t n = 1; err == 0 && !enough; n++) {
		uint32_t before = c->tried;

		err = ring_order_round(s, c, n, &late[n_late]);
		if (late[n_late] != 0)
			n_late++;
		lost += c->tried == before;
		enough = pst_enough(until, c->tried, LEAST) || c->wrong >= WRONG_MOST ||
			 n_late == WRONG_MOST || lost >= ALONE_MOST;
		port_db_clear(s->port, UINT32_MAX);
		if (err == 0)
			acknowledge(s, n, enough ? PST_ACK_STOP : 0);
	}
	late_note(c, late, n_late);
	return err;
}

/* ---- none is lost, and it wakes ------------------------------------------------------------------- */

int pst_rings_write(struct pst *s, const struct pst_job *job, struct pst_counts *c)
{
	uint32_t ack = 0;
	int err = 0;

	(void)job;
	(void)c;
	for (uint32_t n = 1; err == 0 && (ack & PST_ACK_STOP) == 0; n++)
		err = ring_told(s, bit_of(s, n), n, ack, &ack);
	return err;
}

/* Has the wait that this ticket began an end, as it must after a ring? */
static bool wait_ends(struct pst *s, uint32_t ticket, uint32_t bit)
{
	return port_irq_wait(s->port->irq, ticket, bit, s->cfg->lost_ns) == 0;
}

/*
 * As rung_await(), but asleep; the ticket is from before the writer might ring.  -EIO: the bit was read, and
 * nothing woke.
 */
static int rung_sleep(struct pst *s, uint32_t bit, uint32_t n)
{
	struct pst_wait w = pst_wait_begin(s->cfg->gone_ns);
	bool told = false;
	int err = 0;

	while (err == 0) {
		if (rung_told(s, n, s->cfg->lost_ns, &w, &told) &&
		    (port_db_read(s->port) & bit) != 0)
			return wait_ends(s, s->ticket, bit) ? 0 : -EIO;
		port_irq_wait(s->port->irq, s->ticket, bit, SLEEP_NS);
		w.turns |= 63; /* the next turn serves the port */
		err = pst_poll(s, &w);
	}
	return err == -ETIMEDOUT && told ? -ENOENT : err;
}

/* Polls for every other ring, and sleeps for the others. */
int pst_rings_read(struct pst *s, const struct pst_job *job, struct pst_counts *c)
{
	int64_t until = u_now_ns() + job->share_ns;
	bool enough = false;
	int err = 0;

	for (uint32_t n = 1; err == 0 && !enough; n++) {
		uint32_t bit = bit_of(s, n);

		err = n % 2 != 0 ? rung_await(s, bit, n) : rung_sleep(s, bit, n);
		if (err != 0 && err != -ENOENT && err != -EIO)
			break;
		c->tried++;
		if (err != 0)
			pst_wrong(c, err == -EIO ? PST_WHY_NO_WAKE : PST_WHY_RING_LOST, n);
		c->extra += (port_db_read(s->port) & ~bit) != 0;
		port_db_clear(s->port, UINT32_MAX);
		err = 0;
		enough = pst_enough(until, c->tried, LEAST) || c->wrong >= LOST_MOST;
		s->ticket = port_irq_ticket(s->port->irq);
		acknowledge(s, n, enough ? PST_ACK_STOP : 0);
	}
	return err;
}

/* ---- each bit, several at once -------------------------------------------------------------------- */

/* The mask of round n: each bit, all, then some at random; 0: no more. */
static uint32_t mask_of(const struct pst *s, const struct pst_job *job, uint32_t n)
{
	uint32_t bits = s->port->limits.db_bits, mask;

	if (n <= bits)
		return UINT32_C(1) << (n - 1);
	if (n == bits + 1)
		return bits_all(s);
	if (n > bits + 1 + RANDOM_MASKS)
		return 0;
	mask = pst_mix(job->seed, n) & bits_all(s);
	return mask != 0 ? mask : 1;
}

/* Rings the masks one after the other. */
int pst_bits_write(struct pst *s, const struct pst_job *job, struct pst_counts *c)
{
	uint32_t ack = 0;
	int err = 0;

	(void)c;
	for (uint32_t n = 1; err == 0 && mask_of(s, job, n) != 0 && (ack & PST_ACK_STOP) == 0; n++)
		err = ring_told(s, mask_of(s, job, n), n, ack, &ack);
	return err;
}

/* All bits of a mask have to be read; others may be. */
int pst_bits_read(struct pst *s, const struct pst_job *job, struct pst_counts *c)
{
	int err = 0;

	for (uint32_t n = 1; err == 0 && mask_of(s, job, n) != 0 && c->wrong < LOST_MOST; n++) {
		uint32_t mask = mask_of(s, job, n);

		err = rung_await(s, mask, n);
		if (err != 0 && err != -ENOENT)
			break;
		c->tried++;
		if (err != 0)
			pst_wrong(c, PST_WHY_BITS_LOST, mask & ~port_db_read(s->port));
		c->extra += (port_db_read(s->port) & ~mask) != 0;
		port_db_clear(s->port, UINT32_MAX);
		err = 0;
		acknowledge(s, n, c->wrong >= LOST_MOST ? PST_ACK_STOP : 0);
	}
	return err;
}

/* ---- clearing one bit ----------------------------------------------------------------------------- */

/* Rings all bits one by one for each round, which the reader may want again. */
int pst_clear_write(struct pst *s, const struct pst_job *job, struct pst_counts *c)
{
	uint32_t ack = 0, n = 0;
	int err = 0;

	(void)job;
	if (s->port->limits.db_bits < 2)
		return -EOPNOTSUPP;
	while (err == 0 && (ack & PST_ACK_STOP) == 0) {
		for (uint32_t i = 0; i + 1 < s->port->limits.db_bits; i++)
			port_peer_db_ring(s->port, UINT32_C(1) << i);
		err = ring_told(s, bit_of(s, s->port->limits.db_bits - 1), ++n, ack, &ack);
		c->extra += (ack & PST_ACK_AGAIN) != 0;
	}
	return err;
}

/* All bits are set: clears one of them, and looks at the others. */
static void clear_check(struct pst *s, struct pst_counts *c, uint32_t bit)
{
	uint32_t others = bits_all(s) & ~bit, found;

	port_db_clear(s->port, bit);
	found = port_db_read(s->port);
	c->tried++;
	if ((found & others) != others)
		pst_wrong(c, PST_WHY_CLEARED_MORE, others & ~found);
	c->extra += (found & bit) != 0;
}

/* Clears each bit in turn, after all were rung again.  -EOPNOTSUPP: all bits at once never arrive. */
int pst_clear_read(struct pst *s, const struct pst_job *job, struct pst_counts *c)
{
	uint32_t bits = s->port->limits.db_bits, done = 0, tries = 0, flags;
	int err = 0;

	(void)job;
	if (bits < 2)
		return -EOPNOTSUPP;
	for (uint32_t n = 1; err == 0 && done < bits && tries < TRIES; n++) {
		err = rung_within(s, bits_all(s), n, s->cfg->lost_ns / TRIES);
		if (err == 0) {
			clear_check(s, c, UINT32_C(1) << done++);
			port_db_clear(s->port, UINT32_MAX);
			tries = 0;
		} else if (err == -ENOENT) {
			tries++; /* the bits that were rung stay, the others are rung again */
			err = 0;
		}
		flags = tries != 0 ? PST_ACK_AGAIN : 0;
		if (done == bits || tries == TRIES)
			flags = PST_ACK_STOP;
		if (err == 0)
			acknowledge(s, n, flags);
	}
	return err == 0 && tries == TRIES ? -EOPNOTSUPP : err;
}

/* ---- masks ---------------------------------------------------------------------------------------- */

/* Rings the bit of the step, then the next, which is not masked. */
int pst_mask_write(struct pst *s, const struct pst_job *job, struct pst_counts *c)
{
	uint32_t args[PST_ARGS];
	int err;

	(void)job;
	if (s->port->limits.db_bits < 2)
		return -EOPNOTSUPP;
	for (;;) {
		err = pst_hear(s, PST_STEP, args, s->cfg->gone_ns);
		if (err != 0 || args[0] == PST_ACK_STOP)
			return err;
		c->extra += args[2] != 0;
		port_peer_db_ring(s->port, bit_of(s, args[1]));
		port_peer_db_ring(s->port, bit_of(s, args[1] + 1));
		pst_signal(s, PST_AT_RUNG, args[0]);
		pst_step_say(s, args[0]);
	}
}

/*
 * One try.  -ENOENT: the ring of the masked bit was not delivered when the mask was cleared.  -EIO: it was, and
 * woke nobody.  -EAGAIN: the ring of the other bit was lost.  -EACCES: the masked bit was reported.
 */
static int mask_try(struct pst *s, uint32_t b, uint32_t n, bool again)
{
	const uint32_t ask[] = { n, b, again }, bit = bit_of(s, b), other = bit_of(s, b + 1);
	uint32_t ticket;
	int err;

	port_db_clear(s->port, UINT32_MAX);
	port_db_set_mask(s->port, bit);
	pst_say(s, PST_STEP, ask, 3);
	err = rung_within(s, other, n, s->cfg->lost_ns / TRIES);
	if (err == 0 || err == -ENOENT) {
		int heard = pst_step_hear(s, n);

		err = heard != 0 ? heard : err == -ENOENT ? -EAGAIN : 0;
	}
	if (err == 0 && (port_db_read(s->port) & bit) != 0)
		err = -EACCES;
	ticket = port_irq_ticket(s->port->irq);
	port_db_clear_mask(s->port, bit);
	if (err == 0)
		err = rung_await(s, bit, n);
	if (err == 0 && !wait_ends(s, ticket, bit))
		err = -EIO;
	port_db_clear(s->port, UINT32_MAX);
	return err;
}

/* Masks each bit in turn.  A ring that an adapter has lost does not count as one that the mask has swallowed. */
int pst_mask_read(struct pst *s, const struct pst_job *job, struct pst_counts *c)
{
	uint32_t bits = s->port->limits.db_bits, n = 1;
	int err = 0;

	(void)job;
	if (bits < 2)
		return -EOPNOTSUPP;
	for (uint32_t b = 0; b < bits && c->wrong == 0; b++) {
		for (uint32_t tries = 0, lost = 0; tries < TRIES && lost < SWALLOWED; tries++) {
			err = mask_try(s, b, n++, tries != 0);
			lost += err == -ENOENT;
			if (err != -ENOENT && err != -EAGAIN)
				break;
		}
		c->tried++;
		if (err == -EACCES || err == -ENOENT || err == -EIO)
			pst_wrong(c,
				  err == -EACCES ? PST_WHY_MASK_IGNORED
				  : err == -EIO	 ? PST_WHY_NO_WAKE
						 : PST_WHY_MASK_LOSES,
				  b);
		else if (err != 0)
			break;
		err = 0;
	}
	if (err == 0 || err == -EAGAIN)
		pst_step_say(s, PST_ACK_STOP);
	return err == -EAGAIN ? -EOPNOTSUPP : err;
}
