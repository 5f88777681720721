/* SPDX-License-Identifier: BSD-2-Clause */
/* The structure of a team, the first teams, and the list of those that the program made. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "osh_far.h"
#include "osh_heap.h"
#include "osh_team.h"

static struct {
	pthread_mutex_t lock;
	struct osh_heap *internal_heap; /* the library's part of the heap */
	struct osh_team *made;		/* the teams that the program made */
} teams = { .lock = PTHREAD_MUTEX_INITIALIZER };

struct osh_team *osh_world, *osh_shared, *osh_setup_team;

struct osh_team *osh_team(const void *handle)
{
	if (osh_unlikely(osh_pe.child))
		osh_not_in_job(NULL);
	switch ((uintptr_t)handle) {
	case OSH_TEAM_INVALID_HANDLE:
		return NULL;
	case OSH_TEAM_WORLD_HANDLE:
		return osh_world;
	case OSH_TEAM_SHARED_HANDLE:
		return osh_shared;
	default:
		return (struct osh_team *)(uintptr_t)handle;
	}
}

void *osh_team_handle(struct osh_team *team)
{
	if (team == osh_world)
		return (void *)(uintptr_t)OSH_TEAM_WORLD_HANDLE;
	return team == osh_shared ? (void *)(uintptr_t)OSH_TEAM_SHARED_HANDLE : team;
}

/* ---- the structure --------------------------------------------------------------------------- */

void osh_team_free(struct osh_team *team)
{
	if (team == NULL)
		return;
	if (team->inboxes != NULL) {
		pthread_mutex_lock(&teams.lock);
		osh_heap_free(teams.internal_heap, team->offset);
		pthread_mutex_unlock(&teams.lock);
	}
	free(team->pes);
	free(team->offsets);
	free(team->flows);
	free(team->places);
	free(team);
}

/* Takes a block of the heap for the inboxes of n members, all of them empty, and the lock itself. 0, or -1: no room. */
static int take_block(struct osh_team *team, int n)
{
	pthread_mutex_lock(&teams.lock);
	team->offset = osh_heap_alloc(teams.internal_heap, osh_block_bytes(n), OSH_CACHE_LINE);
	pthread_mutex_unlock(&teams.lock);
	if (team->offset == OSH_HEAP_NONE)
		return -1;
	team->inboxes = osh_heap_at(team->offset);
	team->scratch = (uint8_t *)team->inboxes + osh_scratch_at(n);
	memset(team->inboxes, 0, osh_scratch_at(n));
	for (int i = 0; i < n; i++) {
		struct osh_inbox *m = &team->inboxes[i];

		for (unsigned int c = 0; c < OSH_MSG_SLOTS; c++)
			atomic_init(&m->slots[c].seq, osh_counted(OSH_KIND_EMPTY, 0));
		atomic_init(&m->ack.taken, osh_counted(OSH_KIND_EMPTY, 0));
	}
	return 0;
}

struct osh_team *osh_team_alloc(const int *pes, int n, int me)
{
	struct osh_team *team = calloc(1, sizeof(*team));

	if (team == NULL)
		return NULL;
	team->n = n;
	team->me = me;
	team->near = true;
	team->pes = malloc((size_t)n * sizeof(int));
	team->offsets = calloc((size_t)n, sizeof(size_t));
	team->flows = calloc((size_t)n, sizeof(struct osh_flow));
	team->places = malloc(2 * (size_t)n * sizeof(uint8_t *));
	if (team->pes == NULL || team->offsets == NULL || team->flows == NULL ||
	    team->places == NULL || take_block(team, n) != 0) {
		osh_team_free(team);
		return NULL;
	}
	memcpy(team->pes, pes, (size_t)n * sizeof(int));
	for (int i = 0; i < n; i++)
		team->near &= osh_pe.peers[pes[i]].near;
	return team;
}

/* ---- the first teams ------------------------------------------------------------------------- */

/* A team whose blocks have one offset at all members, since all PEs have allocated alike so far. NULL: no memory. */
static struct osh_team *first_team(const int *pes, int n, int me)
{
	struct osh_team *team = osh_team_alloc(pes, n, me);

	for (int i = 0; team != NULL && i < n; i++)
		team->offsets[i] = team->offset;
	return team;
}

int osh_teams_open(void)
{
	int *pes = malloc((size_t)osh_pe.n * sizeof(int)), near = 0, me = 0;

	teams.internal_heap = osh_heap_create(osh_pe.internal_bytes);
	if (pes == NULL || teams.internal_heap == NULL) {
		free(pes);
		return -1;
	}
	for (int i = 0; i < osh_pe.n; i++)
		pes[i] = i;
	osh_world = first_team(pes, osh_pe.n, osh_pe.me);
	osh_setup_team = first_team(pes, osh_pe.n, osh_pe.me);
	/* Before the first block whose length may differ, so that its offset is equal in all PEs. */
	osh_pe.extents_at = osh_heap_alloc(teams.internal_heap, sizeof(struct osh_extent_table),
					   OSH_CACHE_LINE);
	for (int i = 0; i < osh_pe.n; i++) {
		if (i == osh_pe.me)
			me = near;
		if (osh_pe.peers[i].near)
			pes[near++] = i;
	}
	osh_shared = first_team(pes, near, me);
	free(pes);
	if (osh_world == NULL || osh_setup_team == NULL || osh_shared == NULL)
		return -1;
	return osh_pe.extents_at == OSH_HEAP_NONE ? -1 : 0;
}

void osh_team_end_contexts(struct osh_team *team)
{
	struct osh_ctx *ctx;

	while ((ctx = team->contexts) != NULL) {
		team->contexts = ctx->next;
		osh_far_fini(ctx);
		free(ctx);
	}
}

void osh_teams_end(struct osh_team **list)
{
	struct osh_team *team;

	while ((team = *list) != NULL) {
		*list = team->next;
		osh_team_end_contexts(team);
		osh_team_free(team);
	}
}

void osh_teams_close(void)
{
	osh_teams_end(&teams.made);
	osh_team_end_contexts(osh_world);
	osh_team_end_contexts(osh_shared);
	osh_team_free(osh_world);
	osh_team_free(osh_shared);
	osh_team_free(osh_setup_team);
	osh_world = osh_shared = osh_setup_team = NULL;
	osh_heap_destroy(teams.internal_heap);
	teams.internal_heap = NULL;
}

void osh_team_note_block(const char *fn, struct osh_team *team, int member, uint64_t offset)
{
	if (offset % OSH_CACHE_LINE != 0 || offset > osh_pe.internal_bytes ||
	    osh_block_bytes(team->n) > osh_pe.internal_bytes - offset)
		osh_fatal("%s: PE %d says that its part of the team is at offset %#llx of its heap",
			  fn, team->pes[member], (unsigned long long)offset);
	team->offsets[member] = (size_t)offset;
}

/* ---- the teams of the program ----------------------------------------------------------------- */

void osh_team_remember(struct osh_team *team)
{
	pthread_mutex_lock(&teams.lock);
	team->next = teams.made;
	teams.made = team;
	pthread_mutex_unlock(&teams.lock);
}

void osh_team_forget(struct osh_team *team)
{
	struct osh_team **at = &teams.made;

	pthread_mutex_lock(&teams.lock);
	while (*at != NULL && *at != team)
		at = &(*at)->next;
	if (*at != NULL)
		*at = team->next;
	pthread_mutex_unlock(&teams.lock);
}

bool osh_team_is_remembered(const struct osh_team *team)
{
	const struct osh_team *at;

	pthread_mutex_lock(&teams.lock);
	for (at = teams.made; at != NULL && at != team; at = at->next)
		;
	pthread_mutex_unlock(&teams.lock);
	return at != NULL;
}

/* ---- queries --------------------------------------------------------------------------------- */

int osh_team_my_pe(struct osh_team *team)
{
	return team == NULL ? -1 : team->me;
}

int osh_team_n_pes(struct osh_team *team)
{
	return team == NULL ? -1 : team->n;
}

int osh_team_get_num_contexts(struct osh_team *team)
{
	return team == NULL ? -1 : team->num_contexts;
}

int osh_team_translate_pe(struct osh_team *from, int pe, struct osh_team *to)
{
	if (from == NULL || to == NULL || pe < 0 || pe >= from->n)
		return -1;
	if (to == osh_world)
		return from->pes[pe];
	for (int i = 0; i < to->n; i++) {
		if (to->pes[i] == from->pes[pe])
			return i;
	}
	return -1;
}
