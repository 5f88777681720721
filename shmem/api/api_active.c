// SPDX-License-Identifier: BSD-2-Clause
/* Collectives of active sets. osh_active_set() ends the job for a set that is not valid. */
#include "api.h"
#include "api_combine.h"

#define SET int PE_start, int logPE_stride, int PE_size

#define ACTIVE(suffix, params, ...)                                                                \
	API(void, shmem_##suffix, params)                                                          \
	{                                                                                          \
		static const char fn[] = "shmem_" #suffix;                                         \
		struct osh_team *team = osh_active_set(fn, PE_start, logPE_stride, PE_size);       \
		if (team != NULL)                                                                  \
			__VA_ARGS__;                                                               \
	}

ACTIVE(sync, (SET, long *pSync), osh_sync(fn, team))

API(void, shmem_barrier, (SET, long *pSync))
{
	struct osh_team *team = osh_active_set("shmem_barrier", PE_start, logPE_stride, PE_size);

	osh_quiet(osh_ctx(SHMEM_CTX_DEFAULT));
	if (team != NULL)
		osh_sync("shmem_barrier", team);
}

#define SIZED(bits, bytes)                                                                         \
	ACTIVE(alltoall##bits, (void *dest, const void *source, size_t nelems, SET, long *pSync),  \
	       osh_alltoall(fn, team, dest, source, osh_times(nelems, bytes)))                     \
	ACTIVE(alltoalls##bits,                                                                    \
	       (void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, SET,  \
		long *pSync),                                                                      \
	       osh_alltoalls(fn, team, dest, source, dst, sst, bytes, nelems))                     \
	ACTIVE(broadcast##bits,                                                                    \
	       (void *dest, const void *source, size_t nelems, int PE_root, SET, long *pSync),     \
	       osh_broadcast_others(fn, team, dest, source, osh_times(nelems, bytes), PE_root))    \
	ACTIVE(collect##bits, (void *dest, const void *source, size_t nelems, SET, long *pSync),   \
	       osh_collect(fn, team, dest, source, osh_times(nelems, bytes)))                      \
	ACTIVE(fcollect##bits, (void *dest, const void *source, size_t nelems, SET, long *pSync),  \
	       osh_fcollect(fn, team, dest, source, osh_times(nelems, bytes)))

SIZED(32, 4)
SIZED(64, 8)

#define TO_ALL(N, T, op, combine)                                                                  \
	ACTIVE(N##_##op##_to_all,                                                                  \
	       (T * dest, const T *source, int nreduce, SET, T *pWrk, long *pSync),                \
	       osh_reduce(fn, team, dest, source, sizeof(T), nreduce > 0 ? (size_t)nreduce : 0,    \
			  combine))

#define LOGIC(N, T)                                                                                \
	TO_ALL(N, T, and, API_COMBINE_BITS(and, T))                                                \
	TO_ALL(N, T, or, API_COMBINE_BITS(or, T))                                                  \
	TO_ALL(N, T, xor, API_COMBINE_BITS(xor, T))
#define ORDERED(N, T)                                                                              \
	TO_ALL(N, T, max, API_COMBINE_ORDER(max, T))                                               \
	TO_ALL(N, T, min, API_COMBINE_ORDER(min, T))
#define ARITH(N, T)                                                                                \
	TO_ALL(N, T, sum, API_COMBINE_ARITH(sum, T))                                               \
	TO_ALL(N, T, prod, API_COMBINE_ARITH(prod, T))

API_OLD_LOGIC_TYPES(LOGIC)
API_OLD_ORDERED_TYPES(ORDERED)
API_OLD_ARITH_TYPES(ARITH)
