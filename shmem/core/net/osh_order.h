/* SPDX-License-Identifier: BSD-2-Clause */
/* Fence and quiet. */
#ifndef OSH_ORDER_H
#define OSH_ORDER_H

#include "osh_ctx.h"

void osh_fence(struct osh_ctx *ctx);
void osh_quiet(struct osh_ctx *ctx);
void osh_pe_quiet(const char *fn, struct osh_ctx *ctx, const int *pes, size_t n);

#endif
