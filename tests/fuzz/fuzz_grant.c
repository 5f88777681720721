/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages about direct stores from a peer's process that breaks the rules, between writes, sends and
 * changes of rights that keep them.  The input is a program of both.  Nothing may crash or leave a
 * descriptor open; memory that was not offered, or is no longer open, stays as it was.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fz_input.h"
#include "nvi_agent.h"
#include "u_base.h"
#include "w_ctl.h"
#include "w_grant.h"
#include "w_slot.h"

#define WRITER 0
#define OWNER 1
#define WINDOWS 3u
#define BYTES 8192u
#define DESCS 32u
#define DESC_BYTES 128u
#define STEPS 2000u
#define SLOTS 8u

struct window {
	uint8_t *data;
	VIP_MEM_HANDLE handle;
	bool open;
	/* a process may hold it without its owner's knowledge, or its owner receives there */
	bool betrayed;
};

struct world {
	struct nvi_loop *loop;
	struct nvi_agent *agent;
	struct fz_input *in;
	struct window window[WINDOWS];
	uint8_t *plain, *secret; /* open to the peer, and not */
	VIP_MEM_HANDLE plain_handle, secret_handle, desc_handle;
	uint8_t *descs;
	bool busy[DESCS];
};

static void make(struct world *w, struct window *x, bool open)
{
	*x = (struct window){ .open = open };
	x->data = nvi_agent_alloc(w->agent, BYTES, open, &x->handle);
	if (x->data == NULL)
		abort();
	memset(x->data, 0x33, BYTES);
}

static void take_done(struct world *w)
{
	VIP_DESCRIPTOR *d;

	for (int end = 0; end < 2; end++)
		while (nvi_loop_send_done(w->loop, end, &d) > 0 ||
		       nvi_loop_recv_done(w->loop, end, &d) > 0)
			w->busy[((uint8_t *)d - w->descs) / DESC_BYTES] = false;
}

static VIP_DESCRIPTOR *free_descriptor(struct world *w)
{
	take_done(w);
	for (uint32_t i = 0; i < DESCS; i++) {
		if (!w->busy[i]) {
			w->busy[i] = true;
			memset(w->descs + i * DESC_BYTES, 0, DESC_BYTES);
			return (VIP_DESCRIPTOR *)(void *)(w->descs + i * DESC_BYTES);
		}
	}
	return NULL;
}

static struct window *any_window(struct world *w)
{
	return &w->window[fz_pick(w->in, WINDOWS)];
}

static void aim(struct world *w, VIP_DESCRIPTOR *d)
{
	uint32_t how = fz_pick(w->in, 8);
	struct window *x = any_window(w);
	int32_t off = (int16_t)fz_get(w->in, 2);

	d->DS[0].Remote.Data.Address = x->data + off;
	d->DS[0].Remote.Handle = x->handle;
	if (how == 6) {
		d->DS[0].Remote.Data.Address = w->plain + off;
		d->DS[0].Remote.Handle = w->plain_handle;
	} else if (how == 7) {
		d->DS[0].Remote.Data.Address = w->secret + off;
		d->DS[0].Remote.Handle = w->secret_handle;
	}
}

static void post_write(struct world *w)
{
	VIP_DESCRIPTOR *d = free_descriptor(w);
	uint32_t segs, len;

	if (d == NULL || nvi_loop_state(w->loop, WRITER) != VIP_STATE_CONNECTED)
		return;
	aim(w, d);
	segs = fz_pick(w->in, 6);
	d->CS.Control = VIP_CONTROL_OP_RDMAWRITE;
	if (segs >= 3)
		d->CS.Control |= VIP_CONTROL_IMMEDIATE;
	segs = 1 + segs % 3;
	for (uint32_t i = 0; i < segs; i++) {
		VIP_DESCRIPTOR_SEGMENT *seg = &d->DS[1] + i;

		len = (uint32_t)fz_get(w->in, 2) % 3000;
		seg->Local.Data.Address = w->plain;
		seg->Local.Handle = w->plain_handle;
		seg->Local.Length = len;
		d->CS.Length += len;
	}
	d->CS.SegCount = (VIP_UINT16)(segs + 1);
	if (nvi_loop_post_send(w->loop, WRITER, d, w->desc_handle) != 0)
		abort();
}

/* Forges an advert that the owner's end never stored, or stored differently. */
static void forge_advert(struct world *w)
{
	struct window *x = any_window(w);
	uint32_t how = fz_pick(w->in, 8);
	struct w_control *ctl;
	struct w_advert *a;
	uint64_t len;

	ctl = (struct w_control *)(void *)nvi_loop_inbound(w->loop, WRITER, &len);
	a = &ctl->adverts[fz_pick(w->in, W_ADVERTS)];
	atomic_store(&a->addr, (uintptr_t)x->data + (uint64_t)(int16_t)fz_get(w->in, 2));
	atomic_store(&a->handle, how & 1 ? (uint32_t)fz_get(w->in, 4) : (uint32_t)x->handle);
	atomic_store(&a->length, how & 2 ? (uint32_t)fz_get(w->in, 4) : BYTES);
	atomic_store(&a->tag, w_advert_tag(fz_get(w->in, how & 4 ? 8 : 1)));
}

/* Posts a send or a receive of window memory, long enough to be placed. */
static void long_message(struct world *w, VIP_DESCRIPTOR *d, bool recv)
{
	struct window *x;

	d->DS[0].Local.Length = d->CS.Length = 4096 + (uint32_t)fz_get(w->in, 2) % 4096;
	if (!recv)
		return;
	x = any_window(w);
	x->betrayed = true;
	d->DS[0].Local.Data.Address = x->data;
	d->DS[0].Local.Handle = x->handle;
}

static void post_send(struct world *w)
{
	VIP_DESCRIPTOR *d = free_descriptor(w);
	uint32_t how = fz_pick(w->in, 8);
	bool recv = (how & 1) != 0;

	if (how >= 6)
		forge_advert(w);
	if (d == NULL || nvi_loop_state(w->loop, WRITER) != VIP_STATE_CONNECTED ||
	    nvi_loop_state(w->loop, OWNER) != VIP_STATE_CONNECTED)
		return;
	d->DS[0].Local.Data.Address = w->plain;
	d->DS[0].Local.Handle = w->plain_handle;
	d->DS[0].Local.Length = d->CS.Length = fz_pick(w->in, 200);
	d->CS.SegCount = 1;
	if (how & 2)
		long_message(w, d, recv);
	if (how & 4)
		d->CS.Control = VIP_CONTROL_IMMEDIATE;
	if (recv)
		nvi_loop_post_recv(w->loop, OWNER, d, w->desc_handle);
	else
		nvi_loop_post_send(w->loop, WRITER, d, w->desc_handle);
}

/* Forges an offer that the owner's end never made, in the request that it published last. */
static void forge_offer(struct world *w)
{
	struct window *x = any_window(w);
	uint32_t how = fz_pick(w->in, 8);
	struct w_offer offer = { .addr = (uintptr_t)x->data + (uint64_t)(int16_t)fz_get(w->in, 2),
				 .handle = (uint32_t)x->handle,
				 .consumed = fz_pick(w->in, 32) };
	VIPX_COUNTERS c;
	struct w_slot *slots;
	uint64_t len;

	if (how & 1)
		offer.handle = (uint32_t)fz_get(w->in, 4);
	if (how & 2)
		offer.addr = (uintptr_t)w->secret;
	if (how & 4)
		offer.handle = (uint32_t)w->secret_handle;
	nvi_loop_counters(w->loop, OWNER, &c);
	slots = (struct w_slot *)(void *)(nvi_loop_inbound(w->loop, WRITER, &len) + W_SLICE_FIFO);
	memcpy(slots[(c.SlotsSent - 1) % SLOTS].data + sizeof(struct w_rdma), &offer,
	       sizeof(offer));
}

/* The owner reads memory of the writer, which answers; mostly into a window. */
static void post_read(struct world *w)
{
	VIP_DESCRIPTOR *d = free_descriptor(w);
	struct window *x = any_window(w);
	uint32_t how = fz_pick(w->in, 8);

	if (d == NULL || nvi_loop_state(w->loop, OWNER) != VIP_STATE_CONNECTED)
		return;
	x->betrayed = true;
	d->CS.Control = VIP_CONTROL_OP_RDMAREAD;
	d->CS.SegCount = 2;
	d->CS.Length = (uint32_t)fz_get(w->in, 2) % (BYTES + 1);
	d->DS[0].Remote.Data.Address = w->plain;
	d->DS[0].Remote.Handle = w->plain_handle;
	d->DS[1].Local.Data.Address = x->data;
	d->DS[1].Local.Handle = x->handle;
	d->DS[1].Local.Length = d->CS.Length;
	if (how == 7) {
		d->DS[1].Local.Data.Address = w->plain;
		d->DS[1].Local.Handle = w->plain_handle;
	}
	nvi_loop_post_send(w->loop, OWNER, d, w->desc_handle);
	if (how & 4)
		forge_offer(w);
}

/* Delivers a message that no correct process would send, or that one sent a while ago. */
static void forge(struct world *w)
{
	static const uint32_t lengths[] = { sizeof(struct w_grant), 0, 1,
					    sizeof(struct w_grant) - 1, W_TELL_MAX };
	struct window *x = any_window(w);
	uint8_t body[W_TELL_MAX] = { 0 };
	int end = (int)fz_pick(w->in, 2), fd = -1;
	uint32_t how = fz_pick(w->in, 16);
	struct w_grant g = { .kind = fz_pick(w->in, 7),
			     .handle = x->handle,
			     .base = (uintptr_t)x->data,
			     .length = BYTES };

	if (how & 1)
		g.base = fz_get(w->in, 8);
	if (how & 2)
		g.length = fz_get(w->in, 8);
	if (how == 9)
		g.map = fz_get(w->in, 8);
	if ((how & 12) == 12)
		g.handle = (uint32_t)fz_get(w->in, 4);
	if (how & 4)
		fd = nvi_agent_fd(w->agent, x->data);
	else if (how & 8)
		fd = STDERR_FILENO;
	/* An end that gets a slice which was not given, or reports it gone, may store there at any time. */
	x->betrayed |= fd >= 0 || g.kind == W_GRANT_GONE;
	memcpy(body, &g, sizeof(g));
	nvi_agent_deliver(w->agent, end, body,
			  lengths[how == 15 ? fz_pick(w->in, U_ARRAY_SIZE(lengths)) : 0], fd);
}

static void change(struct world *w)
{
	struct window *x = any_window(w);

	x->open = fz_pick(w->in, 2) != 0;
	if (nvi_agent_open_memory(w->agent, x->data, x->handle, x->open) != 0)
		abort();
	if (!x->open)
		memset(x->data, 0x33, BYTES);
}

static void renew(struct world *w)
{
	struct window *x = any_window(w);

	nvi_agent_free(w->agent, x->data, x->handle);
	nvi_agent_step(w->agent);
	make(w, x, fz_pick(w->in, 4) != 0);
}

static void part(struct world *w)
{
	int end = (int)fz_pick(w->in, 2);

	if (fz_pick(w->in, 2))
		nvi_agent_disconnect(w->agent, end);
	else
		nvi_agent_lost(w->agent, end);
}

static bool all_are(const uint8_t *p, uint8_t value)
{
	for (uint32_t i = 0; i < BYTES; i++)
		if (p[i] != value)
			return false;
	return true;
}

static void check(const struct world *w)
{
	if (!all_are(w->secret, 0x77))
		abort();
	for (uint32_t i = 0; i < WINDOWS; i++)
		if (!w->window[i].open && !w->window[i].betrayed &&
		    !all_are(w->window[i].data, 0x33))
			abort();
	if (nvi_agent_given(w->agent) > 2 * WINDOWS)
		abort();
}

static void act(struct world *w)
{
	switch (fz_pick(w->in, 17)) {
	case 0 ... 3:
		post_write(w);
		break;
	case 4:
		post_send(w);
		break;
	case 5:
	case 6:
		nvi_agent_step(w->agent);
		break;
	case 7:
		nvi_loop_progress(w->loop, WRITER);
		break;
	case 8:
	case 9:
		nvi_loop_progress(w->loop, OWNER);
		break;
	case 10 ... 12:
		forge(w);
		break;
	case 13:
		change(w);
		break;
	case 14:
		if (fz_pick(w->in, 2))
			renew(w);
		else
			part(w);
		break;
	case 15:
		take_done(w);
		nvi_agent_step(w->agent);
		if (nvi_agent_reconnect(w->agent) != 0)
			abort();
		break;
	case 16:
		post_read(w);
		break;
	}
}

static uint8_t *fresh(size_t size, uint8_t value)
{
	uint8_t *p = aligned_alloc(64, size);

	if (p == NULL)
		abort();
	memset(p, value, size);
	return p;
}

static void set_up(struct world *w)
{
	static const VIP_RELIABILITY_LEVEL levels[] = { 1, 2, 4 };
	struct nvi_loop_cfg cfg = { .slots = SLOTS,
				    .payload_bytes = 4096,
				    .max_transfer = 65536,
				    .level = levels[fz_pick(w->in, 3)],
				    .port = fz_pick(w->in, 4) == 3 ? "emu+strict" : "emu" };

	w->loop = nvi_loop_open(&cfg);
	if (w->loop == NULL)
		abort();
	/* No end answers before the next step: an end that is late is disconnected at once. */
	w->agent = nvi_agent_start(w->loop, 0);
	w->plain = fresh(BYTES, 0x55);
	w->secret = fresh(BYTES, 0x77);
	w->descs = fresh(DESCS * DESC_BYTES, 0);
	w->plain_handle = nvi_loop_register(w->loop, w->plain, BYTES);
	w->desc_handle = nvi_loop_register(w->loop, w->descs, DESCS * DESC_BYTES);
	w->secret_handle = w->plain_handle ^ UINT32_C(1) << 30;
	for (uint32_t i = 0; i < WINDOWS; i++)
		make(w, &w->window[i], i != 2);
}

static void tear_down(struct world *w)
{
	nvi_agent_lost(w->agent, 0);
	nvi_agent_lost(w->agent, 1);
	for (uint32_t i = 0; i < WINDOWS; i++)
		nvi_agent_free(w->agent, w->window[i].data, w->window[i].handle);
	nvi_agent_step(w->agent);
	nvi_loop_deregister(w->loop, w->plain, w->plain_handle);
	nvi_loop_deregister(w->loop, w->descs, w->desc_handle);
	nvi_agent_stop(w->agent);
	nvi_loop_close(w->loop);
	free(w->plain);
	free(w->secret);
	free(w->descs);
}

/* The lowest free descriptor number: it shows a descriptor that was not closed. */
static int next_fd(void)
{
	int fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);

	close(fd);
	return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fz_input in = { data, size };
	struct world w = { .in = &in };
	int before;

	setenv("VIADUCT_LOG_FILE", "/dev/null", 0);
	before = next_fd();
	set_up(&w);
	for (uint32_t i = 0; in.left > 0 && i < STEPS; i++) {
		act(&w);
		check(&w);
		if (i % 32 == 31)
			nvi_agent_step(w.agent);
	}
	tear_down(&w);
	if (next_fd() != before)
		abort();
	return 0;
}
