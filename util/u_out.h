/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stores to an outbound slice: the only way this project writes peer memory.
 *
 * A store to an outbound slice is posted: it returns at once and arrives later.
 * Write-combining may reorder stores inside the processor until a store fence,
 * so the order is always: payload, u_out_fence(), the flag that publishes it,
 * and one more u_out_fence() at the end of a burst so that the flag leaves now.
 * On cached memory the fence orders stores only, which costs nothing on a processor
 * that keeps their order by itself (x86).
 * Nothing is ever loaded through an outbound pointer.
 *
 * A `struct u_out` says how to write to a mapping.  On the emulated
 * fabric `ops` is NULL and the helpers are plain stores.  Test decorators of
 * the port (strict, fault) install ops and see every store.
 */
#ifndef U_OUT_H
#define U_OUT_H

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "u_base.h"

struct u_out;

struct u_out_ops {
	/* Stores n bytes from src at dst (dst is inside the outbound mapping). */
	void (*store)(const struct u_out *out, void *dst, const void *src, size_t n);
	/* Everything stored before lands before anything stored after. */
	void (*fence)(const struct u_out *out);
};

struct u_out {
	const struct u_out_ops *ops; /* NULL: cached memory, plain stores */
	void *priv;		     /* only for the decorator */
};

/* Stores payload and other bytes whose order does not matter until a fence. */
static inline void u_out_copy(const struct u_out *out, void *dst, const void *src, size_t n)
{
	if (u_unlikely(out->ops != NULL))
		out->ops->store(out, dst, src, n);
	else
		memcpy(dst, src, n);
}

/* Orders all earlier stores of this thread to `out` before its later ones. */
static inline void u_out_fence(const struct u_out *out)
{
	if (u_unlikely(out->ops != NULL))
		out->ops->fence(out);
	else
		atomic_thread_fence(memory_order_release);
}

/* Stores a flag or index by one aligned store, which the peer sees after all stores before the fence. */
static inline void u_out_store32(const struct u_out *out, _Atomic uint32_t *dst, uint32_t v)
{
	if (u_unlikely(out->ops != NULL))
		out->ops->store(out, (void *)dst, &v, sizeof(v));
	else
		atomic_store_explicit(dst, v, memory_order_release);
}

/* As u_out_store32(), for 8 bytes. */
static inline void u_out_store64(const struct u_out *out, _Atomic uint64_t *dst, uint64_t v)
{
	if (u_unlikely(out->ops != NULL))
		out->ops->store(out, (void *)dst, &v, sizeof(v));
	else
		atomic_store_explicit(dst, v, memory_order_release);
}

#endif
