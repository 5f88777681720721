/* SPDX-License-Identifier: BSD-2-Clause */
/* When the policy `auto` promotes a connection: code that moves bytes over it counts them here. */
#ifndef VS_AUTO_H
#define VS_AUTO_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VS_AUTO_TURNS 6 /* three exchanges */
#define VS_AUTO_BYTES 16384
#define VS_AUTO_NS 5000000    /* since it was connected */
#define VS_EAGER_NS 200000000 /* the longest wait of a first use, with the policy `eager` */

struct vs_auto {
	_Atomic uint32_t turns; /* changes from sending to receiving */
	_Atomic bool sent_last;
	_Atomic uint64_t bytes; /* both ways */
};

/*
 * Counts bytes that were sent (`sent`) or received.  True, then and later: enough turns or bytes, whatever the time;
 * VS_AUTO_NS is for the caller.
 */
static inline bool vs_auto_count(struct vs_auto *a, bool sent, size_t bytes)
{
	uint64_t all = atomic_fetch_add_explicit(&a->bytes, bytes, memory_order_relaxed) + bytes;
	uint32_t turns = atomic_load_explicit(&a->turns, memory_order_relaxed);

	if (atomic_exchange_explicit(&a->sent_last, sent, memory_order_relaxed) != sent)
		turns = atomic_fetch_add_explicit(&a->turns, 1, memory_order_relaxed) + 1;
	return turns >= VS_AUTO_TURNS || all >= VS_AUTO_BYTES;
}

#endif
