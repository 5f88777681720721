/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Put and get.  Where the memory is mapped here, as that of PEs of this host is, they are inlined into the routines of
 * the specification: a check of PE and address, and the copy.  All else is left to the functions of osh_rma.c.
 */
#ifndef OSH_RMA_H
#define OSH_RMA_H

#include "osh_copy.h"
#include "osh_ctx.h"

/*
 * Puts n bytes. Maps near memory at its first access. An address or PE that is not valid ends the job; n = 0 does
 * nothing. `nbi`: the source may be in use until quiet.
 */
void osh_put_slow(const char *fn, struct osh_ctx *ctx, void *dest, const void *source, size_t n,
		  int pe, bool nbi);
/* As osh_put_slow(), but gets them. `nbi`: the destination may be written until quiet. */
void osh_get_slow(const char *fn, struct osh_ctx *ctx, void *dest, const void *source, size_t n,
		  int pe, bool nbi);

/*
 * Puts `blocks` blocks of `block` bytes each; the strides, in bytes, are from the start of one to that of the next, and
 * one that is less than a block ends the job. Returns when `source` may be changed; the bytes may arrive later.
 */
void osh_put_strided(const char *fn, struct osh_ctx *ctx, void *dest, const void *source,
		     ptrdiff_t dest_stride, ptrdiff_t source_stride, size_t block, size_t blocks,
		     int pe);
/* As osh_put_strided(), in the other direction; returns when the bytes are in `dest`. */
void osh_get_strided(const char *fn, struct osh_ctx *ctx, void *dest, const void *source,
		     ptrdiff_t dest_stride, ptrdiff_t source_stride, size_t block, size_t blocks,
		     int pe);

/* Where n bytes of PE `pe` of the context's team are mapped here, or NULL: as osh_near(). */
static inline void *osh_reach(struct osh_ctx *ctx, const void *addr, size_t n, int pe)
{
	return osh_near(addr, n, osh_world_pe(ctx, pe));
}

/* Returns when `source` may be changed; the bytes may arrive later. */
static inline void osh_put(const char *fn, struct osh_ctx *ctx, void *dest, const void *source,
			   size_t n, int pe)
{
	void *at = osh_reach(ctx, dest, n, pe);

	if (osh_likely(at != NULL))
		osh_copy(at, source, n);
	else
		osh_put_slow(fn, ctx, dest, source, n, pe, false);
}

/* As osh_put(), but `source` may be in use until quiet. */
static inline void osh_put_nbi(const char *fn, struct osh_ctx *ctx, void *dest, const void *source,
			       size_t n, int pe)
{
	void *at = osh_reach(ctx, dest, n, pe);

	if (osh_likely(at != NULL))
		osh_copy(at, source, n);
	else
		osh_put_slow(fn, ctx, dest, source, n, pe, true);
}

/* Returns when the bytes are in `dest`. */
static inline void osh_get(const char *fn, struct osh_ctx *ctx, void *dest, const void *source,
			   size_t n, int pe)
{
	const void *at = osh_reach(ctx, source, n, pe);

	if (osh_likely(at != NULL))
		osh_copy(dest, at, n);
	else
		osh_get_slow(fn, ctx, dest, source, n, pe, false);
}

/* As osh_get(), but the bytes may be in `dest` as late as at quiet. */
static inline void osh_get_nbi(const char *fn, struct osh_ctx *ctx, void *dest, const void *source,
			       size_t n, int pe)
{
	const void *at = osh_reach(ctx, source, n, pe);

	if (osh_likely(at != NULL))
		osh_copy(dest, at, n);
	else
		osh_get_slow(fn, ctx, dest, source, n, pe, true);
}

#endif
