/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How both ends agree, over a port of which any one promise may be broken.
 *
 * Slices are exchanged by scratchpads, which are written again until the peer has answered, and count
 * when their check is right.  From then on each end has one record of one line in the other's control
 * slice, with a check, stored, fenced, flushed, and stored again until the peer has gone on: so a lost or
 * torn store costs time only, and no doorbell is needed.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "pst_priv.h"

#define RESTATE_NS INT64_C(4000000)
#define MAGIC UINT32_C(0x56)
#define TURNS 64u

enum { PAD_WORD, PAD_CTL, PAD_DATA, PAD_SEQ };
enum { OFFERED = 1, OPENED };

/* ---- waiting ----------------------------------------------------------------------------------- */

struct pst_wait pst_wait_begin(int64_t ns)
{
	return (struct pst_wait){ .deadline = ns < 0 ? U_NEVER : u_now_ns() + ns };
}

/* Never 0, so memory that is zero holds no record. */
static uint32_t record_check(const struct pst_record *r)
{
	uint32_t x = pst_mix(pst_mix(r->seq, r->kind), r->ack);

	for (unsigned int i = 0; i < PST_ARGS; i++)
		x = pst_mix(x, r->args[i]);
	return x | 1;
}

/* Stores the record that was said last, with the number of the last one that was taken here. */
static void record_store(struct pst *s)
{
	s->said.ack = s->heard;
	s->said.check = record_check(&s->said);
	s->said_any = true;
	u_out_copy(&s->ctl.out.out, s->ctl.out.base, &s->said, sizeof(s->said));
	pst_fence(&s->ctl);
	port_flush(s->port);
}

/* Writes the peer's scratchpads; the first one, which has the check, comes last. */
static void pads_write(struct pst *s)
{
	for (unsigned int i = PST_PADS; i > 0; i--)
		port_peer_spad_write(s->port, i - 1, s->pad[i - 1]);
}

/* Says again what the peer may not have got. */
static void restate(struct pst *s)
{
	s->restated_at = u_now_ns();
	if (s->pads_restate)
		pads_write(s);
	if (s->said_any)
		record_store(s);
}

/* Is the link down, or is it another one than that over which slices were exchanged? */
static bool link_ended(struct pst *s)
{
	uint32_t generation;

	return port_link_state(s->port, &generation) != PORT_LINK_UP ||
	       (s->generation != 0 && generation != s->generation);
}

int pst_poll(struct pst *s, struct pst_wait *w)
{
	int64_t now;

	if (++w->turns % TURNS != 0) {
		u_pause();
		return 0;
	}
	if (w->over)
		return -ETIMEDOUT;
	now = u_now_ns();
	w->over = w->deadline != U_NEVER && now > w->deadline;
	port_service(s->port);
	u_yield();
	if (link_ended(s))
		return -ENOTCONN;
	if (now - s->restated_at > RESTATE_NS)
		restate(s);
	return 0;
}

/* ---- exchanging slices ------------------------------------------------------------------------- */

/* Frees this host's slice and unmaps both; also one that was made in part. */
static void slice_drop(struct pst *s, struct pst_slice *l)
{
	port_unmap(s->port, &l->out);
	port_unmap(s->port, &l->in);
	if (l->own.len != 0) {
		port_slice_free(s->port, l->own.id);
		close(l->own.fd);
	}
	memset(l, 0, sizeof(*l));
}

void pst_leave(struct pst *s)
{
	slice_drop(s, &s->ctl);
	slice_drop(s, &s->data);
	s->said_any = false;
	s->pads_restate = false;
	s->generation = 0;
}

/* Makes a slice of this host for the peer to open. */
static int slice_offer(struct pst *s, struct pst_slice *l, size_t len)
{
	int err = port_slice_alloc(s->port, len, &l->own);

	if (err != 0) {
		memset(&l->own, 0, sizeof(l->own));
		return err;
	}
	return port_map(s->port, l->own.fd, len, PORT_INBOUND, &l->in);
}

/* The first scratchpad: exchange, role and phase, with a check over the others. */
static uint32_t pad_word(const uint32_t pad[PST_PADS], bool judge, uint32_t epoch, uint32_t phase)
{
	uint32_t sum = pst_mix(epoch, phase | (judge ? 4u : 0));

	for (unsigned int i = 1; i < PST_PADS; i++)
		sum = pst_mix(sum, pad[i]);
	return MAGIC << 24 | (sum & 0xffff) << 8 | (epoch & 0x1f) << 3 | (judge ? 4u : 0) | phase;
}

/* This host's scratchpads, which the peer writes. */
static void pads_read(const struct pst *s, uint32_t pad[PST_PADS])
{
	for (unsigned int i = 0; i < PST_PADS; i++)
		pad[i] = port_spad_read(s->port, i);
}

/* The phase that the other end has told in this host's scratchpads for this exchange; 0: none. */
static uint32_t phase_of(const uint32_t pad[PST_PADS], bool judge, uint32_t epoch)
{
	uint32_t phase = pad[PAD_WORD] & 3;

	return pad[PAD_WORD] == pad_word(pad, judge, epoch, phase) ? phase : 0;
}

bool pst_peer_rejoins(const struct pst *s)
{
	uint32_t pad[PST_PADS];

	pads_read(s, pad);
	return phase_of(pad, !s->judge, s->epoch + 1) != 0;
}

/* Opens and maps a slice of the peer, unless that has been done. */
static int slice_open(struct pst *s, struct pst_slice *l, uint32_t id, size_t len)
{
	int fd, err;

	if (l->out.base != NULL)
		return 0;
	err = port_peer_slice_open(s->port, id, len, &fd);
	if (err != 0)
		return err;
	err = port_map(s->port, fd, len, PORT_OUTBOUND, &l->out);
	close(fd);
	return err;
}

/* Opens the peer's slices, which may be offered a moment later.  -EAGAIN: not all of them yet. */
static int slices_open(struct pst *s, const uint32_t pad[PST_PADS])
{
	int err = slice_open(s, &s->ctl, pad[PAD_CTL], PST_CTL);

	if (err == 0)
		err = slice_open(s, &s->data, pad[PAD_DATA], PST_DATA);
	return err == -ENOENT ? -EAGAIN : err;
}

/* Tells the peer how far this end is, and again now and then until the peer has gone on. */
static void phase_tell(struct pst *s, uint32_t phase)
{
	s->pad[PAD_WORD] = pad_word(s->pad, s->judge, s->epoch, phase);
	s->pads_restate = true;
	restate(s);
}

/*
 * Offers this end's slices and opens the peer's, until each end has told that it has opened them.  -EALREADY: the peer
 * has this end's role.
 */
static int pads_exchange(struct pst *s)
{
	struct pst_wait w = pst_wait_begin(s->cfg->gone_ns);
	uint32_t pad[PST_PADS], phase, mine = OFFERED;
	int err = 0;

	phase_tell(s, OFFERED);
	for (;;) {
		pads_read(s, pad);
		if (phase_of(pad, s->judge, s->epoch) != 0)
			return -EALREADY;
		/* A peer with this end's role ends when it has seen that, and the link with it: after one more look. */
		if (err != 0)
			return err;
		phase = phase_of(pad, !s->judge, s->epoch);
		if (phase != 0 && mine == OFFERED) {
			err = slices_open(s, pad);
			if (err == 0) {
				mine = OPENED;
				phase_tell(s, OPENED);
			} else if (err != -EAGAIN) {
				return err;
			}
		}
		if (phase == OPENED && mine == OPENED)
			return 0;
		err = pst_poll(s, &w);
	}
}

/* Waits until the link is up.  -ETIMEDOUT. */
static int link_await(struct pst *s)
{
	struct pst_wait w = pst_wait_begin(s->cfg->gone_ns);
	int err = 0;

	while (port_link_state(s->port, NULL) != PORT_LINK_UP) {
		err = pst_poll(s, &w);
		if (err == -ETIMEDOUT)
			return err;
	}
	return 0;
}

int pst_join(struct pst *s)
{
	int err;

	pst_leave(s);
	s->epoch++;
	if (s->port->limits.spads < PST_PADS)
		return -EOPNOTSUPP;
	err = link_await(s);
	if (err != 0)
		return err;
	port_link_state(s->port, &s->generation);
	err = slice_offer(s, &s->ctl, PST_CTL);
	if (err == 0)
		err = slice_offer(s, &s->data, PST_DATA);
	if (err != 0)
		return err;
	s->pad[PAD_CTL] = s->ctl.own.id;
	s->pad[PAD_DATA] = s->data.own.id;
	s->pad[PAD_SEQ] = s->said.seq;
	return pads_exchange(s);
}

/* ---- records ----------------------------------------------------------------------------------- */

/* The peer's record, when all of it has arrived. */
static bool record_read(const struct pst *s, struct pst_record *out)
{
	uint32_t *to = (uint32_t *)(void *)out;

	for (size_t i = 0; i < sizeof(*out) / sizeof(*to); i++)
		to[i] = pst_load32(&s->ctl, i * sizeof(*to));
	return out->check == record_check(out);
}

/* Have slices been exchanged?  They have not when pst_join() has failed. */
static bool slices_stand(const struct pst *s)
{
	return s->ctl.out.base != NULL && s->data.out.base != NULL;
}

/* Waits until the peer has taken what was said last, for gone_ns at most. */
static void taken_await(struct pst *s)
{
	struct pst_wait w = pst_wait_begin(s->cfg->gone_ns);
	struct pst_record r;

	while (!record_read(s, &r) || r.ack != s->said.seq) {
		if (pst_poll(s, &w) != 0)
			return;
	}
}

void pst_say(struct pst *s, uint32_t kind, const uint32_t *args, unsigned int n)
{
	if (!slices_stand(s))
		return;
	if (s->said_any)
		taken_await(s);
	s->said.seq++;
	s->said.kind = kind;
	memset(s->said.args, 0, sizeof(s->said.args));
	memcpy(s->said.args, args, n * sizeof(*args));
	s->restated_at = u_now_ns();
	record_store(s);
}

int pst_hear(struct pst *s, uint32_t kind, uint32_t args[PST_ARGS], int64_t ns)
{
	struct pst_wait w = pst_wait_begin(ns);
	struct pst_record r;
	int err;

	if (!slices_stand(s))
		return -ENOTCONN;
	for (;;) {
		if (record_read(s, &r) && r.seq != s->heard) {
			s->pads_restate = false;
			if (r.kind == kind)
				break;
			if (r.kind == PST_REQUEST || r.kind == PST_DONE)
				return -EPROTO;
		}
		err = pst_poll(s, &w);
		if (err != 0)
			return err;
	}
	s->heard = r.seq;
	memcpy(args, r.args, sizeof(r.args));
	record_store(s);
	return 0;
}

void pst_step_say(struct pst *s, uint32_t step)
{
	pst_say(s, PST_STEP, &step, 1);
}

int pst_step_hear(struct pst *s, uint32_t step)
{
	uint32_t args[PST_ARGS];
	int err = pst_hear(s, PST_STEP, args, s->cfg->gone_ns);

	return err == 0 && args[0] != step ? -EPROTO : err;
}

/* ---- small parts ------------------------------------------------------------------------------- */

void pst_wrong(struct pst_counts *c, uint32_t why, uint32_t at)
{
	if (c->wrong++ == 0) {
		c->why = why;
		c->at = at;
	}
}

void pst_settle(struct pst *s)
{
	pst_fence(&s->data);
	pst_fence(&s->ctl);
	port_flush(s->port);
}

bool pst_enough(int64_t until, uint32_t tried, uint32_t least)
{
	return tried >= least && u_now_ns() >= until;
}

void pst_signal(struct pst *s, size_t off, uint32_t v)
{
	pst_store32(&s->data, off, v);
	pst_fence(&s->data);
	port_flush(s->port);
}

int pst_await(struct pst *s, size_t off, uint32_t old, uint32_t *out)
{
	struct pst_wait w = pst_wait_begin(s->cfg->gone_ns);
	int err;

	while ((*out = pst_load32(&s->data, off)) == old) {
		err = pst_poll(s, &w);
		if (err != 0)
			return err;
	}
	return 0;
}
