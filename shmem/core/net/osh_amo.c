/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Atomic operations.  Of near memory they are instructions of this processor, of far memory those of
 * a processor of the other host, on the same bytes: so all agree with each other.
 */
#include "osh_amo.h"
#include "osh_target.h"

/* Operates on an object that is mapped here; the old value goes to *fetch, unless that is NULL. */
static void amo_at(enum osh_amo op, size_t size, void *at, uint64_t value, uint64_t cond,
		   void *fetch)
{
	uint32_t old32;
	uint64_t old64;

	if (size == 4) {
		old32 = osh_amo_at32(op, at, (uint32_t)value, (uint32_t)cond);
		if (fetch != NULL)
			memcpy(fetch, &old32, sizeof(old32));
	} else {
		old64 = osh_amo_at64(op, at, value, cond);
		if (fetch != NULL)
			memcpy(fetch, &old64, sizeof(old64));
	}
}

void osh_amo_slow(const char *fn, struct osh_ctx *ctx, enum osh_amo op, size_t size, void *dest,
		  uint64_t value, uint64_t cond, void *fetch, int pe, bool nbi)
{
	struct osh_target t;
	void *at;

	if ((uintptr_t)dest % size != 0)
		osh_fatal("%s: the object at %p is not aligned to its %zu bytes", fn, dest, size);
	at = osh_target(fn, ctx, dest, size, osh_world_pe_checked(fn, ctx, pe), &t);
	if (at != NULL)
		amo_at(op, size, at, value, cond, fetch);
	else
		osh_far_amo(fn, ctx, &t, op, size, value, cond, fetch, nbi);
}
