/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An endpoint has a ring of descriptors, each with a buffer, in one chunk of registered memory.  A VI
 * completes its descriptors in their order, so two counters say what is under way.
 *
 * Memory that an operation reads or writes here must be registered.  The segments are; of other
 * memory, few bytes go through the buffer, and more are registered for the call, which then waits.
 *
 * Completions are not polled while fewer than half the ring is under way: on an adapter each poll costs a read across
 * the link.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "osh_conn.h"
#include "osh_far.h"
#include "osh_wait.h"

#define RING 32u	/* operations of an endpoint under way */
#define BOUNCE 2048u	/* bytes of the buffer of each */
#define DESC_BYTES 128u /* room for a descriptor of three segments */
#define CHUNK (8u << 20)
#define PATIENCE_S 30 /* for a connection that lasts */
#define SLAB_BYTES (RING * (DESC_BYTES + BOUNCE))

/* What is to be done when the operation in this place of the ring is complete. */
struct osh_after {
	void *to; /* bytes are copied from the buffer to here, or NULL */
	uint32_t n;
};

struct osh_ep {
	VIP_VI_HANDLE vi;
	int pe;
	struct osh_ep *next;
	bool dirty; /* used since the last quiet */
	uint32_t posted, done;
	struct osh_after after[RING];
	uint8_t *slab; /* descriptors, then buffers */
	VIP_MEM_HANDLE handle;
};

/* ---- endpoints ------------------------------------------------------------------------------- */

/* The descriptor of operation number n. */
static inline VIP_DESCRIPTOR *desc_at(const struct osh_ep *ep, uint32_t n)
{
	return (VIP_DESCRIPTOR *)(ep->slab + (n % RING) * DESC_BYTES);
}

/* The buffer of operation number n. */
static inline uint8_t *bounce_at(const struct osh_ep *ep, uint32_t n)
{
	return ep->slab + RING * DESC_BYTES + (n % RING) * BOUNCE;
}

/*
 * Fetches a word of the peer's heap: true when its process has the connection, too, for which it waits any time; false:
 * the connection has ended. Uses place 0 of the ring, so nothing else is under way.
 */
static OSH_COLD bool ep_answers(struct osh_ep *ep)
{
	const struct osh_remote *heap = &osh_pe.peers[ep->pe].seg[OSH_HEAP];
	VIPX_ATOMIC_DESCRIPTOR *desc = (VIPX_ATOMIC_DESCRIPTOR *)desc_at(ep, 0);
	VIP_DESCRIPTOR *done = NULL;
	VIP_RETURN rc;

	*desc = (VIPX_ATOMIC_DESCRIPTOR){
		.CS = { .Control = VIPX_CONTROL_OP_ATOMIC,
			.SegCount = 3,
			.ImmediateData = VIPX_ATOMIC_FETCH,
			.Length = sizeof(uint64_t) },
		.Remote = { .Data.AddressBits = heap->base, .Handle = heap->handle },
		.Result = { .Data.AddressBits = (uintptr_t)bounce_at(ep, 0),
			    .Handle = ep->handle,
			    .Length = sizeof(uint64_t) },
	};
	if (VipPostSend(ep->vi, (VIP_DESCRIPTOR *)desc, ep->handle) != VIP_SUCCESS)
		return false;
	do {
		rc = VipSendWait(ep->vi, 1000, &done);
	} while (rc == VIP_TIMEOUT);
	return rc == VIP_SUCCESS && (done->CS.Status & VIP_STATUS_ERROR_MASK) == 0;
}

/*
 * Connects an endpoint, again until an operation succeeds; after PATIENCE_S a failure ends the job. One end has a
 * connection before the other: where a link is lost between, the other end never has it. So the first operation is one
 * that may be repeated over another connection.
 */
static OSH_COLD void ep_connect(const char *fn, struct osh_ep *ep)
{
	time_t end = time(NULL) + PATIENCE_S;

	for (;;) {
		ep->vi = osh_conn_open(fn, ep->pe);
		osh_wait_show(fn, NULL, ep->pe);
		if (ep_answers(ep))
			break;
		if (time(NULL) > end) {
			osh_conn_check_agent();
			osh_fatal_lost("%s: connections to PE %d end as soon as they are made", fn,
				       ep->pe);
		}
		osh_conn_close(ep->vi);
	}
	osh_wait_shown_end();
}

/* Makes and connects the endpoint for a PE; a failure ends the job. The caller has the lock of the context. */
static OSH_COLD struct osh_ep *ep_create(const char *fn, struct osh_ctx *ctx, int pe)
{
	struct osh_ep *ep = calloc(1, sizeof(*ep));
	VIP_RETURN rc;

	if (ctx->endpoints == NULL)
		ctx->endpoints = calloc((size_t)osh_pe.n, sizeof(struct osh_ep *));
	if (ep == NULL || ctx->endpoints == NULL)
		osh_fatal("%s: out of memory", fn);
	ep->slab =
		mmap(NULL, SLAB_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (ep->slab == MAP_FAILED)
		osh_fatal("%s: out of memory", fn);
	rc = VipRegisterMem(osh_pe.nic, ep->slab, SLAB_BYTES, NULL, &ep->handle);
	if (rc != VIP_SUCCESS)
		osh_fatal("%s: memory cannot be registered (%s)", fn, VipxErrorString(rc));
	ep->pe = pe;
	ep_connect(fn, ep);
	ep->next = ctx->used;
	__atomic_store_n(&ctx->used, ep, __ATOMIC_RELAXED);
	ctx->endpoints[pe] = ep;
	return ep;
}

/* The endpoint for a PE, made at the first use. The caller has the lock of the context. */
static inline struct osh_ep *ep_get(const char *fn, struct osh_ctx *ctx, int pe)
{
	if (osh_likely(ctx->endpoints != NULL && ctx->endpoints[pe] != NULL))
		return ctx->endpoints[pe];
	return ep_create(fn, ctx, pe);
}

/* ---- completion ------------------------------------------------------------------------------ */

/* Ends the job: the operation of `desc` failed, or (NULL) the connection is lost. */
static _Noreturn OSH_COLD void lost(const char *fn, const struct osh_ep *ep,
				    const VIP_DESCRIPTOR *desc)
{
	char text[192];

	VipxStatusString(desc == NULL ? 0 : desc->CS.Status, text, sizeof(text));
	osh_conn_check_agent();
	osh_fatal_lost("%s: an operation on PE %d failed (%s): it has ended or cannot be reached",
		       fn, ep->pe, desc == NULL ? "connection lost" : text);
}

/* Counts the oldest operation as complete, and hands out what it fetched; its failure ends the job. */
static inline void reaped(const char *fn, struct osh_ep *ep, const VIP_DESCRIPTOR *desc)
{
	struct osh_after *a = &ep->after[ep->done % RING];

	if (osh_unlikely(desc->CS.Status & VIP_STATUS_ERROR_MASK))
		lost(fn, ep, desc);
	if (a->to != NULL) {
		memcpy(a->to, bounce_at(ep, ep->done), a->n);
		a->to = NULL;
	}
	ep->done++;
}

/* As reap(), but sleeps. */
static OSH_COLD void reap_slow(const char *fn, struct osh_ep *ep, uint32_t end)
{
	VIP_DESCRIPTOR *desc = NULL;
	VIP_RETURN rc;

	osh_wait_show(fn, NULL, ep->pe);
	while ((int32_t)(end - ep->done) > 0) {
		rc = VipSendWait(ep->vi, 1000, &desc);
		if (rc == VIP_TIMEOUT)
			continue;
		if (rc != VIP_SUCCESS)
			lost(fn, ep, rc == VIP_DESCRIPTOR_ERROR ? desc : NULL);
		reaped(fn, ep, desc);
	}
	osh_wait_shown_end();
}

/* Waits until the operations before number `end` are complete. */
static inline void reap(const char *fn, struct osh_ep *ep, uint32_t end)
{
	VIP_DESCRIPTOR *desc = NULL;

	while ((int32_t)(end - ep->done) > 0) {
		if (osh_unlikely(VipSendDone(ep->vi, &desc) != VIP_SUCCESS)) {
			reap_slow(fn, ep, end);
			return;
		}
		reaped(fn, ep, desc);
	}
}

/* ---- posting --------------------------------------------------------------------------------- */

/* Waits for a free place in the ring. */
static inline void ring_room(const char *fn, struct osh_ep *ep)
{
	if (osh_unlikely(ep->posted - ep->done == RING))
		reap(fn, ep, ep->done + RING / 4);
}

/* The next descriptor, after waiting for a place in the ring. */
static inline VIP_DESCRIPTOR *desc_next(const char *fn, struct osh_ep *ep)
{
	ring_room(fn, ep);
	return desc_at(ep, ep->posted);
}

/* Posts the next operation, whose descriptor is at ep->posted, where the ring has room; a failure ends the job. */
static inline void post(const char *fn, struct osh_ep *ep, VIP_DESCRIPTOR *desc)
{
	VIP_RETURN rc = VipPostSend(ep->vi, desc, ep->handle);

	if (osh_unlikely(rc != VIP_SUCCESS)) {
		osh_conn_check_agent();
		osh_fatal_lost("%s: nothing can be sent to PE %d (%s)", fn, ep->pe,
			       VipxErrorString(rc));
	}
	ep->posted++;
	ep->dirty = true;
}

/* Fills a descriptor for an RDMA write or read (`op`) between n bytes here and the target. */
static inline void fill(VIP_DESCRIPTOR *desc, int op, const struct osh_target *t, const void *local,
			VIP_MEM_HANDLE handle, size_t n)
{
	desc->CS = (VIP_CONTROL_SEGMENT){ .Control = (VIP_UINT16)op,
					  .SegCount = 2,
					  .Length = (VIP_UINT32)n };
	desc->DS[0].Remote =
		(VIP_ADDRESS_SEGMENT){ .Data.AddressBits = t->remote, .Handle = t->handle };
	desc->DS[1].Local = (VIP_DATA_SEGMENT){ .Data.AddressBits = (uintptr_t)local,
						.Handle = handle,
						.Length = (VIP_UINT32)n };
}

/* A local memory and what is to be done with it: at most CHUNK bytes of one operation. */
struct move {
	const struct osh_target *target;
	void *local;
	size_t n;
	bool write; /* from `local`, else to it */
	bool nbi;
};

/* Posts an RDMA write or read of m->n bytes from or to `local`, which replaces m->local; the ring has room. */
static inline void post_move(const char *fn, struct osh_ep *ep, const struct move *m,
			     const void *local, VIP_MEM_HANDLE handle)
{
	VIP_DESCRIPTOR *desc = desc_at(ep, ep->posted);
	int op = m->write ? VIP_CONTROL_OP_RDMAWRITE : VIP_CONTROL_OP_RDMAREAD;

	fill(desc, op, m->target, local, handle, m->n);
	post(fn, ep, desc);
}

/*
 * Moves at most BOUNCE bytes through the buffer of the descriptor. A put is complete here at once, as its source was
 * copied; a get is at the return, unless it is nbi.
 */
static inline void move_by_bounce(const char *fn, struct osh_ep *ep, const struct move *m)
{
	uint8_t *bounce = bounce_at(ep, ep->posted);
	VIP_DESCRIPTOR *desc;

	if (m->write)
		memcpy(bounce, m->local, m->n);
	else
		ep->after[ep->posted % RING] = (struct osh_after){ m->local, (uint32_t)m->n };
	post_move(fn, ep, m, bounce, ep->handle);
	if (!m->write && !m->nbi)
		reap(fn, ep, ep->posted);
	else if (m->write && ep->posted - ep->done > RING / 2)
		while (ep->posted != ep->done && VipSendDone(ep->vi, &desc) == VIP_SUCCESS)
			reaped(fn, ep, desc);
}

/*
 * Registers the memory for this call, and waits until the operation is complete here. The call takes far longer than
 * the copy of its argument, by which all others keep theirs in registers.
 */
static OSH_COLD void move_by_registering(const char *fn, struct osh_ep *ep, struct move m)
{
	VIP_MEM_HANDLE handle;
	VIP_RETURN rc = VipRegisterMem(osh_pe.nic, m.local, m.n, NULL, &handle);

	if (rc != VIP_SUCCESS)
		osh_fatal(
			"%s: %zu byte%s at %p cannot be registered (%s): is this memory mapped%s?",
			fn, m.n, m.n == 1 ? "" : "s", m.local, VipxErrorString(rc),
			m.write ? "" : " and writable");
	post_move(fn, ep, &m, m.local, handle);
	reap(fn, ep, ep->posted);
	VipDeregisterMem(osh_pe.nic, m.local, handle);
}

/*
 * Moves at most CHUNK bytes, from or to segments, or through a buffer, or by registering other memory. Returns when
 * that memory here is free again, unless m->nbi, which registered memory ignores.
 */
static inline void move(const char *fn, struct osh_ep *ep, const struct move *m)
{
	size_t offset;
	int s = osh_segment_of(m->local, m->n, &offset);

	ring_room(fn, ep);
	if (s != OSH_SEGMENTS) {
		post_move(fn, ep, m, m->local, osh_pe.seg[s].handle);
		if (!m->nbi)
			reap(fn, ep, ep->posted);
	} else if (m->n <= BOUNCE) {
		move_by_bounce(fn, ep, m);
	} else {
		move_by_registering(fn, ep, *m);
	}
}

/* Moves n bytes to far memory (`write`) or from it; takes the lock of the context. */
static void move_all(const char *fn, struct osh_ctx *ctx, struct osh_target t, void *local,
		     size_t n, bool write, bool nbi)
{
	struct osh_ep *ep;

	osh_check_local(fn, local);
	osh_ctx_lock(ctx);
	ep = ep_get(fn, ctx, t.pe);
	while (n > 0) {
		size_t chunk = osh_min(n, CHUNK);

		move(fn, ep, &(struct move){ &t, local, chunk, write, nbi });
		local = (uint8_t *)local + chunk;
		t.remote += chunk;
		n -= chunk;
	}
	osh_ctx_unlock(ctx);
}

void osh_far_put(const char *fn, struct osh_ctx *ctx, const struct osh_target *t,
		 const void *source, size_t n, bool nbi)
{
	move_all(fn, ctx, *t, (void *)(uintptr_t)source, n, true, nbi);
}

void osh_far_get(const char *fn, struct osh_ctx *ctx, const struct osh_target *t, void *dest,
		 size_t n, bool nbi)
{
	move_all(fn, ctx, *t, dest, n, false, nbi);
}

/* ---- atomic operations ----------------------------------------------------------------------- */

/* Returns the atomic operation of a VI that does `op`; a set is a swap whose result nobody takes. */
static VIP_UINT32 vi_op(enum osh_amo op)
{
	static const VIP_UINT32 ops[] = {
		[OSH_AMO_FETCH] = VIPX_ATOMIC_FETCH,
		[OSH_AMO_SET] = VIPX_ATOMIC_SWAP,
		[OSH_AMO_SWAP] = VIPX_ATOMIC_SWAP,
		[OSH_AMO_COMPARE_SWAP] = VIPX_ATOMIC_COMPARE_SWAP,
		[OSH_AMO_ADD] = VIPX_ATOMIC_ADD,
		[OSH_AMO_AND] = VIPX_ATOMIC_AND,
		[OSH_AMO_OR] = VIPX_ATOMIC_OR,
		[OSH_AMO_XOR] = VIPX_ATOMIC_XOR,
	};

	return ops[op];
}

void osh_far_amo(const char *fn, struct osh_ctx *ctx, const struct osh_target *t, enum osh_amo op,
		 size_t size, uint64_t value, uint64_t cond, void *fetch, bool nbi)
{
	VIPX_ATOMIC_DESCRIPTOR *desc;
	struct osh_ep *ep;

	osh_ctx_lock(ctx);
	ep = ep_get(fn, ctx, t->pe);
	desc = (VIPX_ATOMIC_DESCRIPTOR *)desc_next(fn, ep);
	desc->CS = (VIP_CONTROL_SEGMENT){ .Control = VIPX_CONTROL_OP_ATOMIC,
					  .SegCount = fetch == NULL ? 2 : 3,
					  .ImmediateData = vi_op(op),
					  .Length = (VIP_UINT32)size };
	desc->Remote = (VIP_ADDRESS_SEGMENT){ .Data.AddressBits = t->remote, .Handle = t->handle };
	desc->Atomic = (VIPX_ATOMIC_SEGMENT){ .Operand = value, .Compare = cond };
	if (fetch != NULL) {
		uint8_t *bounce = bounce_at(ep, ep->posted);

		desc->Result = (VIP_DATA_SEGMENT){ .Data.AddressBits = (uintptr_t)bounce,
						   .Handle = ep->handle,
						   .Length = (VIP_UINT32)size };
		ep->after[ep->posted % RING] = (struct osh_after){ fetch, (uint32_t)size };
	}
	post(fn, ep, (VIP_DESCRIPTOR *)desc);
	if (!nbi)
		reap(fn, ep, ep->posted);
	osh_ctx_unlock(ctx);
}

/* ---- completing all -------------------------------------------------------------------------- */

/* Completes all operations of an endpoint, at the other PE as well. False: none was posted since the last time. */
static bool quiet_one(const char *fn, struct osh_ep *ep)
{
	VIP_RETURN rc;

	if (!ep->dirty)
		return false;
	reap(fn, ep, ep->posted);
	rc = VipxFlush(ep->vi, 1000);
	if (osh_unlikely(rc == VIP_TIMEOUT)) {
		osh_wait_show(fn, NULL, ep->pe);
		while ((rc = VipxFlush(ep->vi, 1000)) == VIP_TIMEOUT)
			;
		osh_wait_shown_end();
	}
	if (rc != VIP_SUCCESS)
		lost(fn, ep, NULL);
	ep->dirty = false;
	return true;
}

bool osh_far_quiet(const char *fn, struct osh_ctx *ctx, int pe)
{
	bool flushed = false;

	osh_ctx_lock(ctx);
	for (struct osh_ep *ep = ctx->used; ep != NULL; ep = ep->next) {
		if (pe < 0 || ep->pe == pe)
			flushed |= quiet_one(fn, ep);
	}
	osh_ctx_unlock(ctx);
	return flushed;
}

void osh_far_gets_done(const char *fn, struct osh_ctx *ctx, int pe)
{
	struct osh_ep *ep;

	osh_ctx_lock(ctx);
	ep = ep_get(fn, ctx, pe);
	reap(fn, ep, ep->posted);
	osh_ctx_unlock(ctx);
}

void osh_far_fini(struct osh_ctx *ctx)
{
	struct osh_ep *ep;

	if (!osh_far_quiet("shmem_quiet", ctx, -1))
		atomic_thread_fence(memory_order_seq_cst);
	while ((ep = ctx->used) != NULL) {
		ctx->used = ep->next;
		osh_conn_close(ep->vi);
		VipDeregisterMem(osh_pe.nic, ep->slab, ep->handle);
		munmap(ep->slab, SLAB_BYTES);
		free(ep);
	}
	osh_ctx_fini(ctx);
}
