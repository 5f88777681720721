/* SPDX-License-Identifier: BSD-2-Clause */
/* Copies whose order of arrival matters to somebody who polls the target. */
#ifndef U_COPY_H
#define U_COPY_H

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "u_base.h"

/*
 * Copies to or from memory that the application shares with its peer by RDMA.
 * What orders this copy and the application's own accesses is a message of the
 * peer, another process, which the thread sanitizer cannot see: it is not shown
 * the copy.
 */
#if defined(__SANITIZE_THREAD__)
__attribute__((noinline, no_sanitize_thread,
	       optimize("no-tree-loop-distribute-patterns"))) static void
u_copy_shared(void *dst, const void *src, size_t n)
{
	uint8_t *d = dst;
	const uint8_t *s = src;

	while (n-- > 0)
		*d++ = *s++;
}
#else
static inline void u_copy_shared(void *dst, const void *src, size_t n)
{
	memcpy(dst, src, n);
}
#endif

/*
 * Copies n bytes so that the last ones become visible last: programs poll the
 * end of an RDMA write.  All but the last line goes by memcpy; the rest follows
 * in ascending order, aligned 8-byte words at a time.
 */
static inline void u_copy_last_last(void *dst, const void *src, size_t n)
{
#if defined(__SANITIZE_THREAD__)
	u_copy_shared(dst, src, n);
	return;
#endif
	uint8_t *d = dst;
	const uint8_t *s = src;
	size_t tail = n < U_LINE ? n : U_LINE;
	uint64_t word;

	memcpy(d, s, n - tail);
	atomic_thread_fence(memory_order_release);
	d += n - tail;
	s += n - tail;
	for (; tail > 0 && ((uintptr_t)d & 7) != 0; tail--)
		__atomic_store_n(d++, *s++, __ATOMIC_RELEASE);
	for (; tail >= 8; tail -= 8, d += 8, s += 8) {
		memcpy(&word, s, 8);
		__atomic_store_n((uint64_t *)(void *)d, word, __ATOMIC_RELEASE);
	}
	for (; tail > 0; tail--)
		__atomic_store_n(d++, *s++, __ATOMIC_RELEASE);
}

#endif
