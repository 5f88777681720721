/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A hostile peer against one VI: it may write anything, at any time, into every
 * byte of the slice it was granted.  The input is a program of its stores, mixed
 * with calls of the victim's application.  Nothing may crash, hang or
 * read or write outside; memory that was not offered stays as it was.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "nvi_loop.h"
#include "w_slot.h"

#define SLOTS 8u
#define PAYLOAD 4096u
#define VICTIM 0
#define OFFERED 8192u
#define GUARD 64u
#define DESCS 16u

struct reader {
	const uint8_t *at;
	size_t left;
};

static uint32_t get(struct reader *r, unsigned int bytes)
{
	uint32_t v = 0;

	while (bytes-- > 0 && r->left > 0) {
		v = v << 8 | *r->at++;
		r->left--;
	}
	return v;
}

struct world {
	struct nvi_loop *loop;
	uint8_t *slice; /* of the victim, as its peer sees it */
	uint64_t slice_len;
	uint8_t *memory; /* guard, offered bytes, guard */
	VIP_MEM_HANDLE handle, desc_handle;
	VIP_DESCRIPTOR *descs;
	uint32_t seq; /* the peer's guess of the next slot */
	uint32_t next_desc;
};

/* Writes a slot with fields from the input, mostly with the sequence with which it is read. */
static void write_slot(struct world *w, struct reader *r)
{
	struct w_slot *slots = (struct w_slot *)(w->slice + W_SLICE_FIFO);
	struct w_slot *s = &slots[w->seq % SLOTS];
	uint32_t shape = get(r, 1);
	struct w_rdma rdma = { .handle = (shape & 1) ? w->handle : get(r, 4),
			       .addr = (uint64_t)(uintptr_t)w->memory + GUARD + get(r, 2),
			       .length = (shape & 2) ? 0 : get(r, 2) };

	memcpy(s->data, &rdma, sizeof(rdma));
	s->head.op = (shape & 4) ? (uint8_t)(get(r, 1) % 8) : (uint8_t)get(r, 1);
	s->head.flags = (shape & 8) ? (uint8_t)(get(r, 1) & W_F_KNOWN) : (uint8_t)get(r, 1);
	s->head.reserved = (shape & 16) ? 0 : (uint16_t)get(r, 2);
	s->head.arg = get(r, 2);
	s->head.frag = (shape & 32) ? get(r, 1) : get(r, 4);
	if (s->head.op == W_OP_READ_REQ && (shape & 128)) {
		struct w_read_req req = { .rdma = rdma,
					  .offer = { .addr = rdma.addr + (get(r, 1) << 8),
						     .handle = get(r, 1) & 1 ? w->handle : 0,
						     .consumed = get(r, 1) } };

		memcpy(s->data, &req, sizeof(req));
		s->head.frag = sizeof(req);
	}
	if (s->head.op == W_OP_ATOMIC_REQ && (shape & 128)) {
		struct w_atomic_req req = { .rdma = rdma,
					    .atomic = { .op = get(r, 1) % (W_ATOMIC_MAX + 1),
							.fetch = get(r, 1) % 3,
							.operand = get(r, 4) } };

		req.rdma.length = 4 << (shape & 1);
		req.rdma.addr &= ~UINT64_C(7);
		memcpy(s->data, &req, sizeof(req));
		s->head.frag = sizeof(req);
	}
	atomic_store(&s->head.seq, (shape & 64) ? w_seq(w->seq) : get(r, 4));
	w->seq++;
}

static void scribble(struct world *w, struct reader *r)
{
	uint64_t at = get(r, 3) % w->slice_len;
	uint32_t len = get(r, 1);

	for (uint32_t i = 0; i < len && at + i < w->slice_len; i++)
		w->slice[at + i] = (uint8_t)get(r, 1);
}

static VIP_DESCRIPTOR *descriptor(struct world *w, uint16_t control, uint32_t len)
{
	VIP_DESCRIPTOR *d = &w->descs[w->next_desc++ % DESCS];
	unsigned int n = 0;

	memset(d, 0, sizeof(*d));
	d->CS.Control = control;
	d->CS.Length = len;
	if ((control & 3) != VIP_CONTROL_OP_SENDRECV) {
		d->DS[n].Remote.Data.Address = w->memory + GUARD;
		d->DS[n++].Remote.Handle = w->handle;
	}
	d->DS[n].Local.Data.Address = w->memory + GUARD;
	d->DS[n].Local.Handle = w->handle;
	d->DS[n++].Local.Length = len;
	d->CS.SegCount = (VIP_UINT16)n;
	/* The data segment becomes the operands, and the old value is not stored. */
	if ((control & 3) == VIPX_CONTROL_OP_ATOMIC) {
		d->CS.ImmediateData = len % 9;
		d->CS.Length = len & 16 ? 8 : 4;
	}
	return d;
}

static void post(struct world *w, bool recv, uint16_t control, uint32_t len)
{
	VIP_DESCRIPTOR *done;

	/* Takes descriptors first: posting a queued one again would be the consumer's error. */
	while (nvi_loop_send_done(w->loop, VICTIM, &done) > 0)
		;
	while (nvi_loop_recv_done(w->loop, VICTIM, &done) > 0)
		;
	if (w->next_desc >= DESCS)
		return;
	if (recv)
		nvi_loop_post_recv(w->loop, VICTIM, descriptor(w, 0, len), w->desc_handle);
	else
		nvi_loop_post_send(w->loop, VICTIM, descriptor(w, control, len), w->desc_handle);
}

static void step(struct world *w, struct reader *r)
{
	struct w_control *ctl = (struct w_control *)w->slice;

	switch (get(r, 1) % 12) {
	case 0 ... 3:
		write_slot(w, r);
		break;
	case 4:
		scribble(w, r);
		break;
	case 5:
		atomic_store(&ctl->credit, get(r, 1) % 16);
		break;
	case 6:
		atomic_store(&ctl->notify, get(r, 4));
		break;
	case 7:
		atomic_store(&ctl->error, (uint64_t)get(r, 4) << 32 | get(r, 4));
		break;
	case 8:
		post(w, true, 0, get(r, 2) % OFFERED);
		break;
	case 9:
		post(w, false, (uint16_t)(get(r, 1) & 0xf), get(r, 2) % OFFERED);
		break;
	default:
		nvi_loop_progress(w->loop, VICTIM);
		break;
	}
}

static bool guards_hold(const struct world *w)
{
	for (uint32_t i = 0; i < GUARD; i++)
		if (w->memory[i] != 0x5a || w->memory[GUARD + OFFERED + i] != 0x5a)
			return false;
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const VIP_RELIABILITY_LEVEL levels[] = { 1, 2, 4 };
	struct reader r = { data, size };
	struct nvi_loop_cfg cfg = { .slots = SLOTS,
				    .payload_bytes = PAYLOAD,
				    .max_transfer = 65536,
				    .level = levels[get(&r, 1) % 3] };
	struct world w = { 0 };

	setenv("VIADUCT_LOG_FILE", "/dev/null", 0);
	w.loop = nvi_loop_open(&cfg);
	if (w.loop == NULL)
		abort();
	w.slice = nvi_loop_inbound(w.loop, VICTIM, &w.slice_len);
	w.memory = aligned_alloc(64, OFFERED + 2 * GUARD);
	w.descs = aligned_alloc(64, DESCS * sizeof(*w.descs));
	memset(w.memory, 0x5a, OFFERED + 2 * GUARD);
	w.handle = nvi_loop_register(w.loop, w.memory + GUARD, OFFERED);
	w.desc_handle = nvi_loop_register(w.loop, w.descs, DESCS * sizeof(*w.descs));
	for (unsigned int steps = 0; r.left > 0 && steps < 4096; steps++)
		step(&w, &r);
	nvi_loop_progress(w.loop, VICTIM);
	if (!guards_hold(&w))
		abort();
	nvi_loop_deregister(w.loop, w.memory + GUARD, w.handle);
	nvi_loop_deregister(w.loop, w.descs, w.desc_handle);
	nvi_loop_close(w.loop);
	free(w.memory);
	free(w.descs);
	return 0;
}
