/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Atomic operations and signals, inlined as put and get are.
 */
#ifndef OSH_AMO_H
#define OSH_AMO_H

#include "osh_far.h"
#include "osh_rma.h"

/*
 * On an object of `size` bytes, 4 or 8, near or far; one that is not valid ends the job. The old value goes to
 * *fetch, unless that is NULL: at the return, or (nbi) at the next quiet. With nbi it may return before the operation
 * is executed.
 */
void osh_amo_slow(const char *fn, struct osh_ctx *ctx, enum osh_amo op, size_t size, void *dest,
		  uint64_t value, uint64_t cond, void *fetch, int pe, bool nbi);

/* Operates on memory that is mapped, and returns the old value, or 0 for OSH_AMO_SET. */
#define OSH_DEFINE_AMO_AT(bits)                                                                    \
	static inline uint##bits##_t osh_amo_at##bits(enum osh_amo op, void *dest,                 \
						      uint##bits##_t value, uint##bits##_t cond)   \
	{                                                                                          \
		_Atomic uint##bits##_t *at = dest;                                                 \
                                                                                                   \
		switch (op) {                                                                      \
		case OSH_AMO_FETCH:                                                                \
			return atomic_load_explicit(at, memory_order_seq_cst);                     \
		case OSH_AMO_SET:                                                                  \
			atomic_store_explicit(at, value, memory_order_release);                    \
			return 0;                                                                  \
		case OSH_AMO_SWAP:                                                                 \
			return atomic_exchange_explicit(at, value, memory_order_seq_cst);          \
		case OSH_AMO_COMPARE_SWAP:                                                         \
			atomic_compare_exchange_strong_explicit(                                   \
				at, &cond, value, memory_order_seq_cst, memory_order_seq_cst);     \
			return cond;                                                               \
		case OSH_AMO_ADD:                                                                  \
			return atomic_fetch_add_explicit(at, value, memory_order_seq_cst);         \
		case OSH_AMO_AND:                                                                  \
			return atomic_fetch_and_explicit(at, value, memory_order_seq_cst);         \
		case OSH_AMO_OR:                                                                   \
			return atomic_fetch_or_explicit(at, value, memory_order_seq_cst);          \
		case OSH_AMO_XOR:                                                                  \
			return atomic_fetch_xor_explicit(at, value, memory_order_seq_cst);         \
		}                                                                                  \
		return 0;                                                                          \
	}
OSH_DEFINE_AMO_AT(32)
OSH_DEFINE_AMO_AT(64)

/*
 * osh_amo_reach: where the object is mapped here, or NULL: it is not, or is not aligned. osh_amo: returns the old
 * value. osh_amo_post: has none, and may return before it is executed. osh_amo_nbi: the old value is in *fetch after
 * the next quiet.
 */
#define OSH_DEFINE_AMO(bits)                                                                       \
	static inline void *osh_amo_reach##bits(struct osh_ctx *ctx, void *dest, int pe)           \
	{                                                                                          \
		if (osh_unlikely((uintptr_t)dest % (bits / 8) != 0))                               \
			return NULL;                                                               \
		return osh_reach(ctx, dest, bits / 8, pe);                                         \
	}                                                                                          \
                                                                                                   \
	static inline uint##bits##_t osh_amo##bits(const char *fn, struct osh_ctx *ctx,            \
						   enum osh_amo op, void *dest,                    \
						   uint##bits##_t value, uint##bits##_t cond,      \
						   int pe)                                         \
	{                                                                                          \
		void *at = osh_amo_reach##bits(ctx, dest, pe);                                     \
		uint##bits##_t old;                                                                \
                                                                                                   \
		if (osh_likely(at != NULL))                                                        \
			return osh_amo_at##bits(op, at, value, cond);                              \
		osh_amo_slow(fn, ctx, op, bits / 8, dest, value, cond, &old, pe, false);           \
		return old;                                                                        \
	}                                                                                          \
                                                                                                   \
	static inline void osh_amo##bits##_post(const char *fn, struct osh_ctx *ctx,               \
						enum osh_amo op, void *dest, uint##bits##_t value, \
						int pe)                                            \
	{                                                                                          \
		void *at = osh_amo_reach##bits(ctx, dest, pe);                                     \
                                                                                                   \
		if (osh_likely(at != NULL))                                                        \
			osh_amo_at##bits(op, at, value, 0);                                        \
		else                                                                               \
			osh_amo_slow(fn, ctx, op, bits / 8, dest, value, 0, NULL, pe, true);       \
	}                                                                                          \
                                                                                                   \
	static inline void osh_amo##bits##_nbi(const char *fn, struct osh_ctx *ctx,                \
					       enum osh_amo op, void *fetch, void *dest,           \
					       uint##bits##_t value, uint##bits##_t cond, int pe)  \
	{                                                                                          \
		void *at = osh_amo_reach##bits(ctx, dest, pe);                                     \
		uint##bits##_t old;                                                                \
                                                                                                   \
		if (osh_likely(at != NULL)) {                                                      \
			old = osh_amo_at##bits(op, at, value, cond);                               \
			memcpy(fetch, &old, sizeof(old));                                          \
		} else {                                                                           \
			osh_check_local(fn, fetch);                                                \
			osh_amo_slow(fn, ctx, op, bits / 8, dest, value, cond, fetch, pe, true);   \
		}                                                                                  \
	}
OSH_DEFINE_AMO(32)
OSH_DEFINE_AMO(64)

/* ---- signals --------------------------------------------------------------------------------- */

/* Sets a signal object of a PE, or adds to it; may return before that is executed. */
static inline void osh_signal(const char *fn, struct osh_ctx *ctx, uint64_t *object,
			      uint64_t signal, bool add, int pe)
{
	osh_amo64_post(fn, ctx, add ? OSH_AMO_ADD : OSH_AMO_SET, object, signal, pe);
}

/*
 * Puts n bytes, then the signal. `add`: the signal is added to the object, else it replaces it. One VI carries data
 * and signal to a far PE and keeps their order; near, the atomic operation follows the stores.
 */
static inline void osh_put_signal(const char *fn, struct osh_ctx *ctx, void *dest,
				  const void *source, size_t n, uint64_t *object, uint64_t signal,
				  bool add, int pe, bool nbi)
{
	if (nbi)
		osh_put_nbi(fn, ctx, dest, source, n, pe);
	else
		osh_put(fn, ctx, dest, source, n, pe);
	osh_signal(fn, ctx, object, signal, add, pe);
}

#endif
