/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How the routines are defined: each as pNAME, with the weak alias NAME, which the linker replaces where a tool defines
 * NAME itself; and for all types of a family by a macro that is given to the list of the family, as in
 *
 *	#define TYPED(N, T) API(void, shmem_##N##_p, (T * dest, T value, int pe)) { ... }
 *	API_RMA_TYPES(TYPED)
 *
 * which makes shmem_float_p, shmem_double_p and so on.
 */
#ifndef API_H
#define API_H

#include "api_types.h"
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

#endif
