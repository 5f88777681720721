/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Contexts: what operations need of one.  Its endpoints are those of osh_far.c.
 *
 * The program's default context and the internal one are two, so that collectives, whose puts and messages go by the
 * internal one, neither wait for operations of the program nor complete them.
 */
#ifndef OSH_CTX_H
#define OSH_CTX_H

#include "osh_spec.h"
#include "osh_state.h"

struct osh_ep;
struct osh_team;

/*
 * Writer: the thread that makes or ends the context, but for the endpoints and their list, which the thread writes that
 * has the lock, or, where the context is not `locked`, the one thread that uses it.  `next` is under the lock of
 * osh_team_ctx.c.
 */
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

extern struct osh_ctx osh_ctx_default, osh_ctx_internal;
extern struct osh_ctx osh_ctx_invalid; /* of a team without members */

/* The context of a handle of the program's: NULL for SHMEM_CTX_INVALID. */
static inline struct osh_ctx *osh_ctx(const void *handle)
{
	return (uintptr_t)handle == OSH_CTX_DEFAULT_HANDLE ? &osh_ctx_default
							   : (struct osh_ctx *)(uintptr_t)handle;
}

/* For an access: SHMEM_CTX_INVALID gives a context that reaches no PE, so the access ends with a message. */
static inline struct osh_ctx *osh_ctx_access(const void *handle)
{
	struct osh_ctx *ctx = osh_ctx(handle);

	return osh_likely(ctx != NULL) ? ctx : &osh_ctx_invalid;
}

/*
 * The number in the world of a PE of the context's team, or -1: it has none of that number. Numbers of the world,
 * where the context is of no team, are returned unchecked.
 */
static inline int osh_world_pe(const struct osh_ctx *ctx, int pe)
{
	if (ctx == &osh_ctx_default || ctx == &osh_ctx_internal || osh_likely(ctx->pes == NULL))
		return pe;
	return osh_likely((unsigned int)pe < (unsigned int)ctx->team_n) ? ctx->pes[pe] : -1;
}

/* `pes`: of its team, n of them, not copied; NULL and 0: of the world. It is for one thread until `locked` is set. */
void osh_ctx_init(struct osh_ctx *ctx, const int *pes, int n);
/* Frees what the context has, not itself. It has no endpoints any more: osh_far_fini() ends those and calls this. */
void osh_ctx_fini(struct osh_ctx *ctx);

/* Locks a context that several threads may use, and does nothing for any other. */
static inline void osh_ctx_lock(struct osh_ctx *ctx)
{
	if (ctx->locked)
		pthread_mutex_lock(&ctx->lock);
}

/* Unlocks what osh_ctx_lock() has locked. */
static inline void osh_ctx_unlock(struct osh_ctx *ctx)
{
	if (ctx->locked)
		pthread_mutex_unlock(&ctx->lock);
}

#endif
