/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include "osh_ctx.h"

static const int nobody[1];

struct osh_ctx osh_ctx_default, osh_ctx_internal;
struct osh_ctx osh_ctx_invalid = { .pes = nobody };

void osh_ctx_init(struct osh_ctx *ctx, const int *pes, int n)
{
	memset(ctx, 0, sizeof(*ctx));
	ctx->pes = pes;
	ctx->team_n = n;
	pthread_mutex_init(&ctx->lock, NULL);
}

void osh_ctx_fini(struct osh_ctx *ctx)
{
	pthread_mutex_destroy(&ctx->lock);
	free(ctx->endpoints);
	ctx->endpoints = NULL;
}
