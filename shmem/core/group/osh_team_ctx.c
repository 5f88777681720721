/* SPDX-License-Identifier: BSD-2-Clause */
#include <pthread.h>
#include <stdlib.h>

#include "osh_env.h"
#include "osh_far.h"
#include "osh_team_ctx.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the lists of all teams */

int osh_ctx_create(const char *fn, struct osh_team *team, long options, void **made)
{
	struct osh_ctx *ctx;

	*made = NULL;
	if (team == NULL || (options & ~OSH_CTX_OPTIONS) != 0)
		return -1;
	ctx = malloc(sizeof(*ctx));
	if (ctx == NULL)
		return -1;
	osh_ctx_init(ctx, team == osh_world ? NULL : team->pes, team == osh_world ? 0 : team->n);
	ctx->team = team;
	ctx->locked = osh_pe.level == OSH_THREAD_MULTIPLE &&
		      !(options & (OSH_CTX_PRIVATE | OSH_CTX_SERIALIZED));
	pthread_mutex_lock(&lock);
	ctx->next = team->contexts;
	team->contexts = ctx;
	pthread_mutex_unlock(&lock);
	*made = ctx;
	return 0;
}

void osh_ctx_destroy(const char *fn, struct osh_ctx *ctx)
{
	struct osh_ctx **at;

	if (ctx == NULL)
		return;
	if (ctx == &osh_ctx_default)
		osh_fatal("%s: the default context cannot be destroyed", fn);
	pthread_mutex_lock(&lock);
	at = &ctx->team->contexts;
	while (*at != NULL && *at != ctx)
		at = &(*at)->next;
	if (*at != NULL)
		*at = ctx->next;
	pthread_mutex_unlock(&lock);
	osh_far_fini(ctx);
	free(ctx);
}

void *osh_ctx_team(struct osh_ctx *ctx)
{
	if (ctx == NULL)
		return NULL;
	return osh_team_handle(ctx->team == NULL ? osh_world : ctx->team);
}

/* Near operations are complete at once, and a VI gains nothing from writes that are posted together. */
void osh_ctx_session_start(const char *fn, struct osh_ctx *ctx, long unknown_options,
			   long unknown_fields, bool no_config)
{
	if (ctx == NULL || !osh_env.debug)
		return;
	if (unknown_options != 0 || unknown_fields != 0)
		osh_fatal("%s: options 0x%lx and config_mask 0x%lx are not those of OpenSHMEM 1.6",
			  fn, unknown_options, unknown_fields);
	if (no_config)
		osh_fatal("%s: config_mask names a field, and config is NULL", fn);
}
