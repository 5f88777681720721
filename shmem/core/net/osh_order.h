/* SPDX-License-Identifier: BSD-2-Clause */
/* Fence and quiet. */
#ifndef OSH_ORDER_H
#define OSH_ORDER_H

#include "osh_ctx.h"

/* Orders the operations of a context on each PE before those that follow; NULL: near stores alone. Does not wait. */
void osh_fence(struct osh_ctx *ctx);
/* Waits until all operations of a context are complete at the other PEs; NULL: near stores alone. */
void osh_quiet(struct osh_ctx *ctx);
/* As osh_quiet(), for n PEs of the context's team; a number that no PE has is no error. */
void osh_pe_quiet(const char *fn, struct osh_ctx *ctx, const int *pes, size_t n);

#endif
