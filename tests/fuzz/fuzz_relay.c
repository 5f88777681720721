/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two hostile nodes of a circuit: each may write anything, at any time, into every byte of the
 * bypass buffer that it was granted.  The input is a program of their stores, mixed with passes of
 * the transfer thread that forwards.  Nothing outside the slices may be touched, the relay must write
 * only what a correct relay may write, and another circuit must notice nothing.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "fz_input.h"
#include "port_emu.h"
#include "rl_priv.h"
#include "rl_relay.h"

#define SLOTS 8u
#define PAYLOAD 4096u
#define DB_BIT 2u /* doorbell bit of the thread */
#define NODE_DB_BIT 5u
#define PASSES 64u /* after that many, all that can move has moved */

/* A port of the relay; its memory is the heap's, so that the address sanitizer guards it. */
struct fake_port {
	struct port port;
	uint32_t db;   /* rung by the node */
	uint32_t rung; /* at the node */
};

/* A hostile node: the memory and doorbells that it has. */
struct node {
	struct fake_port port;
	uint8_t *bypass; /* it writes */
	uint8_t *slice;	 /* it reads */
	uint32_t seq;	 /* the next slot that it writes */
	uint32_t consumed;
	uint32_t credit; /* the credit that it was given */
};

struct circuit {
	struct node node[2];
	struct rl_circuit *rl;
};

struct world {
	struct fz_input *in;
	struct port_emu_host *host;
	struct rl_relay *relay;
	struct circuit good, bad;
	uint32_t told;
};

static _Noreturn __attribute__((format(printf, 1, 2))) void fail(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	fputc('\n', stderr);
	va_end(args);
	abort();
}

/* ---- ports --------------------------------------------------------------------------------------- */

static struct fake_port *fake(struct port *p)
{
	return u_container_of(p, struct fake_port, port);
}

static void fake_unmap(struct port *p, struct port_map *map)
{
	free(map->base);
}

static void fake_flush(struct port *p) {}

static void fake_ring(struct port *p, uint32_t bits)
{
	if (bits != 1u << NODE_DB_BIT)
		fail("bits %#x were rung, which are not the node's", bits);
	fake(p)->rung++;
}

static uint32_t fake_read(struct port *p)
{
	return fake(p)->db;
}

static void fake_clear(struct port *p, uint32_t bits)
{
	fake(p)->db &= ~bits;
}

static const struct port_ops fake_ops = {
	.unmap = fake_unmap,
	.flush = fake_flush,
	.peer_db_ring = fake_ring,
	.db_read = fake_read,
	.db_clear = fake_clear,
};

/* ---- circuits ------------------------------------------------------------------------------------ */

static uint8_t *slice(void)
{
	size_t len = w_slice_bytes(SLOTS, PAYLOAD);
	uint8_t *at = aligned_alloc(4096, len);

	if (at == NULL)
		fail("no memory");
	memset(at, 0, len);
	return at;
}

/* Opens a circuit; the relay frees the memory that it mapped. */
static void circuit_open(struct world *w, struct circuit *c)
{
	struct rl_side side[2];
	int i;

	for (i = 0; i < 2; i++) {
		struct node *n = &c->node[i];

		*n = (struct node){ .bypass = slice(), .slice = slice() };
		n->port.port.ops = &fake_ops;
		side[i] = (struct rl_side){ .port = &n->port.port,
					    .in = { .base = n->bypass },
					    .out = { .base = n->slice },
					    .db_mask = 1u << NODE_DB_BIT };
	}
	if (rl_circuit_create(&w->relay->threads[0], side, SLOTS, PAYLOAD, c, &c->rl) != 0)
		fail("no circuit");
}

static void notify(void *arg)
{
	((struct world *)arg)->told++;
}

static struct w_slot *slot_at(uint8_t *slice, uint32_t n)
{
	return (struct w_slot *)(void *)(slice + W_SLICE_FIFO) + n % SLOTS;
}

static struct w_control *control_of(uint8_t *slice)
{
	return (struct w_control *)(void *)slice;
}

/* ---- checks of what the relay wrote ----------------------------------------------------------------- */

static void check_slot(struct node *n, const struct w_slot *s)
{
	uint32_t bytes;

	if (w_slot_bounds(s->head.op, s->head.flags, s->head.reserved, s->head.arg, s->head.frag,
			  PAYLOAD, &bytes) != 0)
		fail("slot %u came, which no relay may forward", n->consumed);
	n->consumed++;
}

static void check_credit(struct node *n, const struct node *other)
{
	uint32_t credit = atomic_load(&control_of(n->slice)->credit);

	if (credit < n->credit || credit > other->consumed)
		fail("credit %u after %u, of %u slots", credit, n->credit, other->consumed);
	n->credit = credit;
}

/* Slots are valid and in order; credit only grows, up to the number of slots that the other end has got. */
static void check(struct circuit *c)
{
	int i;

	for (i = 0; i < 2; i++) {
		struct node *n = &c->node[i];

		while (atomic_load(&slot_at(n->slice, n->consumed)->head.seq) == w_seq(n->consumed))
			check_slot(n, slot_at(n->slice, n->consumed));
	}
	check_credit(&c->node[0], &c->node[1]);
	check_credit(&c->node[1], &c->node[0]);
}

/* The node's doorbells ring. */
static void interrupt(struct world *w, struct node *n, uint32_t bits)
{
	n->port.db |= bits;
	port_irq_kick(port_emu_host_irq(w->host), bits);
}

static void pass(struct world *w)
{
	rl_thread_pass(&w->relay->threads[0]);
	check(&w->bad);
}

/* ---- the program ----------------------------------------------------------------------------------- */

static void write_slot(struct world *w, struct node *n)
{
	struct w_slot *s = slot_at(n->bypass, n->seq);
	uint32_t shape = fz_pick(w->in, 256);

	fz_fill(w->in, s->data, shape & 1 ? 0 : fz_pick(w->in, 16));
	if (shape & 2)
		memset(s->data, 0, sizeof(struct w_rdma));
	s->head.op = shape & 4 ? (uint8_t)(1 + fz_pick(w->in, 5)) : (uint8_t)fz_get(w->in, 1);
	s->head.flags = shape & 8 ? (uint8_t)(fz_get(w->in, 1) & W_F_KNOWN)
				  : (uint8_t)(W_F_FIRST | W_F_LAST);
	s->head.reserved = shape & 16 ? 0 : (uint16_t)fz_pick(w->in, 2);
	s->head.arg = shape & 32 ? 0 : (uint32_t)fz_get(w->in, 2);
	s->head.frag = shape & 64 ? fz_pick(w->in, 128) : (uint32_t)fz_get(w->in, 4);
	atomic_store(&s->head.seq, shape & 128 && fz_pick(w->in, 16) == 1
					   ? (uint32_t)fz_get(w->in, 4)
					   : w_seq(n->seq));
	n->seq++;
}

static void scribble(struct world *w, struct node *n)
{
	size_t size = w_slice_bytes(SLOTS, PAYLOAD), at = fz_get(w->in, 2) % size;
	size_t len = fz_pick(w->in, 64);

	fz_fill(w->in, n->bypass + at, len < size - at ? len : size - at);
}

static void credit(struct world *w, struct node *n)
{
	uint32_t how = fz_pick(w->in, 8);

	atomic_store(&control_of(n->bypass)->credit, how == 1	? (uint32_t)fz_get(w->in, 4)
						     : how == 2 ? n->consumed + 1
								: n->consumed);
}

static void reopen(struct world *w)
{
	rl_remove(w->bad.rl);
	circuit_open(w, &w->bad);
}

static void act(struct world *w)
{
	uint32_t what = fz_pick(w->in, 32);
	struct node *n = &w->bad.node[what & 1];

	switch (what / 2) {
	case 0 ... 4:
		write_slot(w, n);
		break;
	case 5:
		scribble(w, n);
		break;
	case 6:
	case 7:
		credit(w, n);
		break;
	case 8:
		atomic_store(&control_of(n->bypass)->notify, (uint32_t)fz_get(w->in, 4));
		break;
	case 9:
		atomic_store(&control_of(n->bypass)->error, fz_get(w->in, 8));
		break;
	case 10:
		interrupt(w, n, (uint32_t)fz_get(w->in, 1));
		break;
	case 11:
		rl_thread_lock(&w->relay->threads[0]);
		rl_thread_arm(&w->relay->threads[0], (what & 1) != 0);
		rl_thread_unlock(&w->relay->threads[0]);
		break;
	case 12:
		rl_drain(w->bad.rl, what & 1);
		check(&w->bad);
		break;
	case 13:
		if (what & 1)
			reopen(w);
		break;
	default:
		pass(w);
	}
}

/* ---- the other circuit ------------------------------------------------------------------------------- */

static void good_slot(struct world *w, struct node *from, struct node *to)
{
	struct w_slot *s = slot_at(from->bypass, from->seq), *d;

	memset(s->data, (int)from->seq, sizeof(s->data));
	s->head = (struct w_head){ .op = W_OP_SEND, .flags = W_F_FIRST | W_F_LAST, .frag = 48 };
	atomic_store(&s->head.seq, w_seq(from->seq++));
	interrupt(w, from, 1u << DB_BIT);
	rl_thread_pass(&w->relay->threads[0]);
	d = slot_at(to->slice, to->consumed);
	if (atomic_load(&d->head.seq) != w_seq(to->consumed) || memcmp(d->data, s->data, 48) != 0)
		fail("slot %u of the good circuit did not come", to->consumed);
	atomic_store(&control_of(to->bypass)->credit, ++to->consumed);
	interrupt(w, to, 1u << DB_BIT);
	rl_thread_pass(&w->relay->threads[0]);
	if (atomic_load(&control_of(from->slice)->credit) != from->seq)
		fail("the good circuit got no credit");
}

/* Runs passes until nothing moves; each break is reported once. */
static void settle(struct world *w)
{
	struct rl_counters counters;
	void *user, *before = NULL;
	uint32_t i;

	for (i = 0; i < 2; i++)
		interrupt(w, &w->bad.node[i], UINT32_MAX);
	for (i = 0; i < PASSES; i++)
		pass(w);
	if (rl_thread_pass(&w->relay->threads[0]) != 0)
		fail("it never comes to rest");
	rl_counters(w->relay, &counters);
	if (counters.broken != w->told || counters.circuits != 2)
		fail("%u breaks told of, %llu counted", w->told,
		     (unsigned long long)counters.broken);
	while ((user = rl_broken(w->relay)) != NULL) {
		if (user != &w->bad || before != NULL)
			fail("the wrong circuit is said to be broken, or one twice");
		before = user;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fz_input in = { data, size };
	struct world w = { .in = &in };
	struct rl_cfg cfg = { .threads = 1,
			      .wait = RL_BLOCK,
			      .first_db_bit = DB_BIT,
			      .port_count = 4,
			      .notify = notify,
			      .notify_arg = &w };
	struct port *ports[4] = { &w.good.node[0].port.port, &w.good.node[1].port.port,
				  &w.bad.node[0].port.port, &w.bad.node[1].port.port };

	if (port_emu_host_create(&w.host) != 0)
		fail("no host");
	cfg.irq = port_emu_host_irq(w.host);
	cfg.ports = ports;
	if (rl_open(&cfg, &w.relay) != 0)
		fail("no relay");
	circuit_open(&w, &w.good);
	circuit_open(&w, &w.bad);
	while (in.left > 0)
		act(&w);
	settle(&w);
	good_slot(&w, &w.good.node[0], &w.good.node[1]);
	good_slot(&w, &w.good.node[1], &w.good.node[0]);
	rl_remove(w.bad.rl);
	rl_remove(w.good.rl);
	rl_close(w.relay);
	port_emu_host_destroy(w.host);
	return 0;
}
