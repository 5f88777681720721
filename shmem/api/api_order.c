// SPDX-License-Identifier: BSD-2-Clause
/* Order, completion and locks. */
#include "api.h"

API(void, shmem_fence, (void))
{
	osh_fence(osh_ctx(SHMEM_CTX_DEFAULT));
}

API(void, shmem_ctx_fence, (shmem_ctx_t handle))
{
	struct osh_ctx *ctx = osh_ctx(handle);

	if (ctx != NULL)
		osh_fence(ctx);
}

API(void, shmem_quiet, (void))
{
	osh_quiet(osh_ctx(SHMEM_CTX_DEFAULT));
}

API(void, shmem_ctx_quiet, (shmem_ctx_t handle))
{
	struct osh_ctx *ctx = osh_ctx(handle);

	if (ctx != NULL)
		osh_quiet(ctx);
}

API(void, shmem_pe_quiet, (const int *target_pes, size_t npes))
{
	if (npes != 0)
		osh_pe_quiet("shmem_pe_quiet", osh_ctx(SHMEM_CTX_DEFAULT), target_pes, npes);
}

API(void, shmem_ctx_pe_quiet, (shmem_ctx_t handle, const int *target_pes, size_t npes))
{
	struct osh_ctx *ctx = osh_ctx(handle);

	if (ctx != NULL && npes != 0)
		osh_pe_quiet("shmem_ctx_pe_quiet", ctx, target_pes, npes);
}

API(void, shmem_set_lock, (long *lock))
{
	osh_set_lock("shmem_set_lock", lock);
}

API(void, shmem_clear_lock, (long *lock))
{
	osh_clear_lock("shmem_clear_lock", lock);
}

API(int, shmem_test_lock, (long *lock))
{
	return osh_test_lock("shmem_test_lock", lock);
}
