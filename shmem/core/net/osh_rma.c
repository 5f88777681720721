/* SPDX-License-Identifier: BSD-2-Clause */
/* Put and get: by the processor where the memory is mapped, else by the endpoints of the context. */
#include <string.h>

#include "osh_rma.h"
#include "osh_target.h"

void osh_put_slow(const char *fn, struct osh_ctx *ctx, void *dest, const void *source, size_t n,
		  int pe, bool nbi)
{
	struct osh_target t;
	void *at;

	if (n == 0)
		return;
	at = osh_target(fn, ctx, dest, n, osh_world_pe_checked(fn, ctx, pe), &t);
	if (at != NULL)
		osh_copy(at, source, n);
	else
		osh_far_put(fn, ctx, &t, source, n, nbi);
}

void osh_get_slow(const char *fn, struct osh_ctx *ctx, void *dest, const void *source, size_t n,
		  int pe, bool nbi)
{
	struct osh_target t;
	const void *at;

	if (n == 0)
		return;
	at = osh_target(fn, ctx, source, n, osh_world_pe_checked(fn, ctx, pe), &t);
	if (at != NULL)
		osh_copy(dest, at, n);
	else
		osh_far_get(fn, ctx, &t, dest, n, nbi);
}

/* ---- strided --------------------------------------------------------------------------------- */

/* Copies blocks whose strides differ; a constant block length makes the loop one of plain moves. */
static inline void copy_blocks(uint8_t *to, const uint8_t *from, ptrdiff_t to_stride,
			       ptrdiff_t from_stride, size_t block, size_t blocks)
{
	for (; blocks > 0; blocks--) {
		memcpy(to, from, block);
		to += to_stride;
		from += from_stride;
	}
}

/* As copy_blocks(), with a loop of its own for each usual block length. */
static void copy_strided(void *to, const void *from, ptrdiff_t to_stride, ptrdiff_t from_stride,
			 size_t block, size_t blocks)
{
	switch (block) {
	case 1:
		copy_blocks(to, from, to_stride, from_stride, 1, blocks);
		break;
	case 2:
		copy_blocks(to, from, to_stride, from_stride, 2, blocks);
		break;
	case 4:
		copy_blocks(to, from, to_stride, from_stride, 4, blocks);
		break;
	case 8:
		copy_blocks(to, from, to_stride, from_stride, 8, blocks);
		break;
	case 16:
		copy_blocks(to, from, to_stride, from_stride, 16, blocks);
		break;
	default:
		copy_blocks(to, from, to_stride, from_stride, block, blocks);
	}
}

/*
 * Bytes from the first to the last that the blocks, one or more, touch; a stride less than a block, or too many bytes,
 * end the job.
 */
static size_t extent(const char *fn, ptrdiff_t stride, size_t block, size_t blocks)
{
	size_t span;

	if (stride < 0 || (blocks > 1 && (size_t)stride < block))
		osh_fatal("%s: a stride is less than the length of a block", fn);
	span = osh_plus(osh_times((size_t)stride, blocks - 1), block);
	if (span == SIZE_MAX)
		osh_fatal("%s: %zu block%s at a stride of %td bytes: more than memory can have", fn,
			  blocks, blocks == 1 ? "" : "s", stride);
	return span;
}

void osh_put_strided(const char *fn, struct osh_ctx *ctx, void *dest, const void *source,
		     ptrdiff_t dest_stride, ptrdiff_t source_stride, size_t block, size_t blocks,
		     int pe)
{
	const uint8_t *from = source;
	struct osh_target t;
	void *at;

	if (block == 0 || blocks == 0)
		return;
	extent(fn, source_stride, block, blocks);
	at = osh_target(fn, ctx, dest, extent(fn, dest_stride, block, blocks),
			osh_world_pe_checked(fn, ctx, pe), &t);
	if (at != NULL) {
		copy_strided(at, source, dest_stride, source_stride, block, blocks);
		return;
	}
	for (; blocks > 0; blocks--) {
		osh_far_put(fn, ctx, &t, from, block, false);
		from += source_stride;
		t.remote += (uint64_t)dest_stride;
	}
}

void osh_get_strided(const char *fn, struct osh_ctx *ctx, void *dest, const void *source,
		     ptrdiff_t dest_stride, ptrdiff_t source_stride, size_t block, size_t blocks,
		     int pe)
{
	struct osh_target t;
	uint8_t *to = dest;
	const void *at;
	int world;

	if (block == 0 || blocks == 0)
		return;
	extent(fn, dest_stride, block, blocks);
	at = osh_target(fn, ctx, source, extent(fn, source_stride, block, blocks),
			osh_world_pe_checked(fn, ctx, pe), &t);
	if (at != NULL) {
		copy_strided(dest, at, dest_stride, source_stride, block, blocks);
		return;
	}
	world = t.pe;
	for (; blocks > 0; blocks--) {
		osh_far_get(fn, ctx, &t, to, block, true);
		to += dest_stride;
		t.remote += (uint64_t)source_stride;
	}
	osh_far_gets_done(fn, ctx, world);
}
