/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How elements are combined, for osh_reduce() and osh_scan(): one function for each operation and
 * representation.  Types of one size and kind share it.
 */
#ifndef API_COMBINE_H
#define API_COMBINE_H

#include <complex.h>
#include <stddef.h>
#include <stdint.h>

/* X(operation, name of the representation, type, its result for a and b) */
#define API_COMBINE_EACH_BITS(X, op, e)                                                            \
	X(op, u8, uint8_t, e)                                                                      \
	X(op, u16, uint16_t, e) X(op, u32, uint32_t, e) X(op, u64, uint64_t, e)
#define API_COMBINE_EACH_ORDER(X, op, e)                                                           \
	API_COMBINE_EACH_BITS(X, op, e)                                                            \
	X(op, i8, int8_t, e)                                                                       \
	X(op, i16, int16_t, e)                                                                     \
	X(op, i32, int32_t, e)                                                                     \
	X(op, i64, int64_t, e) X(op, f, float, e) X(op, d, double, e) X(op, ld, long double, e)
#define API_COMBINE_EACH_ARITH(X, op, e, integer)                                                  \
	API_COMBINE_EACH_BITS(X, op, integer)                                                      \
	X(op, f, float, e)                                                                         \
	X(op, d, double, e)                                                                        \
	X(op, ld, long double, e) X(op, cf, float _Complex, e) X(op, cd, double _Complex, e)

#define API_COMBINE_ALL(X)                                                                         \
	API_COMBINE_EACH_BITS(X, and, a &b)                                                        \
	API_COMBINE_EACH_BITS(X, or, a | b)                                                        \
	API_COMBINE_EACH_BITS(X, xor, a ^ b)                                                       \
	API_COMBINE_EACH_ORDER(X, max, b > a ? b : a)                                              \
	API_COMBINE_EACH_ORDER(X, min, b < a ? b : a)                                              \
	API_COMBINE_EACH_ARITH(X, sum, a + b, 1u * a + b)                                          \
	API_COMBINE_EACH_ARITH(X, prod, a *b, 1u * a * b)

#define API_COMBINE_DECLARE(op, K, T, e)                                                           \
	void api_##op##_##K(void *into, const void *from, size_t n);
API_COMBINE_ALL(API_COMBINE_DECLARE)

/* The function for a type, chosen when it is compiled. */
#define API_COMBINE_BITS(op, T)                                                                    \
	(sizeof(T) == 1	  ? api_##op##_u8                                                          \
	 : sizeof(T) == 2 ? api_##op##_u16                                                         \
	 : sizeof(T) == 4 ? api_##op##_u32                                                         \
			  : api_##op##_u64)
#define API_COMBINE_SIGNED(op, T)                                                                  \
	(sizeof(T) == 1	  ? api_##op##_i8                                                          \
	 : sizeof(T) == 2 ? api_##op##_i16                                                         \
	 : sizeof(T) == 4 ? api_##op##_i32                                                         \
			  : api_##op##_i64)
#define API_COMBINE_ORDER(op, T)                                                                   \
	_Generic((T)0, float                                                                       \
		 : api_##op##_f, double                                                            \
		 : api_##op##_d, long double                                                       \
		 : api_##op##_ld, default                                                          \
		 : (T)-1 < (T)1 ? API_COMBINE_SIGNED(op, T) : API_COMBINE_BITS(op, T))
#define API_COMBINE_ARITH(op, T)                                                                   \
	_Generic((T)0, float                                                                       \
		 : api_##op##_f, double                                                            \
		 : api_##op##_d, long double                                                       \
		 : api_##op##_ld, float _Complex                                                   \
		 : api_##op##_cf, double _Complex                                                  \
		 : api_##op##_cd, default                                                          \
		 : API_COMBINE_BITS(op, T))

#endif
