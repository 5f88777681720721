/* SPDX-License-Identifier: BSD-2-Clause */
/* Making teams of the members of another, and ending them: as in the specification. */
#ifndef OSH_SPLIT_H
#define OSH_SPLIT_H

#include "osh_team.h"

/* *made: a handle for the user, NULL for none. */
int osh_team_split_strided(const char *fn, struct osh_team *parent, int start, int stride, int size,
			   int num_contexts, void **made);
int osh_team_split_2d(const char *fn, struct osh_team *parent, int xrange, int x_num_contexts,
		      void **x_made, int y_num_contexts, void **y_made);
void osh_team_destroy(const char *fn, struct osh_team *team);

#endif
