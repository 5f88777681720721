/* SPDX-License-Identifier: BSD-2-Clause */
#include <pthread.h>

#include "osh_blocks.h"
#include "osh_env.h"
#include "osh_globals.h"
#include "osh_map.h"
#include "osh_target.h"

_Noreturn OSH_COLD void osh_bad_access(const char *fn, const void *addr, size_t n, int pe)
{
	size_t offset;

	if (osh_pe.peers == NULL)
		osh_not_in_job(fn);
	if (pe < 0 || pe >= osh_pe.n)
		osh_fatal("%s: there is no PE %d; the PEs are 0 to %d", fn, pe, osh_pe.n - 1);
	if (n == SIZE_MAX)
		osh_fatal("%s: more bytes than there can be, at %p, for PE %d", fn, addr, pe);
	if (osh_is_data(osh_segment_of(addr, n, &offset)) && !osh_pe.peers[pe].same_program)
		osh_fatal(
			"%s: the variable at %p is not symmetric, as PE %d runs another program, or has "
			"mapped other memory over variables: allocate it in the symmetric heap",
			fn, addr, pe);
	if (osh_globals_have(addr))
		osh_fatal(
			"%s: %zu %s at %p, for PE %d, %s not symmetric: the program has protected "
			"that part of its variables, or mapped other memory over it",
			fn, n, n == 1 ? "byte" : "bytes", addr, pe, n == 1 ? "is" : "are");
	osh_fatal(
		"%s: %zu %s at %p, for PE %d, %s not symmetric: expected an address in the symmetric "
		"heap or a global or static variable of the executable",
		fn, n, n == 1 ? "byte" : "bytes", addr, pe, n == 1 ? "is" : "are");
}

int osh_world_pe_checked(const char *fn, const struct osh_ctx *ctx, int pe)
{
	int n = ctx->team_n > 0 ? ctx->team_n : osh_pe.n;

	if (ctx == &osh_ctx_invalid)
		osh_fatal("%s: the context is SHMEM_CTX_INVALID", fn);
	if (osh_pe.peers != NULL && (pe < 0 || pe >= n))
		osh_fatal("%s: there is no PE %d; the PEs%s are 0 to %d", fn, pe,
			  ctx->team_n > 0 ? " of the context's team" : "", n - 1);
	return osh_world_pe(ctx, pe);
}

/*
 * Where a far PE has the extent s, in its process: asked for once, as its heap says it.  All PEs have the extent, and
 * have said where, before any of them can give an address in it to the program.  The operation that wants to know it is
 * one of this context, which has a connection to the PE, or is about to make one.
 */
static const struct osh_remote *extent_remote(const char *fn, struct osh_ctx *ctx, int pe, int s)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	struct osh_peer_extent *x = osh_extent_of(pe, s);
	const struct osh_remote *heap = &osh_pe.peers[pe].seg[OSH_HEAP];
	size_t at = osh_pe.extents_at + offsetof(struct osh_extent_table, at) +
		    (size_t)(s - OSH_EXTENT) * sizeof(struct osh_remote);
	struct osh_target t = { pe, heap->base + at, heap->handle };

	/* R: pairs with the store below. */
	if (osh_likely(atomic_load_explicit(&x->known, memory_order_acquire)))
		return &x->seg;
	pthread_mutex_lock(&lock);
	if (!atomic_load_explicit(&x->known, memory_order_relaxed)) {
		osh_far_get(fn, ctx, &t, &x->seg, sizeof(x->seg), false);
		/* A: `seg` before it. */
		atomic_store_explicit(&x->known, 1, memory_order_release);
	}
	pthread_mutex_unlock(&lock);
	return &x->seg;
}

void *osh_target(const char *fn, struct osh_ctx *ctx, const void *addr, size_t n, int pe,
		 struct osh_target *t)
{
	const struct osh_remote *remote;
	const struct osh_peer *p;
	uint8_t *base;
	size_t offset;
	int s;

	if (osh_pe.peers == NULL || pe < 0 || pe >= osh_pe.n)
		osh_bad_access(fn, addr, n, pe);
	if (osh_extents() > 0) {
		base = osh_extent_near(addr, n, pe);
		if (base != NULL)
			return base;
	}
	s = osh_segment_of(addr, n, &offset);
	p = &osh_pe.peers[pe];
	if (s == OSH_SEGMENTS || (osh_is_data(s) && !p->same_program))
		osh_bad_access(fn, addr, n, pe);
	if (osh_env.debug && !osh_is_data(s) &&
	    (s != OSH_HEAP || offset >= osh_pe.internal_bytes) && !osh_blocks_have(addr, n))
		osh_fatal(
			"%s: %zu %s at %p, for PE %d, %s not in an allocated block of the symmetric heap: "
			"freed, or past its end",
			fn, n, n == 1 ? "byte" : "bytes", addr, pe, n == 1 ? "is" : "are");
	base = osh_map_segment(fn, pe, s);
	if (base != NULL)
		return base + offset;
	remote = s < OSH_EXTENT ? &p->seg[s] : extent_remote(fn, ctx, pe, s);
	*t = (struct osh_target){ pe, remote->base + offset, remote->handle };
	return NULL;
}
