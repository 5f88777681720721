/* SPDX-License-Identifier: BSD-2-Clause */
/* Making teams of the members of another, and ending them. */
#include <stdlib.h>

#include "osh_barrier.h"
#include "osh_heap.h"
#include "osh_msg.h"
#include "osh_order.h"
#include "osh_split.h"

/* What the members of a parent tell each other. */
struct split_msg {
	uint64_t offset; /* of the block in the new team, or OSH_HEAP_NONE: this PE failed */
	uint64_t what;	 /* the arguments: equal everywhere */
};

/*
 * All members of `parent` tell each other the offsets of their blocks in the team that each is in, NULL: in none, and
 * note those of the others in `team`.  `failed`: this PE has.  0; or -1, at all of them: one failed, or they do not
 * agree in `what`; then `team` is the caller's to free.
 */
static int agree(const char *fn, struct osh_team *parent, struct osh_team *team, bool failed,
		 uint64_t what)
{
	struct split_msg mine = { OSH_HEAP_NONE, what }, theirs;
	int rc = failed ? -1 : 0, at;

	if (!failed)
		mine.offset = team == NULL ? 0 : team->offset;
	parent->kind = OSH_KIND_TEAM;
	for (int i = 1; i < parent->n; i++)
		osh_msg_send(fn, parent, (parent->me + i) % parent->n, &mine, sizeof(mine));
	for (int i = 0; i < parent->n; i++) {
		int from = (parent->me + i) % parent->n;

		if (i == 0)
			theirs = mine;
		else
			osh_msg_recv(fn, parent, from, &theirs, sizeof(theirs));
		if (theirs.offset == OSH_HEAP_NONE || theirs.what != what) {
			rc = -1;
			continue;
		}
		for (at = 0; team != NULL && at < team->n; at++) {
			if (team->pes[at] == parent->pes[from])
				osh_team_note_block(fn, team, at, theirs.offset);
		}
	}
	return rc;
}

/* Takes a team of the program, which has no contexts, off the list and frees it, with nobody told; NULL is none. */
static void drop(struct osh_team *team)
{
	if (team == NULL)
		return;
	osh_team_forget(team);
	osh_team_free(team);
}

/*
 * The team of these members of the parent; none of them need be this PE (me < 0: then *made is NULL). Collective over
 * the parent. 0; or -1 at all: some member failed, or they do not agree.
 */
static int make(const char *fn, struct osh_team *parent, const int *pes, int n, int me,
		int num_contexts, uint64_t what, void **made)
{
	struct osh_team *team = NULL;
	int rc;

	if (me >= 0) {
		team = osh_team_alloc(pes, n, me);
		if (team != NULL)
			team->num_contexts = num_contexts;
	}
	rc = agree(fn, parent, team, me >= 0 && team == NULL, what);
	if (rc != 0) {
		osh_team_free(team);
		team = NULL;
	}
	if (team != NULL)
		osh_team_remember(team);
	*made = team;
	return rc;
}

/* A hash of both numbers. */
static uint64_t mix(uint64_t a, uint64_t b)
{
	return (a ^ b) * 0x9e3779b97f4a7c15ull + (a >> 29);
}

int osh_team_split_strided(const char *fn, struct osh_team *parent, int start, int stride, int size,
			   int num_contexts, void **made)
{
	uint64_t what = mix(mix((uint64_t)(uint32_t)start, (uint32_t)stride), (uint32_t)size);
	int *pes, me = -1, rc;
	long last;

	*made = NULL;
	if (parent == NULL)
		return -1;
	last = start + (long)stride * (size - 1);
	if (size < 1 || size > parent->n || start < 0 || start >= parent->n || last < 0 ||
	    last >= parent->n || (stride == 0 && size != 1)) {
		agree(fn, parent, NULL, true, what);
		return -1;
	}
	pes = malloc((size_t)size * sizeof(int));
	for (int i = 0; pes != NULL && i < size; i++) {
		int at = start + i * stride;

		pes[i] = parent->pes[at];
		if (at == parent->me)
			me = i;
	}
	if (pes == NULL) {
		agree(fn, parent, NULL, true, what);
		return -1;
	}
	rc = make(fn, parent, pes, size, me, num_contexts, what, made);
	free(pes);
	return rc;
}

int osh_team_split_2d(const char *fn, struct osh_team *parent, int xrange, int x_num_contexts,
		      void **x_made, int y_num_contexts, void **y_made)
{
	uint64_t what = mix(2, (uint32_t)xrange);
	int *pes, x, y, n, rc;

	*x_made = *y_made = NULL;
	if (parent == NULL)
		return -1;
	pes = malloc((size_t)parent->n * sizeof(int));
	if (xrange < 1 || pes == NULL) {
		free(pes);
		agree(fn, parent, NULL, true, what);
		return -1;
	}
	if (xrange > parent->n)
		xrange = parent->n;
	x = parent->me % xrange;
	y = parent->me / xrange;
	for (n = 0; n < xrange && y * xrange + n < parent->n; n++)
		pes[n] = parent->pes[y * xrange + n];
	rc = make(fn, parent, pes, n, x, x_num_contexts, what, x_made);
	for (n = 0; x + n * xrange < parent->n; n++)
		pes[n] = parent->pes[x + n * xrange];
	rc |= make(fn, parent, pes, n, y, y_num_contexts, what + 1, y_made);
	free(pes);
	if (rc != 0) {
		drop(*x_made);
		drop(*y_made);
		*x_made = *y_made = NULL;
	}
	return rc;
}

void osh_team_destroy(const char *fn, struct osh_team *team)
{
	if (team == NULL)
		return;
	if (team == osh_world || team == osh_shared)
		osh_fatal("%s: a predefined team cannot be destroyed", fn);
	if (!osh_team_is_remembered(team))
		osh_fatal("%s: %p is no team, or was destroyed already", fn, (void *)team);
	osh_team_end_contexts(team);
	/*
	 * After this nobody stores into the block, so it can be used again.  osh_sync() waits for its own messages;
	 * acknowledgements are not waited for, so osh_quiet() completes them first.
	 */
	team->ends = true;
	osh_quiet(&osh_ctx_internal);
	osh_sync(fn, team);
	drop(team);
}
