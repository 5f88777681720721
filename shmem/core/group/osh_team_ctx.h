/* SPDX-License-Identifier: BSD-2-Clause */
/* Contexts of teams, as the program makes and ends them. */
#ifndef OSH_TEAM_CTX_H
#define OSH_TEAM_CTX_H

#include "osh_team.h"

/* *made: a context, which ends with the team. 0; or -1: no team, unknown options or no memory; then *made is NULL. */
int osh_ctx_create(const char *fn, struct osh_team *team, long options, void **made);
/* Completes the operations of a context and frees it; does nothing for NULL, and ends the job for the default one. */
void osh_ctx_destroy(const char *fn, struct osh_ctx *ctx);
/* The handle of its team, NULL where the context is NULL. */
void *osh_ctx_team(struct osh_ctx *ctx);
/* A hint without effect.  With SHMEM_DEBUG unknown bits and a missing config end the job, unless `ctx` is NULL. */
void osh_ctx_session_start(const char *fn, struct osh_ctx *ctx, long unknown_options,
			   long unknown_fields, bool no_config);

#endif
