// SPDX-License-Identifier: BSD-2-Clause
#include "api.h"
#include "api_combine.h"

#define REDUCE(N, T, op, combine)                                                                  \
	API(int, shmem_##N##_##op##_reduce,                                                        \
	    (shmem_team_t handle, T * dest, const T *source, size_t nreduce))                      \
	{                                                                                          \
		struct osh_team *team = osh_team(handle);                                          \
		return team == NULL ? -1                                                           \
				    : osh_reduce("shmem_" #N "_" #op "_reduce", team, dest,        \
						 source, sizeof(T), nreduce, combine);             \
	}

#define SCAN(N, T, name, exclusive)                                                                \
	API(int, shmem_##N##_sum_##name,                                                           \
	    (shmem_team_t handle, T * dest, const T *source, size_t nelems))                       \
	{                                                                                          \
		struct osh_team *team = osh_team(handle);                                          \
		return team == NULL ? -1                                                           \
				    : osh_scan("shmem_" #N "_sum_" #name, team, dest, source,      \
					       sizeof(T), nelems, API_COMBINE_ARITH(sum, T),       \
					       exclusive);                                         \
	}

#define LOGIC(N, T)                                                                                \
	REDUCE(N, T, and, API_COMBINE_BITS(and, T))                                                \
	REDUCE(N, T, or, API_COMBINE_BITS(or, T))                                                  \
	REDUCE(N, T, xor, API_COMBINE_BITS(xor, T))
#define ORDERED(N, T)                                                                              \
	REDUCE(N, T, max, API_COMBINE_ORDER(max, T))                                               \
	REDUCE(N, T, min, API_COMBINE_ORDER(min, T))
#define ARITH(N, T)                                                                                \
	REDUCE(N, T, sum, API_COMBINE_ARITH(sum, T))                                               \
	REDUCE(N, T, prod, API_COMBINE_ARITH(prod, T))                                             \
	SCAN(N, T, inscan, false)                                                                  \
	SCAN(N, T, exscan, true)

API_LOGIC_TYPES(LOGIC)
API_ORDERED_TYPES(ORDERED)
API_ARITH_TYPES(ARITH)
