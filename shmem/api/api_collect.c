// SPDX-License-Identifier: BSD-2-Clause
#include "api.h"

API(void, shmem_barrier_all, (void))
{
	osh_barrier_all("shmem_barrier_all");
}

API(void, shmem_sync_all, (void))
{
	osh_sync_all("shmem_sync_all");
}

API(int, shmem_team_sync, (shmem_team_t handle))
{
	struct osh_team *team = osh_team(handle);

	return team == NULL ? -1 : osh_sync("shmem_team_sync", team);
}

/* A collective of a team; the body is the call. */
#define COLLECTIVE(suffix, params, ...)                                                            \
	API(int, shmem_##suffix, (shmem_team_t handle, API_LIST params))                           \
	{                                                                                          \
		static const char fn[] = "shmem_" #suffix;                                         \
		struct osh_team *team = osh_team(handle);                                          \
		return team == NULL ? -1 : __VA_ARGS__;                                            \
	}

#define ALL(prefix, mem, T, bytes)                                                                 \
	COLLECTIVE(prefix##alltoall##mem, (T * dest, const T *source, size_t nelems),              \
		   osh_alltoall(fn, team, dest, source, osh_times(nelems, bytes)))                 \
	COLLECTIVE(prefix##alltoalls##mem,                                                         \
		   (T * dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems),       \
		   osh_alltoalls(fn, team, dest, source, dst, sst, bytes, nelems))                 \
	COLLECTIVE(prefix##broadcast##mem,                                                         \
		   (T * dest, const T *source, size_t nelems, int PE_root),                        \
		   osh_broadcast(fn, team, dest, source, osh_times(nelems, bytes), PE_root))       \
	COLLECTIVE(prefix##collect##mem, (T * dest, const T *source, size_t nelems),               \
		   osh_collect(fn, team, dest, source, osh_times(nelems, bytes)))                  \
	COLLECTIVE(prefix##fcollect##mem, (T * dest, const T *source, size_t nelems),              \
		   osh_fcollect(fn, team, dest, source, osh_times(nelems, bytes)))

#define TYPED(N, T) ALL(N##_, , T, sizeof(T))

API_RMA_TYPES(TYPED)
ALL(, mem, void, 1)
