/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * serve and check: each of two hosts stores a pattern into a slice of the other, which verifies it.
 *
 * Each writes scratchpads of the other: id and length of its slice, the seed of its pattern, how
 * many bytes were wrong, and which step it has done.  check stores first; serve verifies, stores in
 * turn and tells both at once, so no step overwrites one that was not read.  Scratchpads that
 * travel as messages arrive in any order, so a step has a check of the others and counts when that
 * is right.  A doorbell wakes the reader.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pt.h"
#include "u_random.h"
#include "u_time.h"

enum { PAD_STEP, PAD_ID, PAD_LEN, PAD_SEED, PAD_WRONG, PADS };
enum { STEP_NONE, STEP_OFFERED, STEP_STORED, STEP_VERIFIED, STEP_REFUSED };

#define WORD UINT32_C(0x56000000)
#define WORD_CHECK 8u /* bit of the role */
#define WORD_STEP 7u
#define DOORBELL UINT32_C(1)

struct transfer {
	struct pt_port *t;
	bool serves;
	size_t len; /* of this host's slice */
	uint32_t generation;
	uint32_t told[PADS]; /* what the peer's scratchpads hold */
	struct port_slice slice;
	struct port_map in, out;
	size_t out_len;
	double seconds; /* of the store */
};

/* ---- steps ----------------------------------------------------------------------------------- */

static uint32_t pad(const struct transfer *x, unsigned int i)
{
	return port_spad_read(x->t->port, i);
}

static int pad_set(struct transfer *x, unsigned int i, uint32_t v)
{
	x->told[i] = v;
	return port_peer_spad_write(x->t->port, i, v);
}

static uint32_t word_of(const uint32_t pads[PADS], bool serves, uint32_t step)
{
	uint32_t sum = step;

	for (unsigned int i = PAD_ID; i < PADS; i++)
		sum = (sum ^ pads[i]) * UINT32_C(0x9e3779b1);
	return WORD | (sum >> 12) << 4 | (serves ? 0 : WORD_CHECK) | step;
}

static int step_tell(struct transfer *x, uint32_t step)
{
	int err = pad_set(x, PAD_STEP, word_of(x->told, x->serves, step));

	port_peer_db_ring(x->t->port, DOORBELL);
	return err;
}

/* The peer's, with its role; STEP_NONE when the scratchpads hold none, or not all of it yet. */
static uint32_t step_read(const struct transfer *x, bool *serves_out)
{
	uint32_t word = pad(x, PAD_STEP), pads[PADS];

	for (unsigned int i = PAD_ID; i < PADS; i++)
		pads[i] = pad(x, i);
	if (word != word_of(pads, (word & WORD_CHECK) == 0, word & WORD_STEP))
		return STEP_NONE;
	*serves_out = (word & WORD_CHECK) == 0;
	return word & WORD_STEP;
}

/* 0; -ENOTCONN when the link has ended before; -EALREADY when the peer has this host's role. */
static int step_await(const struct transfer *x, uint32_t step)
{
	uint32_t generation, ticket;
	bool up, serves = false;
	int err;

	do {
		ticket = port_irq_ticket(x->t->port->irq);
		port_db_clear(x->t->port, DOORBELL);
		up = pt_is_up(x->t, &generation) && generation == x->generation;
		/* Read later than the state: what was written before the link ended counts. */
		if (step_read(x, &serves) >= step)
			return serves == x->serves ? -EALREADY : 0;
		err = up ? pt_step(x->t, ticket) : -ENOTCONN;
	} while (err == 0);
	return err;
}

/* ---- slices ---------------------------------------------------------------------------------- */

static void slice_drop(struct transfer *x)
{
	port_unmap(x->t->port, &x->out);
	port_unmap(x->t->port, &x->in);
	if (x->slice.fd >= 0) {
		port_slice_free(x->t->port, x->slice.id);
		close(x->slice.fd);
	}
	x->slice.fd = -1;
}

static int slice_offer(struct transfer *x)
{
	int err = port_slice_alloc(x->t->port, x->len, &x->slice);

	if (err != 0) {
		x->slice.fd = -1;
		return err;
	}
	err = port_map(x->t->port, x->slice.fd, x->len, PORT_INBOUND, &x->in);
	if (err == 0)
		err = pad_set(x, PAD_ID, x->slice.id);
	if (err == 0)
		err = pad_set(x, PAD_LEN, (uint32_t)x->len);
	return err != 0 ? err : step_tell(x, STEP_OFFERED);
}

/* Both have one role: the first to leave takes the link down, so it waits until the other knows, too. */
static int role_refuse(struct transfer *x)
{
	if (step_tell(x, STEP_REFUSED) == 0)
		step_await(x, STEP_REFUSED);
	return pt_fail("the peer runs %s, too; one host serves, the other checks",
		       x->serves ? "serve" : "check");
}

/*
 * Clears scratchpads that an earlier peer wrote.  Those of an adapter are cleared when its link comes up, those of an
 * emulated port here, before the next cable.
 */
static void pads_clear(const struct transfer *x)
{
	for (unsigned int i = 0; i < PADS && x->t->cable != NULL; i++)
		port_spad_write(x->t->port, i, 0);
}

/* Exchanges offers, and once more each time that the link comes up again during this. */
static int offers_exchange(struct transfer *x)
{
	int err, rc;

	do {
		slice_drop(x);
		memset(x->told, 0, sizeof(x->told));
		pads_clear(x);
		rc = pt_up(x->t);
		if (rc != EXIT_OK)
			return rc;
		port_link_state(x->t->port, &x->generation);
		err = slice_offer(x);
		if (err == 0)
			err = step_await(x, STEP_OFFERED);
	} while (err == -ENOTCONN);
	if (err == -ENOSPC)
		return pt_fail("a slice of %zu bytes was sought, the windows of %s have %" PRIu64
			       "; choose fewer --bytes",
			       x->len, x->t->device, x->t->port->limits.window_bytes);
	if (err == -EALREADY)
		return role_refuse(x);
	if (err == -ETIMEDOUT)
		return pt_fail(
			"%s: the link is up, but no vi_port %s has answered in %g s; start it on "
			"the other host, where no agent may run",
			x->t->device, x->serves ? "check" : "serve", x->t->timeout);
	return err == 0 ? EXIT_OK : pt_fail("offering a slice: %s", pt_error(err));
}

static int peer_open(struct transfer *x)
{
	uint32_t len = pad(x, PAD_LEN);
	int fd, err;

	if (len == 0 || len > PT_BYTES_MAX)
		return -ERANGE;
	do {
		port_service(x->t->port);
		err = port_peer_slice_open(x->t->port, pad(x, PAD_ID), len, &fd);
	} while (err == -ENOENT && pt_step(x->t, port_irq_ticket(x->t->port->irq)) == 0);
	if (err != 0)
		return err;
	x->out_len = len;
	err = port_map(x->t->port, fd, len, PORT_OUTBOUND, &x->out);
	close(fd);
	return err;
}

/* ---- the pattern ----------------------------------------------------------------------------- */

static int pattern_store(struct transfer *x)
{
	uint32_t seed;
	void *buf = malloc(x->out_len);
	int64_t begin;

	if (buf == NULL)
		return -ENOMEM;
	u_random(&seed, sizeof(seed));
	pt_pattern(buf, x->out_len, seed);
	begin = u_now_ns();
	u_out_copy(&x->out.out, x->out.base, buf, x->out_len);
	u_out_fence(&x->out.out);
	port_flush(x->t->port);
	x->seconds = (double)(u_now_ns() - begin + 1) / 1e9;
	free(buf);
	return pad_set(x, PAD_SEED, seed);
}

static int pattern_check(struct transfer *x, size_t *wrong_out)
{
	size_t first;
	int err = pt_verify(x->in.base, x->len, pad(x, PAD_SEED), wrong_out, &first);

	if (err != 0)
		return err;
	if (*wrong_out == 0)
		printf("received: %zu bytes, all as they were stored\n", x->len);
	else
		printf("received: %zu bytes, %zu wrong, the first at %zu\n", x->len, *wrong_out,
		       first);
	fflush(stdout);
	return pad_set(x, PAD_WRONG, (uint32_t)*wrong_out);
}

/* Prints the peer's verdict on this host's store. */
static uint32_t verdict_tell(const struct transfer *x)
{
	uint32_t wrong = pad(x, PAD_WRONG);

	printf("stored: %zu bytes in %.6f s, %.1f MB/s; ", x->out_len, x->seconds,
	       (double)x->out_len / 1e6 / x->seconds);
	if (wrong == 0)
		puts("the peer received all as they were stored");
	else
		printf("the peer received %" PRIu32 " wrong\n", wrong);
	fflush(stdout);
	return wrong;
}

/* ---- both roles ------------------------------------------------------------------------------ */

static int serve(struct transfer *x, size_t *wrong_out)
{
	int err = step_await(x, STEP_STORED);

	if (err == 0)
		err = pattern_check(x, wrong_out);
	if (err == 0)
		err = pattern_store(x);
	if (err == 0)
		err = step_tell(x, STEP_STORED);
	if (err == 0)
		err = step_await(x, STEP_VERIFIED);
	if (err != 0)
		return err;
	*wrong_out += verdict_tell(x);
	step_tell(x, STEP_VERIFIED); /* only sooner than the end of the link */
	return 0;
}

/* The last step ends with the answer, or with the link, which the peer's end takes down. */
static int check(struct transfer *x, size_t *wrong_out)
{
	size_t wrong = 0;
	int err = pattern_store(x);

	if (err == 0)
		err = step_tell(x, STEP_STORED);
	if (err == 0)
		err = step_await(x, STEP_STORED);
	if (err != 0)
		return err;
	wrong = verdict_tell(x);
	err = pattern_check(x, wrong_out);
	if (err == 0)
		err = step_tell(x, STEP_VERIFIED);
	if (err == 0)
		err = step_await(x, STEP_VERIFIED);
	*wrong_out += wrong;
	return err == -ENOTCONN ? 0 : err;
}

int pt_transfer(struct pt_port *t, bool serves, size_t bytes)
{
	struct transfer x = { .t = t, .serves = serves, .len = bytes, .slice.fd = -1 };
	size_t wrong = 0;
	int rc, err = 0;

	if (t->port->limits.spads < PADS)
		return pt_fail("%s has %" PRIu32 " scratchpad%s, %u are needed", t->device,
			       t->port->limits.spads, t->port->limits.spads == 1 ? "" : "s", PADS);
	rc = offers_exchange(&x);
	if (rc == EXIT_OK) {
		err = peer_open(&x);
		if (err == 0)
			err = serves ? serve(&x, &wrong) : check(&x, &wrong);
	}
	slice_drop(&x);
	if (err == -ENOTCONN)
		return pt_fail("%s: the link went down before the end", t->device);
	if (err == -ETIMEDOUT)
		return pt_fail("%s: the peer did not go on in %g s", t->device, t->timeout);
	if (err != 0)
		return pt_fail("%s: the slice of the peer: %s", t->device, pt_error(err));
	return rc != EXIT_OK ? rc : wrong == 0 ? EXIT_OK : EXIT_FAIL;
}
