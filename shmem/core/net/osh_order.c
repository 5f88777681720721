/* SPDX-License-Identifier: BSD-2-Clause */
/* Fence and quiet. Near stores are ordered and completed by fences of the processor. */
#include <stdatomic.h>

#include "osh_far.h"
#include "osh_order.h"

/* Has the context endpoints? Another thread may be adding the first: its operations are none of this thread's. */
static bool has_far(const struct osh_ctx *ctx)
{
	return ctx != NULL && osh_unlikely(__atomic_load_n(&ctx->used, __ATOMIC_RELAXED) != NULL);
}

void osh_fence(struct osh_ctx *ctx)
{
	/* A VI keeps the order of its operations, and a context has one VI for each far PE. */
	/* A: near stores before those that follow; pairs with the acquire of a wait, test or atomic operation. */
	atomic_thread_fence(memory_order_release);
}

void osh_quiet(struct osh_ctx *ctx)
{
	if (has_far(ctx) && osh_far_quiet("shmem_quiet", ctx, -1))
		return;
	atomic_thread_fence(memory_order_seq_cst);
}

void osh_pe_quiet(const char *fn, struct osh_ctx *ctx, const int *pes, size_t n)
{
	for (size_t i = 0; has_far(ctx) && i < n; i++)
		osh_far_quiet(fn, ctx, osh_world_pe(ctx, pes[i]));
	atomic_thread_fence(memory_order_seq_cst);
}
