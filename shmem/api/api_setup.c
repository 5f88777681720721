// SPDX-License-Identifier: BSD-2-Clause
#include <string.h>

#include "api.h"
#include "osh_spec.h"

/* The values that the core knows by its own names. */
#define IS_HANDLE(handle, value) ((uintptr_t)(handle) == (value))
_Static_assert(OSH_THREAD_MULTIPLE == SHMEM_THREAD_MULTIPLE, "the highest thread level");
_Static_assert(OSH_CTX_SERIALIZED == SHMEM_CTX_SERIALIZED && OSH_CTX_PRIVATE == SHMEM_CTX_PRIVATE &&
		       OSH_CTX_NOSTORE == SHMEM_CTX_NOSTORE &&
		       OSH_CTX_SESSION_BATCH == SHMEM_CTX_SESSION_BATCH,
	       "options of contexts");
_Static_assert(IS_HANDLE(SHMEM_CTX_DEFAULT, OSH_CTX_DEFAULT_HANDLE) &&
		       IS_HANDLE(SHMEM_TEAM_INVALID, OSH_TEAM_INVALID_HANDLE) &&
		       IS_HANDLE(SHMEM_TEAM_WORLD, OSH_TEAM_WORLD_HANDLE) &&
		       IS_HANDLE(SHMEM_TEAM_SHARED, OSH_TEAM_SHARED_HANDLE),
	       "handles");

API(void, shmem_init, (void))
{
	osh_init_or_end();
}

API(int, shmem_init_thread, (int requested, int *provided))
{
	return osh_init(requested, provided);
}

API(void, shmem_query_thread, (int *provided))
{
	*provided = osh_thread_level();
}

API(void, shmem_query_initialized, (int *initialized))
{
	*initialized = osh_initialized();
}

API(void, shmem_finalize, (void))
{
	osh_finalize();
}

SHMEMX_NORETURN API(void, shmem_global_exit, (int status))
{
	osh_global_exit(status);
}

API(int, shmem_my_pe, (void))
{
	return osh_my_pe();
}

API(int, shmem_n_pes, (void))
{
	return osh_n_pes();
}

API(int, shmem_pe_accessible, (int pe))
{
	return osh_pe_accessible(pe);
}

API(int, shmem_addr_accessible, (const void *addr, int pe))
{
	return osh_addr_accessible(addr, pe);
}

API(void *, shmem_ptr, (const void *dest, int pe))
{
	return osh_ptr(dest, pe);
}

API(void *, shmem_team_ptr, (shmem_team_t handle, const void *dest, int pe))
{
	struct osh_team *team = osh_team(handle);

	return team == NULL ? NULL : osh_team_ptr(team, dest, pe);
}

API(void, shmem_info_get_version, (int *major, int *minor))
{
	*major = SHMEM_MAJOR_VERSION;
	*minor = SHMEM_MINOR_VERSION;
}

_Static_assert(sizeof(SHMEM_VENDOR_STRING) <= SHMEM_MAX_NAME_LEN, "the name fits");

API(void, shmem_info_get_name, (char *name))
{
	memcpy(name, SHMEM_VENDOR_STRING, sizeof(SHMEM_VENDOR_STRING));
}

API(void, shmem_pcontrol, (int level, ...)) {}

API(void, start_pes, (int npes))
{
	osh_start_pes();
}

API(int, _my_pe, (void))
{
	return osh_my_pe();
}

API(int, _num_pes, (void))
{
	return osh_n_pes();
}

/* ---- Symmetric memory ------------------------------------------------------------------------ */

API(void *, shmem_malloc, (size_t size))
{
	return osh_malloc("shmem_malloc", size, 0);
}

API(void *, shmem_malloc_with_hints, (size_t size, long hints))
{
	return osh_malloc("shmem_malloc_with_hints", size, hints);
}

API(void *, shmem_calloc, (size_t count, size_t size))
{
	return osh_calloc("shmem_calloc", count, size);
}

API(void *, shmem_align, (size_t alignment, size_t size))
{
	return osh_align("shmem_align", alignment, size);
}

API(void *, shmem_realloc, (void *ptr, size_t size))
{
	return osh_realloc("shmem_realloc", ptr, size);
}

API(void, shmem_free, (void *ptr))
{
	osh_free("shmem_free", ptr);
}

API(void *, shmalloc, (size_t size))
{
	return osh_malloc("shmalloc", size, 0);
}

API(void *, shmemalign, (size_t alignment, size_t size))
{
	return osh_align("shmemalign", alignment, size);
}

API(void *, shrealloc, (void *ptr, size_t size))
{
	return osh_realloc("shrealloc", ptr, size);
}

API(void, shfree, (void *ptr))
{
	osh_free("shfree", ptr);
}
