// SPDX-License-Identifier: BSD-2-Clause
/*
 * Atomic operations go down as integers of 4 and 8 bytes: values of all types, also floating-point
 * ones, by a copy of their bits.
 */
#include <string.h>

#include "api.h"

/* The 4 bytes at `value`, of an integer or a float, as they are: nothing is converted. `value` may be unaligned. */
static inline uint32_t bits32(const void *value)
{
	uint32_t bits;

	memcpy(&bits, value, sizeof(bits));
	return bits;
}

/* As bits32(), for 8 bytes. */
static inline uint64_t bits64(const void *value)
{
	uint64_t bits;

	memcpy(&bits, value, sizeof(bits));
	return bits;
}

/* The three kinds of call for one type, for 4 or 8 bytes: sizeof(T) is a constant, so the compiler drops the other. */
#define CALLS(N, T)                                                                                \
	static inline T call_##N(const char *fn, struct osh_ctx *c, enum osh_amo op,               \
				 const T *dest, T value, T cond, int pe)                           \
	{                                                                                          \
		T old;                                                                             \
		if (sizeof(T) == 4) {                                                              \
			uint32_t bits = osh_amo32(fn, c, op, (void *)dest, bits32(&value),         \
						  bits32(&cond), pe);                              \
			memcpy(&old, &bits, sizeof(bits));                                         \
		} else {                                                                           \
			uint64_t bits = osh_amo64(fn, c, op, (void *)dest, bits64(&value),         \
						  bits64(&cond), pe);                              \
			memcpy(&old, &bits, sizeof(old));                                          \
		}                                                                                  \
		return old;                                                                        \
	}                                                                                          \
	static inline void post_##N(const char *fn, struct osh_ctx *c, enum osh_amo op, T *dest,   \
				    T value, int pe)                                               \
	{                                                                                          \
		if (sizeof(T) == 4)                                                                \
			osh_amo32_post(fn, c, op, dest, bits32(&value), pe);                       \
		else                                                                               \
			osh_amo64_post(fn, c, op, dest, bits64(&value), pe);                       \
	}                                                                                          \
	static inline void nbi_##N(const char *fn, struct osh_ctx *c, enum osh_amo op, T *fetch,   \
				   const T *dest, T value, T cond, int pe)                         \
	{                                                                                          \
		if (sizeof(T) == 4)                                                                \
			osh_amo32_nbi(fn, c, op, fetch, (void *)dest, bits32(&value),              \
				      bits32(&cond), pe);                                          \
		else                                                                               \
			osh_amo64_nbi(fn, c, op, fetch, (void *)dest, bits64(&value),              \
				      bits64(&cond), pe);                                          \
	}

#define EXTENDED(N, T)                                                                             \
	CALLS(N, T)                                                                                \
	API_CTX(T, N##_atomic_fetch, (const T *source, int pe),                                    \
		return call_##N(fn, c, OSH_AMO_FETCH, source, 0, 0, pe);)                          \
	API_CTX(void, N##_atomic_set, (T * dest, T value, int pe),                                 \
		post_##N(fn, c, OSH_AMO_SET, dest, value, pe);)                                    \
	API_CTX(T, N##_atomic_swap, (T * dest, T value, int pe),                                   \
		return call_##N(fn, c, OSH_AMO_SWAP, dest, value, 0, pe);)                         \
	API_CTX(void, N##_atomic_fetch_nbi, (T * fetch, const T *source, int pe),                  \
		nbi_##N(fn, c, OSH_AMO_FETCH, fetch, source, 0, 0, pe);)                           \
	API_CTX(void, N##_atomic_swap_nbi, (T * fetch, T * dest, T value, int pe),                 \
		nbi_##N(fn, c, OSH_AMO_SWAP, fetch, dest, value, 0, pe);)

#define STANDARD(N, T)                                                                             \
	API_CTX(T, N##_atomic_compare_swap, (T * dest, T cond, T value, int pe),                   \
		return call_##N(fn, c, OSH_AMO_COMPARE_SWAP, dest, value, cond, pe);)              \
	API_CTX(T, N##_atomic_fetch_inc, (T * dest, int pe),                                       \
		return call_##N(fn, c, OSH_AMO_ADD, dest, 1, 0, pe);)                              \
	API_CTX(void, N##_atomic_inc, (T * dest, int pe),                                          \
		post_##N(fn, c, OSH_AMO_ADD, dest, 1, pe);)                                        \
	API_CTX(void, N##_atomic_compare_swap_nbi, (T * fetch, T * dest, T cond, T value, int pe), \
		nbi_##N(fn, c, OSH_AMO_COMPARE_SWAP, fetch, dest, value, cond, pe);)               \
	API_CTX(void, N##_atomic_fetch_inc_nbi, (T * fetch, T * dest, int pe),                     \
		nbi_##N(fn, c, OSH_AMO_ADD, fetch, dest, 1, 0, pe);)                               \
	ARITHMETIC(N, T, add, OSH_AMO_ADD)

/* An operation of two operands: fetching, not fetching, non-blocking. */
#define ARITHMETIC(N, T, name, op)                                                                 \
	API_CTX(T, N##_atomic_fetch_##name, (T * dest, T value, int pe),                           \
		return call_##N(fn, c, op, dest, value, 0, pe);)                                   \
	API_CTX(void, N##_atomic_##name, (T * dest, T value, int pe),                              \
		post_##N(fn, c, op, dest, value, pe);)                                             \
	API_CTX(void, N##_atomic_fetch_##name##_nbi, (T * fetch, T * dest, T value, int pe),       \
		nbi_##N(fn, c, op, fetch, dest, value, 0, pe);)

#define BITWISE(N, T)                                                                              \
	ARITHMETIC(N, T, and, OSH_AMO_AND)                                                         \
	ARITHMETIC(N, T, or, OSH_AMO_OR)                                                           \
	ARITHMETIC(N, T, xor, OSH_AMO_XOR)

API_XAMO_TYPES(EXTENDED)
API_AMO_TYPES(STANDARD)
API_BITS_TYPES(BITWISE)

/* The names of before 1.4. */
#define OLD(result, suffix, params, ...)                                                           \
	API(result, shmem_##suffix, params)                                                        \
	{                                                                                          \
		static const char fn[] = "shmem_" #suffix;                                         \
		struct osh_ctx *c = osh_ctx(SHMEM_CTX_DEFAULT);                                    \
		__VA_ARGS__                                                                        \
	}

#define OLD_EXTENDED(N, T)                                                                         \
	OLD(T, N##_fetch, (const T *source, int pe),                                               \
	    return call_##N(fn, c, OSH_AMO_FETCH, source, 0, 0, pe);)                              \
	OLD(void, N##_set, (T * dest, T value, int pe),                                            \
	    post_##N(fn, c, OSH_AMO_SET, dest, value, pe);)                                        \
	OLD(T, N##_swap, (T * dest, T value, int pe),                                              \
	    return call_##N(fn, c, OSH_AMO_SWAP, dest, value, 0, pe);)

#define OLD_STANDARD(N, T)                                                                         \
	OLD(T, N##_cswap, (T * dest, T cond, T value, int pe),                                     \
	    return call_##N(fn, c, OSH_AMO_COMPARE_SWAP, dest, value, cond, pe);)                  \
	OLD(T, N##_finc, (T * dest, int pe), return call_##N(fn, c, OSH_AMO_ADD, dest, 1, 0, pe);) \
	OLD(void, N##_inc, (T * dest, int pe), post_##N(fn, c, OSH_AMO_ADD, dest, 1, pe);)         \
	OLD(T, N##_fadd, (T * dest, T value, int pe),                                              \
	    return call_##N(fn, c, OSH_AMO_ADD, dest, value, 0, pe);)                              \
	OLD(void, N##_add, (T * dest, T value, int pe),                                            \
	    post_##N(fn, c, OSH_AMO_ADD, dest, value, pe);)

API_OLD_RMA_TYPES(OLD_EXTENDED)
API_OLD_AMO_TYPES(OLD_STANDARD)
