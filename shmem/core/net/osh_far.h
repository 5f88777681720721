/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operations on the memory of far PEs, by the endpoints of a context.  `remote` and `handle` name the
 * memory in its process.  All lock the context.  A failure ends the job: the other PE has died or cannot
 * be reached.
 */
#ifndef OSH_FAR_H
#define OSH_FAR_H

#include "osh_ctx.h"

enum osh_amo { /* of objects of 4 and 8 bytes */
	       OSH_AMO_FETCH,
	       OSH_AMO_SET,
	       OSH_AMO_SWAP,
	       OSH_AMO_COMPARE_SWAP,
	       OSH_AMO_ADD,
	       OSH_AMO_AND,
	       OSH_AMO_OR,
	       OSH_AMO_XOR,
};

struct osh_target {
	int pe;
	uint64_t remote;
	VIP_MEM_HANDLE handle;
};

/*
 * Writes n bytes to far memory; they may arrive after the return. `nbi`: the source may still be read until
 * osh_far_quiet(), else it may be changed at the return. A `source` of NULL ends the job, also for n = 0.
 */
void osh_far_put(const char *fn, struct osh_ctx *ctx, const struct osh_target *t,
		 const void *source, size_t n, bool nbi);
/* Reads n bytes of far memory. `nbi`: the destination may still be written until osh_far_quiet(). */
void osh_far_get(const char *fn, struct osh_ctx *ctx, const struct osh_target *t, void *dest,
		 size_t n, bool nbi);

/*
 * Performs an operation on a far object of `size` bytes, 4 or 8; the old value goes to *fetch, unless that is NULL:
 * at once, or (nbi) at osh_far_quiet(), before which it may not be executed.
 */
void osh_far_amo(const char *fn, struct osh_ctx *ctx, const struct osh_target *t, enum osh_amo op,
		 size_t size, uint64_t value, uint64_t cond, void *fetch, bool nbi);

/*
 * Completes all operations, of one PE of the world or (-1) of all.  True: there were some, and VipxFlush() was called,
 * which completes stores of this thread to near memory as well; false: none since the last time, and no fence.
 */
bool osh_far_quiet(const char *fn, struct osh_ctx *ctx, int pe);

/*
 * Waits until the operations so far on one PE of the world have read or written what they use here: source,
 * destination, old value.
 */
void osh_far_gets_done(const char *fn, struct osh_ctx *ctx, int pe);
/* Completes what is under way on a context, and ends it with its connections; does not free the structure. */
void osh_far_fini(struct osh_ctx *ctx);

#endif
