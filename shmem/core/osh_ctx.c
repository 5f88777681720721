/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include "osh_ctx.h"
#include "osh_far.h"

void osh_ctx_init(struct osh_ctx *ctx, const int *pes, int n)
{
	memset(ctx, 0, sizeof(*ctx));
	ctx->pes = pes;
	ctx->team_n = n;
	pthread_mutex_init(&ctx->lock, NULL);
}

void osh_ctx_fini(struct osh_ctx *ctx)
{
	osh_quiet(ctx);
	osh_far_close(ctx);
	pthread_mutex_destroy(&ctx->lock);
	free(ctx->endpoints);
	ctx->endpoints = NULL;
}
