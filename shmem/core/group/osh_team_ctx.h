/* SPDX-License-Identifier: BSD-2-Clause */
/* Contexts of teams, as the program makes and ends them. */
#ifndef OSH_TEAM_CTX_H
#define OSH_TEAM_CTX_H

#include "osh_team.h"

int osh_ctx_create(const char *fn, struct osh_team *team, long options, void **made);
void osh_ctx_destroy(const char *fn, struct osh_ctx *ctx);
/* The handle of its team. */
void *osh_ctx_team(struct osh_ctx *ctx);
/* A hint without effect.  With SHMEM_DEBUG unknown bits and a missing config are refused. */
void osh_ctx_session_start(const char *fn, struct osh_ctx *ctx, long unknown_options,
			   long unknown_fields, bool no_config);

#endif
