/* SPDX-License-Identifier: BSD-2-Clause */
/* Making teams of the members of another, and ending them: as in the specification. */
#ifndef OSH_SPLIT_H
#define OSH_SPLIT_H

#include "osh_team.h"

/*
 * *made: a handle for the user, NULL for none, as in a PE that is no member. 0; or -1, at all members of the parent:
 * a bad argument, different ones, or no memory; then there is no new team.
 */
int osh_team_split_strided(const char *fn, struct osh_team *parent, int start, int stride, int size,
			   int num_contexts, void **made);
/* As osh_team_split_strided(), for two teams, of this member's row and column: both are made, or none. */
int osh_team_split_2d(const char *fn, struct osh_team *parent, int xrange, int x_num_contexts,
		      void **x_made, int y_num_contexts, void **y_made);
/*
 * Frees the team, collectively over the members, for which it waits, and ends its contexts. Does nothing for NULL; what
 * is no team of the program, as the predefined ones, ends the job.
 */
void osh_team_destroy(const char *fn, struct osh_team *team);

#endif
