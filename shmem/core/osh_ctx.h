/* SPDX-License-Identifier: BSD-2-Clause */
/* Contexts, and the endpoints by which each reaches far PEs. */
#ifndef OSH_CTX_H
#define OSH_CTX_H

#include "osh_ops.h"
#include "osh_state.h"

#define OSH_RING 32u	 /* operations of an endpoint under way */
#define OSH_BOUNCE 2048u /* bytes of the buffer of each */

/* What is to be done when the operation in this place of the ring is complete. */
struct osh_after {
	void *to; /* bytes are copied from the buffer to here, or NULL */
	uint32_t n;
};

struct osh_ep {
	VIP_VI_HANDLE vi;
	int pe;
	struct osh_ep *next;
	bool dirty; /* used since the last quiet */
	uint32_t posted, done;
	struct osh_after after[OSH_RING];
	uint8_t *slab; /* descriptors, then buffers */
	VIP_MEM_HANDLE handle;
};

struct osh_ctx {
	struct osh_team *team;	   /* NULL: the world */
	const int *pes;		   /* world numbers of the team's PEs, or NULL: the world */
	int team_n;		   /* of these; 0: the world */
	struct osh_ctx *next;	   /* of the team */
	struct osh_ep **endpoints; /* for each PE of the world, or NULL; NULL: none yet */
	struct osh_ep *used;	   /* those there are */
	pthread_mutex_t lock;	   /* of the endpoints */
	bool locked;		   /* several threads may use it */
};

extern struct osh_ctx osh_default, osh_inner;
extern struct osh_ctx osh_no_ctx; /* of a team without members */

/* The number in the world of a PE of the context's team. */
static inline int osh_world_pe(const struct osh_ctx *ctx, int pe)
{
	if (ctx == &osh_default || ctx == &osh_inner || osh_likely(ctx->pes == NULL))
		return pe;
	return osh_likely((unsigned int)pe < (unsigned int)ctx->team_n) ? ctx->pes[pe] : -1;
}

/* `pes`: of its team, n of them; NULL and 0: of the world. */
void osh_ctx_init(struct osh_ctx *ctx, const int *pes, int n);
/* Completes what is under way and ends its connections. */
void osh_ctx_fini(struct osh_ctx *ctx);

static inline void osh_ctx_lock(struct osh_ctx *ctx)
{
	if (ctx->locked)
		pthread_mutex_lock(&ctx->lock);
}

static inline void osh_ctx_unlock(struct osh_ctx *ctx)
{
	if (ctx->locked)
		pthread_mutex_unlock(&ctx->lock);
}

#endif
