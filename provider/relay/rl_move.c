/* SPDX-License-Identifier: BSD-2-Clause */
/* Forwarding slots, credit and error reports of one circuit. */
#include <errno.h>
#include <string.h>

#include "rl_priv.h"

#define AHEAD 8u /* slots ahead of the one being written that are prefetched */
/* part of the payload buffer that is forwarded between two checks for credit */
#define CREDIT_SHARE 16u

/* Fills in an end of a new circuit: where its slices lie, and the slot and credit with which it begins. */
void rl_end_place(struct rl_circuit *c, unsigned int side, const struct rl_side *from)
{
	struct rl_end *e = &c->end[side];
	uint32_t slots = c->mask + 1;
	uint8_t *in = from->in.base, *out = from->out.base;

	e->port = from->port;
	e->in_map = from->in;
	e->out_map = from->out;
	e->out = from->out.out;
	e->db_mask = from->db_mask;
	e->in_ctl = (const struct w_control *)in;
	e->in_slots = (const struct w_slot *)(in + W_SLICE_FIFO);
	e->in_payload = in + w_slice_payload(slots);
	e->out_ctl = (struct w_control *)out;
	e->out_slots = (struct w_slot *)(out + W_SLICE_FIFO);
	e->out_payload = out + w_slice_payload(slots);
	e->next = e->credit = from->first;
	e->cursor = from->cursor;
}

/* ---- notify requests ------------------------------------------------------------------------ */

/* Rings the doorbell of the node at that end. */
static void ring(struct rl_circuit *c, struct rl_end *e)
{
	c->thread->counters.rings++;
	port_peer_db_ring(e->port, e->db_mask);
}

/*
 * Returns the notify request of a node, loaded after publishing and a fence.  A relay always fences
 * by itself, even if the node calls membarrier().
 */
static uint32_t notify_of(const struct rl_end *e)
{
	u_out_fence(&e->out);
	atomic_thread_fence(memory_order_seq_cst);
	return atomic_load_explicit(&e->in_ctl->notify, memory_order_relaxed);
}

/* Rings `to`, after slots of `from` were published there, if its notify request asks for it. */
static void ring_slots(struct rl_circuit *c, const struct rl_end *from, struct rl_end *to)
{
	uint32_t notify = notify_of(to);

	if (notify != to->rung && w_notify_due(notify, from->next)) {
		to->rung = notify;
		ring(c, to);
	}
}

/* Asks both nodes for a ring with the next slot, and with credit while some has not come back; does not flush. */
void rl_write_notify(struct rl_circuit *c)
{
	unsigned int i;

	for (i = 0; i < 2; i++) {
		struct rl_end *e = &c->end[i], *other = &c->end[1 - i];
		uint32_t bits = W_NOTIFY_SLOT;

		if (other->next != other->credit)
			bits |= W_NOTIFY_CREDIT;
		u_out_store32(&e->out, &e->out_ctl->notify, w_notify(bits, e->next));
		u_out_fence(&e->out);
	}
}

/* Withdraws the notify requests at both nodes, as the circuit is polled from now on. */
void rl_clear_notify(struct rl_circuit *c)
{
	unsigned int i;

	for (i = 0; i < 2; i++)
		u_out_store32(&c->end[i].out, &c->end[i].out_ctl->notify, 0);
}

/* ---- slots ------------------------------------------------------------------------------------ */

/* Has the node published the next slot to be forwarded?  False, too, once its error report was forwarded. */
static bool slot_ready(const struct rl_circuit *c, const struct rl_end *e)
{
	const struct w_slot *slot = &e->in_slots[e->next & c->mask];
	bool there = atomic_load_explicit(&slot->head.seq, memory_order_acquire) == w_seq(e->next);

	/* Prefetches the second line, so that the poll that finds the slot has both. */
	if (!there && e->two_lines)
		__builtin_prefetch(slot->more);
	return there && !e->reported;
}

/* May the slot be forwarded?  `line` is a private copy of it.  0, with the bytes inline in *inline_out, or -EPROTO. */
static int check(const struct rl_circuit *c, const struct rl_end *e, const struct w_slot *line,
		 uint32_t *inline_out)
{
	/* The node has sent more slots than it had credit for. */
	if (e->next - e->credit > c->mask)
		return -EPROTO;
	return w_slot_bounds(line->head.op, line->head.flags, line->head.reserved, line->head.arg,
			     line->head.frag, c->payload_bytes, inline_out);
}

/* Forwards the next slot of `from`, which is ready; the caller rings.  0, or -EPROTO: the node broke the protocol. */
static int forward(struct rl_circuit *c, struct rl_end *from, struct rl_end *to)
{
	const struct w_slot *in = &from->in_slots[from->next & c->mask];
	struct w_slot *out = &to->out_slots[from->next & c->mask];
	struct w_slot *ahead = &to->out_slots[(from->next + AHEAD) & c->mask];
	struct w_slot line;
	uint32_t offset, bytes;

	memcpy(&line, in, offsetof(struct w_slot, head.seq));
	/* The compiler must not load the slot again instead of using the copy: the node may change the slot. */
	__asm__ volatile("" : "+m"(line));
	if (check(c, from, &line, &bytes) != 0)
		return -EPROTO;
	if (line.head.flags & W_F_BUFFERED) {
		offset = w_payload_find(&from->cursor, c->payload_bytes, line.head.flags,
					line.head.frag);
		u_out_copy(&to->out, to->out_payload + offset, from->in_payload + offset,
			   line.head.frag);
		c->thread->counters.bytes += line.head.frag;
	}
	u_prefetch_write(ahead);
	from->two_lines = bytes > W_HEAD_INLINE;
	if (from->two_lines) {
		u_prefetch_write(ahead->more);
		memcpy(line.more, in->more, bytes - W_HEAD_INLINE);
		u_out_copy(&to->out, out->more, line.more, bytes - W_HEAD_INLINE);
	}
	c->thread->counters.bytes += bytes;
	u_out_copy(&to->out, out, &line, offsetof(struct w_slot, head.seq));
	/* A: payload and header before the sequence that publishes them. */
	u_out_fence(&to->out);
	u_out_store32(&to->out, &out->head.seq, w_seq(from->next));
	from->next++;
	return 0;
}

/* ---- credit, slots and errors ------------------------------------------------------------------- */

/* Returns the count of slots that the node says it has consumed; not checked. */
static uint32_t credit_of(const struct rl_end *e)
{
	return atomic_load_explicit(&e->in_ctl->credit, memory_order_acquire);
}

/*
 * Forwards the credit of `to` for slots of `from`, and rings `from` if that waits for it.  It may only grow, and not
 * beyond the forwarded slots: else the circuit is marked broken.  Returns 1 if it grew, else 0.
 */
static uint32_t move_credit(struct rl_circuit *c, struct rl_end *from, struct rl_end *to)
{
	uint32_t credit = credit_of(to);

	if (credit == from->credit)
		return 0;
	if (credit - from->credit > from->next - from->credit) {
		c->broken = true;
		return 0;
	}
	from->credit = credit;
	u_out_store32(&from->out, &from->out_ctl->credit, credit);
	if (notify_of(from) & W_NOTIFY_CREDIT)
		ring(c, from);
	return 1;
}

/*
 * Forwards slots of `from`, at most `budget`, and rings; returns how many.  A bad slot marks the circuit
 * broken.  In a long stream, credit is forwarded between the slots: the sender waits for it, and copying a
 * batch of long fragments takes longer than the receiver needs to consume one.
 */
static uint32_t move_slots(struct rl_circuit *c, struct rl_end *from, struct rl_end *to,
			   uint32_t budget)
{
	const uint64_t *bytes = &c->thread->counters.bytes;
	uint64_t looked = *bytes;
	uint32_t n = 0;

	while (n < budget && !c->broken && slot_ready(c, from)) {
		if (forward(c, from, to) != 0) {
			c->broken = true;
			break;
		}
		n++;
		if (*bytes - looked >= c->payload_bytes / CREDIT_SHARE) {
			move_credit(c, from, to);
			looked = *bytes;
		}
	}
	if (n > 0) {
		c->thread->counters.slots += n;
		ring_slots(c, from, to);
	}
	return n;
}

/* Returns the error report of the node; 0: none. */
static uint64_t error_of(const struct rl_end *e)
{
	return atomic_load_explicit(&e->in_ctl->error, memory_order_acquire);
}

/*
 * Forwards an error report of `from`, once; returns 1 if it did.  Slots that it published and credit that it
 * gave before are valid and are forwarded first.  The report is read before the slots, so all slots published
 * before it are seen.
 */
static uint32_t move_error(struct rl_circuit *c, struct rl_end *from, struct rl_end *to)
{
	uint64_t word = from->reported ? 0 : error_of(from);

	if (word == 0)
		return 0;
	move_slots(c, from, to, c->mask + 1);
	move_credit(c, to, from);
	if (c->broken)
		return 0;
	from->reported = true;
	u_out_store64(&to->out, &to->out_ctl->error, word);
	u_out_fence(&to->out);
	ring(c, to);
	return 1;
}

bool rl_ready(const struct rl_circuit *c)
{
	unsigned int i;

	for (i = 0; i < 2; i++) {
		const struct rl_end *e = &c->end[i], *other = &c->end[1 - i];

		if (slot_ready(c, e) || credit_of(other) != e->credit ||
		    (!e->reported && error_of(e) != 0))
			return true;
	}
	return false;
}

uint32_t rl_move(struct rl_circuit *c, uint32_t budget)
{
	struct rl_end *a = &c->end[0], *b = &c->end[1];
	uint32_t moved;

	moved = move_slots(c, a, b, budget) + move_slots(c, b, a, budget);
	moved += move_credit(c, a, b) + move_credit(c, b, a);
	moved += move_error(c, a, b) + move_error(c, b, a);
	return moved;
}

void rl_move_all(struct rl_circuit *c, unsigned int side)
{
	struct rl_end *from = &c->end[side], *to = &c->end[1 - side];

	move_slots(c, from, to, c->mask + 1);
	if (!c->broken)
		move_credit(c, to, from);
	if (!c->broken)
		move_error(c, from, to);
}

uint32_t rl_moves(const struct rl_circuit *c)
{
	return c->end[0].next + c->end[0].credit + c->end[1].next + c->end[1].credit;
}
