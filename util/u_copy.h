/* SPDX-License-Identifier: BSD-2-Clause */
/* Copies whose order of arrival matters to a thread that polls the target. */
#ifndef U_COPY_H
#define U_COPY_H

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "u_base.h"

/*
 * Copies to or from memory of the application that others use at the same time, for instance its peer by
 * RDMA.  A message of the peer, another process, orders this copy and the application's own accesses;
 * while memory is adopted the kernel does (u_adopt.c).  If the target begins with an aligned 8-byte word, none of
 * these ever shows only a part of its new value: programs poll such words.
 */
#if defined(__SANITIZE_THREAD__) || defined(__aarch64__)
typedef uint64_t u_copy_to __attribute__((may_alias));
struct u_copy_from {
	uint64_t v;
} __attribute__((packed, may_alias));

/*
 * As memcpy(), by aligned words of the target; the thread sanitizer does not see it.  The C library of arm64 stores by
 * vectors of bytes where there is SVE, of which each byte may become visible alone.  The barriers keep the compiler
 * from making a call of memcpy() out of this.
 */
U_ORDERED_OUTSIDE __attribute__((unused)) static void u_copy_shared(void *dst, const void *src,
								    size_t n)
{
	uint8_t *d = dst;
	const uint8_t *s = src;

	for (; n > 0 && ((uintptr_t)d & 7) != 0; n--)
		*d++ = *s++;
	for (; n >= 64; n -= 64, d += 64, s += 64) {
		u_copy_to *to = (void *)d;
		const struct u_copy_from *from = (const void *)s;

#pragma GCC unroll 8
		for (int i = 0; i < 8; i++)
			to[i] = from[i].v;
		__asm__ volatile("" ::: "memory");
	}
	for (; n >= 8; n -= 8, d += 8, s += 8) {
		*(u_copy_to *)(void *)d = ((const struct u_copy_from *)(const void *)s)->v;
		__asm__ volatile("" ::: "memory");
	}
	while (n-- > 0)
		*d++ = *s++;
}
#else
/*
 * As memcpy(), in two parts where n is no multiple of 8.  The C library of x86 copies by vectors, the last of which end
 * where the copy does: two of these would meet in the middle of a word, and be stored one after the other.
 */
static inline void u_copy_shared(void *dst, const void *src, size_t n)
{
	size_t rest = n & 7;

	memcpy(dst, src, n - rest);
	if (rest != 0)
		memcpy((uint8_t *)dst + (n - rest), (const uint8_t *)src + (n - rest), rest);
}
#endif

#define U_COPY_WORDS 15u /* the most bytes that u_copy_small() copies by two words */

/* Copies 0 to 64 bytes, in registers.  The two may overlap. */
static inline void u_copy_small(void *dst, const void *src, size_t n)
{
	uint8_t *d = dst;
	const uint8_t *s = src;
	uint64_t a, b, c, e;

	if (n >= 16) {
		/* Two overlapping halves of up to 32 bytes, each as two overlapping words of 16. */
		struct {
			uint64_t v[2];
		} w, x, y, z;
		size_t mid = n > 32 ? 16 : 0;

		memcpy(&w, s, 16);
		memcpy(&x, s + mid, 16);
		memcpy(&y, s + n - 16 - mid, 16);
		memcpy(&z, s + n - 16, 16);
		memcpy(d, &w, 16);
		memcpy(d + mid, &x, 16);
		memcpy(d + n - 16 - mid, &y, 16);
		memcpy(d + n - 16, &z, 16);
	} else if (n >= 8) {
		memcpy(&a, s, 8);
		memcpy(&b, s + n - 8, 8);
		memcpy(d, &a, 8);
		memcpy(d + n - 8, &b, 8);
	} else if (n >= 4) {
		uint32_t f, g;

		memcpy(&f, s, 4);
		memcpy(&g, s + n - 4, 4);
		memcpy(d, &f, 4);
		memcpy(d + n - 4, &g, 4);
	} else if (n > 0) {
		c = s[0];
		e = s[n - 1];
		a = s[n / 2];
		d[0] = (uint8_t)c;
		d[n / 2] = (uint8_t)a;
		d[n - 1] = (uint8_t)e;
	}
}

#define U_COPY_BLOCK 256u

static inline void u_prefetch_span(const uint8_t *at, size_t n)
{
	for (size_t off = 0; off < n; off += U_LINE)
		__builtin_prefetch(at + off);
}

static inline void u_prefetch_write_span(const uint8_t *at, size_t n)
{
	for (size_t off = 0; off < n; off += U_LINE)
		u_prefetch_write(at + off);
}

/*
 * Moves lines that were just written into the cache that all processors share.  x86: a no-op if the processor does
 * not know CLDEMOTE, see u_can_demote(); other processors: nothing.
 */
static inline void u_demote_span(const uint8_t *at, size_t n)
{
#if defined(__x86_64__) || defined(__i386__)
	for (size_t off = 0; off < n; off += U_LINE)
		__asm__ volatile("cldemote %0" : : "m"(at[off]));
#endif
}

/*
 * Copies into cache lines that another processor has.  They are prefetched a block ahead, since stores
 * wait for their lines one after the other.
 */
static inline void u_copy_ahead(uint8_t *dst, const uint8_t *src, size_t n)
{
	u_prefetch_write_span(dst, n < U_COPY_BLOCK ? n : U_COPY_BLOCK);
	for (; n > U_COPY_BLOCK; n -= U_COPY_BLOCK) {
		size_t next = n - U_COPY_BLOCK;

		u_prefetch_write_span(dst + U_COPY_BLOCK,
				      next < U_COPY_BLOCK ? next : U_COPY_BLOCK);
		memcpy(dst, src, U_COPY_BLOCK);
		dst += U_COPY_BLOCK;
		src += U_COPY_BLOCK;
	}
	memcpy(dst, src, n);
}

/* How many of n bytes for `dst` are to be stored last: a line of them, and what belongs to the word it begins in. */
static inline size_t u_copy_tail(const uint8_t *dst, size_t n)
{
	size_t tail = n < U_LINE ? n : U_LINE;

	tail += (uintptr_t)(dst + n - tail) & 7;
	return tail < n ? tail : n;
}

/*
 * Copies n bytes so that the last ones become visible last: programs poll the end of an RDMA write.  All but the last
 * line goes as by u_copy_shared(); the rest follows in ascending order, aligned 8-byte words at a time.
 */
static inline void u_copy_last_last(void *dst, const void *src, size_t n)
{
#if defined(__SANITIZE_THREAD__)
	u_copy_shared(dst, src, n);
	return;
#endif
	uint8_t *d = dst;
	const uint8_t *s = src;
	uint64_t word;
	size_t tail;

	if (n == sizeof(word) && ((uintptr_t)d & 7) == 0) {
		memcpy(&word, s, sizeof(word));
		__atomic_store_n((uint64_t *)(void *)d, word, __ATOMIC_RELEASE);
		return;
	}
	tail = u_copy_tail(d, n);
	if (tail < n) {
		for (; ((uintptr_t)d & 7) != 0; n--)
			*d++ = *s++;
		u_copy_shared(d, s, n - tail);
		atomic_thread_fence(memory_order_release);
		d += n - tail;
		s += n - tail;
	}
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
