/* SPDX-License-Identifier: BSD-2-Clause */
/* Slices: aligned, zero, whole, apart from each other, and out of reach when they were freed. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "pst_priv.h"

#define SLICES 5u
#define PAGE 4096u
#define BIG_MOST (UINT32_C(4) << 20)
#define KEPT_LEN 65536u
#define KEPT_ROUNDS 8u

/* A slice of the peer. */
struct opened {
	struct port_map map;
	size_t len;
};

/* The word that belongs to a place of a slice; it is never 0. */
static uint64_t mark(uint32_t seed, uint32_t slice, size_t at)
{
	return (uint64_t)pst_mix(seed + slice, (uint32_t)at) << 32 | 1;
}

/* The length of the i-th slice: whole pages, parts of them, and last one as big as possible. */
static uint32_t len_of(uint32_t i, uint32_t big)
{
	static const uint32_t lens[SLICES - 1] = { 1, PAGE + 1, 65536, 70001 };

	return i < SLICES - 1 ? lens[i] : big;
}

/* ---- the end that stores ------------------------------------------------------------------------ */

/* Opens an offer, which arrives a moment later than its id. */
static int open_offer(struct pst *s, uint32_t id, size_t len, int *fd_out)
{
	struct pst_wait w = pst_wait_begin(s->cfg->gone_ns);
	int err;

	do {
		err = port_peer_slice_open(s->port, id, len, fd_out);
		if (err != -ENOENT)
			return err;
		err = pst_poll(s, &w);
	} while (err == 0);
	return err;
}

/* Stores go to whole pages, and the peer names the length. */
static bool whole_pages(size_t len)
{
	return len != 0 && len % PAGE == 0;
}

/*
 * Opens and maps a slice of the peer.  -ERANGE: it could be opened for more bytes than it has.  -EBADMSG: no length of
 * a slice.
 */
static int slice_take(struct pst *s, uint32_t id, size_t len, struct opened *o,
		      struct pst_counts *c)
{
	int fd, err = whole_pages(len) ? open_offer(s, id, len + 1, &fd) : -EBADMSG;

	if (err == 0) {
		pst_wrong(c, PST_WHY_SLICE_RANGE, (uint32_t)len);
		close(fd);
		return -ERANGE;
	}
	if (err != -ERANGE)
		return err;
	err = open_offer(s, id, len, &fd);
	if (err != 0)
		return err;
	err = port_map(s->port, fd, len, PORT_OUTBOUND, &o->map);
	close(fd);
	o->len = len;
	return err;
}

static void word_put(const struct opened *o, size_t at, uint64_t v)
{
	u_out_store64(&o->map.out, (_Atomic uint64_t *)(void *)((uint8_t *)o->map.base + at), v);
}

/* The first and the last word of each page. */
static void slice_mark(const struct opened *o, uint32_t seed, uint32_t slice)
{
	for (size_t at = 0; at < o->len; at += PAGE) {
		word_put(o, at, mark(seed, slice, at));
		word_put(o, at + PAGE - 8, mark(seed, slice, at + PAGE - 8));
	}
	u_out_fence(&o->map.out);
}

/* Marks all slices that the peer has made, and keeps them mapped until it has looked. */
int pst_slices_write(struct pst *s, const struct pst_job *job, struct pst_counts *c)
{
	struct opened o[SLICES] = { 0 };
	uint32_t args[PST_ARGS];
	int err = pst_hear(s, PST_STEP, args, s->cfg->gone_ns);

	for (uint32_t i = 0; err == 0 && i < SLICES; i++)
		err = slice_take(s, args[2 * i + 1], args[2 * i + 2], &o[i], c);
	for (uint32_t i = 0; err == 0 && i < SLICES; i++)
		slice_mark(&o[i], job->seed, i);
	port_flush(s->port);
	pst_step_say(s, err == 0 ? 1 : 2);
	if (err == 0 || err == -ERANGE)
		err = pst_step_hear(s, 2);
	for (uint32_t i = 0; i < SLICES; i++)
		port_unmap(s->port, &o[i].map);
	return err;
}

/* ---- the end that owns them --------------------------------------------------------------------- */

/* A slice of this host. */
struct owned {
	struct port_slice slice;
	struct port_map map;
};

/* Frees a slice of this host; also one that was not made. */
static void owned_drop(struct pst *s, struct owned *o)
{
	port_unmap(s->port, &o->map);
	if (o->slice.len != 0) {
		port_slice_free(s->port, o->slice.id);
		close(o->slice.fd);
	}
	memset(o, 0, sizeof(*o));
}

/* Makes and maps a slice of this host. */
static int owned_make(struct pst *s, size_t len, struct owned *o)
{
	int err = port_slice_alloc(s->port, len, &o->slice);

	if (err != 0) {
		memset(o, 0, sizeof(*o));
		return err;
	}
	err = port_map(s->port, o->slice.fd, o->slice.len, PORT_INBOUND, &o->map);
	if (err != 0)
		owned_drop(s, o);
	return err;
}

static bool is_zero(const struct owned *o)
{
	const uint8_t *at = o->map.base;

	return at[0] == 0 && memcmp(at, at + 1, o->slice.len - 1) == 0;
}

/* As owned_make(), but half of `*len` where there is no room for it, a quarter and so on; sets it to what there was. */
static int owned_fit(struct pst *s, size_t *len, struct owned *o)
{
	int err = owned_make(s, *len, o);

	while (err == -ENOSPC && *len > PAGE) {
		*len /= 2;
		err = owned_make(s, *len, o);
	}
	return err;
}

/* The biggest is half a window at most.  A port of several windows may have no room for one in any of them. */
static int owned_all(struct pst *s, struct owned o[SLICES], struct pst_counts *c)
{
	const uint32_t align = s->port->limits.slice_align;
	uint32_t big = (uint32_t)u_min64(s->port->limits.window_bytes / 2, BIG_MOST);
	int err = 0;

	for (uint32_t i = 0; err == 0 && i < SLICES; i++) {
		size_t len = len_of(i, big);

		err = owned_fit(s, &len, &o[i]);
		if (err != 0)
			break;
		if (o[i].slice.len < len || o[i].slice.len % align != 0)
			pst_wrong(c, PST_WHY_SLICE_SHORT, i);
		if (!is_zero(&o[i]))
			pst_wrong(c, PST_WHY_SLICE_DIRTY, i);
	}
	return err;
}

/* Is each mark there, and the word next to it untouched? */
static void marks_check(const struct owned *o, uint32_t seed, uint32_t slice, struct pst_counts *c)
{
	const uint8_t *base = o->map.base;
	uint64_t first, next, last;

	for (size_t at = 0; at < o->slice.len; at += PAGE) {
		memcpy(&first, base + at, 8);
		memcpy(&next, base + at + 8, 8);
		memcpy(&last, base + at + PAGE - 8, 8);
		c->tried++;
		if (first != mark(seed, slice, at) || next != 0 ||
		    last != mark(seed, slice, at + PAGE - 8))
			pst_wrong(c, PST_WHY_SLICE_STRAY, (uint32_t)at);
	}
}

/* Makes slices, has the peer mark them, and looks whether each mark lies where it belongs. */
int pst_slices_read(struct pst *s, const struct pst_job *job, struct pst_counts *c)
{
	struct owned o[SLICES] = { 0 };
	uint32_t args[1 + 2 * SLICES] = { 1 };
	uint32_t heard[PST_ARGS];
	int err = owned_all(s, o, c);

	for (uint32_t i = 0; i < SLICES; i++) {
		args[2 * i + 1] = o[i].slice.id;
		args[2 * i + 2] = (uint32_t)o[i].slice.len;
	}
	if (err == 0) {
		pst_say(s, PST_STEP, args, 1 + 2 * SLICES);
		err = pst_hear(s, PST_STEP, heard, s->cfg->gone_ns);
	}
	for (uint32_t i = 0; err == 0 && heard[0] == 1 && i < SLICES; i++)
		marks_check(&o[i], job->seed, i, c);
	if (err == 0)
		pst_step_say(s, 2);
	for (uint32_t i = 0; i < SLICES; i++)
		owned_drop(s, &o[i]);
	return err;
}

/* ---- slices that were freed ---------------------------------------------------------------------- */

/* Keeps the map of the slice, and stores through it when the pages may have another owner. */
int pst_freed_write(struct pst *s, const struct pst_job *job, struct pst_counts *c)
{
	struct opened o = { 0 };
	uint32_t args[PST_ARGS];
	int fd, err = pst_hear(s, PST_STEP, args, s->cfg->gone_ns);

	(void)job;
	(void)c;
	if (err == 0)
		err = whole_pages(args[2]) ? open_offer(s, args[1], args[2], &fd) : -EBADMSG;
	if (err != 0)
		return err;
	err = port_map(s->port, fd, args[2], PORT_OUTBOUND, &o.map);
	close(fd);
	o.len = args[2];
	while (err == 0 && args[0] != PST_ACK_STOP) {
		for (size_t at = 0; at < o.len; at += PAGE)
			word_put(&o, at, ~UINT64_C(0));
		u_out_fence(&o.map.out);
		port_flush(s->port);
		pst_step_say(s, args[0]);
		err = pst_hear(s, PST_STEP, args, s->cfg->gone_ns);
	}
	port_unmap(s->port, &o.map);
	return err;
}

/* Has the peer store through the map of the slice that it once had.  Is this one as it was? */
static int freed_round(struct pst *s, struct owned *now, uint32_t round, struct pst_counts *c)
{
	int err;

	if (!is_zero(now))
		pst_wrong(c, PST_WHY_SLICE_DIRTY, round);
	pst_step_say(s, round);
	err = pst_step_hear(s, round);
	c->tried++;
	if (err == 0 && !is_zero(now))
		pst_wrong(c, PST_WHY_SLICE_FREED, round);
	return err;
}

/* Frees a slice that the peer has mapped, then makes others, into which the peer must not store by that map. */
int pst_freed_read(struct pst *s, const struct pst_job *job, struct pst_counts *c)
{
	struct owned old = { 0 }, now[KEPT_ROUNDS] = { 0 };
	uint32_t args[3] = { 1 };
	uint32_t round = 0;
	size_t len = KEPT_LEN;
	int err = owned_fit(s, &len, &old);

	(void)job;
	args[1] = old.slice.id;
	args[2] = (uint32_t)old.slice.len;
	if (err == 0) {
		pst_say(s, PST_STEP, args, 3);
		err = pst_step_hear(s, 1);
	}
	owned_drop(s, &old);
	/* More slices than one, so that the pages of the old one are among them, if they are used again. */
	for (; err == 0 && round < KEPT_ROUNDS; round++) {
		if (owned_make(s, len, &now[round]) != 0)
			break;
		err = freed_round(s, &now[round], round + 2, c);
	}
	if (err == 0)
		pst_step_say(s, PST_ACK_STOP);
	while (round > 0)
		owned_drop(s, &now[--round]);
	return err;
}
