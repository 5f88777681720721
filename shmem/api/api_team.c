// SPDX-License-Identifier: BSD-2-Clause
/* Teams, contexts and sessions. */
#include "api.h"

API(int, shmem_team_my_pe, (shmem_team_t team))
{
	return osh_team_my_pe(osh_team(team));
}

API(int, shmem_team_n_pes, (shmem_team_t team))
{
	return osh_team_n_pes(osh_team(team));
}

API(int, shmem_team_get_config,
    (shmem_team_t handle, long config_mask, shmem_team_config_t *config))
{
	struct osh_team *team = osh_team(handle);

	if (team == NULL)
		return -1;
	if (config_mask & SHMEM_TEAM_NUM_CONTEXTS)
		config->num_contexts = osh_team_get_num_contexts(team);
	return 0;
}

API(int, shmem_team_translate_pe, (shmem_team_t src_team, int src_pe, shmem_team_t dest_team))
{
	return osh_team_translate_pe(osh_team(src_team), src_pe, osh_team(dest_team));
}

/* The number of contexts of a config, 0 where there is none or the mask leaves it out. */
static int num_contexts_of(const shmem_team_config_t *config, long mask)
{
	return config != NULL && (mask & SHMEM_TEAM_NUM_CONTEXTS) ? config->num_contexts : 0;
}

API(int, shmem_team_split_strided,
    (shmem_team_t handle, int start, int stride, int size, const shmem_team_config_t *config,
     long config_mask, shmem_team_t *new_team))
{
	struct osh_team *parent = osh_team(handle);
	void *made = NULL;
	int error = -1;

	if (parent != NULL)
		error = osh_team_split_strided("shmem_team_split_strided", parent, start, stride,
					       size, num_contexts_of(config, config_mask), &made);
	*new_team = error ? SHMEM_TEAM_INVALID : made;
	return error;
}

API(int, shmem_team_split_2d,
    (shmem_team_t handle, int xrange, const shmem_team_config_t *xaxis_config, long xaxis_mask,
     shmem_team_t *xaxis_team, const shmem_team_config_t *yaxis_config, long yaxis_mask,
     shmem_team_t *yaxis_team))
{
	struct osh_team *parent = osh_team(handle);
	void *x_made = NULL, *y_made = NULL;
	int error = -1;

	if (parent != NULL)
		error = osh_team_split_2d("shmem_team_split_2d", parent, xrange,
					  num_contexts_of(xaxis_config, xaxis_mask), &x_made,
					  num_contexts_of(yaxis_config, yaxis_mask), &y_made);
	*xaxis_team = error ? SHMEM_TEAM_INVALID : x_made;
	*yaxis_team = error ? SHMEM_TEAM_INVALID : y_made;
	return error;
}

API(void, shmem_team_destroy, (shmem_team_t handle))
{
	struct osh_team *team = osh_team(handle);

	if (team != NULL)
		osh_team_destroy("shmem_team_destroy", team);
}

/* ---- Contexts -------------------------------------------------------------------------------- */

/* 0; or -1 with *ctx SHMEM_CTX_INVALID, also where the handle is SHMEM_TEAM_INVALID. */
static int create_ctx(const char *fn, shmem_team_t handle, long options, shmem_ctx_t *ctx)
{
	struct osh_team *team = osh_team(handle);
	void *made = NULL;
	int error = -1;

	if (team != NULL)
		error = osh_ctx_create(fn, team, options, &made);
	*ctx = error ? SHMEM_CTX_INVALID : made;
	return error;
}

API(int, shmem_ctx_create, (long options, shmem_ctx_t *ctx))
{
	return create_ctx("shmem_ctx_create", SHMEM_TEAM_WORLD, options, ctx);
}

API(int, shmem_team_create_ctx, (shmem_team_t team, long options, shmem_ctx_t *ctx))
{
	return create_ctx("shmem_team_create_ctx", team, options, ctx);
}

API(void, shmem_ctx_destroy, (shmem_ctx_t handle))
{
	struct osh_ctx *ctx = osh_ctx(handle);

	if (ctx != NULL)
		osh_ctx_destroy("shmem_ctx_destroy", ctx);
}

API(int, shmem_ctx_get_team, (shmem_ctx_t handle, shmem_team_t *team))
{
	struct osh_ctx *ctx = osh_ctx(handle);

	*team = ctx == NULL ? SHMEM_TEAM_INVALID : osh_ctx_team(ctx);
	return ctx == NULL ? -1 : 0;
}

API(void, shmem_ctx_session_start,
    (shmem_ctx_t handle, long options, const shmem_ctx_session_config_t *config, long config_mask))
{
	osh_ctx_session_start("shmem_ctx_session_start", osh_ctx(handle),
			      options & ~SHMEM_CTX_SESSION_BATCH,
			      config_mask & ~SHMEM_CTX_SESSION_TOTAL_OPS,
			      config == NULL && config_mask != 0);
}

API(void, shmem_ctx_session_stop, (shmem_ctx_t handle)) {}
