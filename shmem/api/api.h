/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How the routines are defined: each as pNAME, with the weak alias NAME, and for all types of a
 * family by a macro that is given to the list of the family.
 */
#ifndef API_H
#define API_H

#include "osh_ops.h"
#include "pshmem.h"

/* API(result, name, (parameters)) { body } */
#define API(result, name, params)                                                                  \
	extern __typeof(p##name) name                                                              \
		__attribute__((weak, alias("p" #name), visibility("default")));                    \
	result p##name params

#define API_LIST(...) __VA_ARGS__

/*
 * shmem_SUFFIX and shmem_ctx_SUFFIX.  The body finds the context in `c` and the name of the routine
 * in `fn`.
 */
#define API_CTX(result, suffix, params, ...)                                                       \
	API(result, shmem_##suffix, (API_LIST params))                                             \
	{                                                                                          \
		static const char fn[] = "shmem_" #suffix;                                         \
		struct osh_ctx *c = osh_ctx(SHMEM_CTX_DEFAULT);                                    \
		__VA_ARGS__                                                                        \
	}                                                                                          \
	API(result, shmem_ctx_##suffix, (shmem_ctx_t ctx, API_LIST params))                        \
	{                                                                                          \
		static const char fn[] = "shmem_ctx_" #suffix;                                     \
		struct osh_ctx *c = osh_ctx_access(ctx);                                           \
		__VA_ARGS__                                                                        \
	}

/* ---- Families of types: X(name in routines, type) --------------------------------------------- */

#define API_FIXED_TYPES(X)                                                                         \
	X(int8, int8_t)                                                                            \
	X(int16, int16_t)                                                                          \
	X(int32, int32_t)                                                                          \
	X(int64, int64_t)                                                                          \
	X(uint8, uint8_t) X(uint16, uint16_t) X(uint32, uint32_t) X(uint64, uint64_t)

#define API_RMA_TYPES(X)                                                                           \
	X(float, float)                                                                            \
	X(double, double)                                                                          \
	X(longdouble, long double)                                                                 \
	X(char, char)                                                                              \
	X(schar, signed char)                                                                      \
	X(short, short)                                                                            \
	X(int, int)                                                                                \
	X(long, long)                                                                              \
	X(longlong, long long)                                                                     \
	X(uchar, unsigned char)                                                                    \
	X(ushort, unsigned short)                                                                  \
	X(uint, unsigned int)                                                                      \
	X(ulong, unsigned long)                                                                    \
	X(ulonglong, unsigned long long) API_FIXED_TYPES(X) X(size, size_t) X(ptrdiff, ptrdiff_t)

#define API_BITS_TYPES(X)                                                                          \
	X(uint, unsigned int)                                                                      \
	X(ulong, unsigned long)                                                                    \
	X(ulonglong, unsigned long long)                                                           \
	X(int32, int32_t) X(int64, int64_t) X(uint32, uint32_t) X(uint64, uint64_t)

#define API_AMO_TYPES(X)                                                                           \
	X(int, int)                                                                                \
	X(long, long) X(longlong, long long) API_BITS_TYPES(X) X(size, size_t) X(ptrdiff, ptrdiff_t)

#define API_EXTENDED_TYPES(X) X(float, float) X(double, double) API_AMO_TYPES(X)

#define API_LOGIC_TYPES(X)                                                                         \
	X(uchar, unsigned char)                                                                    \
	X(ushort, unsigned short)                                                                  \
	X(uint, unsigned int)                                                                      \
	X(ulong, unsigned long)                                                                    \
	X(ulonglong, unsigned long long) API_FIXED_TYPES(X) X(size, size_t)

#define API_ORDERED_TYPES(X)                                                                       \
	X(char, char)                                                                              \
	X(schar, signed char)                                                                      \
	X(short, short)                                                                            \
	X(int, int)                                                                                \
	X(long, long)                                                                              \
	X(longlong, long long)                                                                     \
	X(ptrdiff, ptrdiff_t)                                                                      \
	API_LOGIC_TYPES(X) X(float, float) X(double, double) X(longdouble, long double)

#define API_COMPLEX_TYPES(X) X(complexd, shmemx_complexd_t) X(complexf, shmemx_complexf_t)
#define API_ARITH_TYPES(X) API_ORDERED_TYPES(X) API_COMPLEX_TYPES(X)

/* The types of deprecated routines. */
#define API_OLD_AMO_TYPES(X) X(int, int) X(long, long) X(longlong, long long)
#define API_OLD_RMA_TYPES(X) X(float, float) X(double, double) API_OLD_AMO_TYPES(X)
#define API_OLD_LOGIC_TYPES(X) X(short, short) API_OLD_AMO_TYPES(X)
#define API_OLD_ORDERED_TYPES(X)                                                                   \
	API_OLD_LOGIC_TYPES(X) X(float, float) X(double, double) X(longdouble, long double)
#define API_OLD_ARITH_TYPES(X) API_OLD_ORDERED_TYPES(X) API_COMPLEX_TYPES(X)

/* X(bits, bytes) */
#define API_SIZES(X) X(8, 1) X(16, 2) X(32, 4) X(64, 8) X(128, 16)

#endif
