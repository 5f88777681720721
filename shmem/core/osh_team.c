/* SPDX-License-Identifier: BSD-2-Clause */
/* Making and ending teams. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "osh_heap.h"
#include "osh_link.h"
#include "osh_team.h"

static struct {
	pthread_mutex_t lock;
	struct osh_heap *inner; /* the library's part of the heap */
	struct osh_team *made;	/* the teams that the program made */
} teams = { .lock = PTHREAD_MUTEX_INITIALIZER };

struct osh_team *osh_team(const void *handle)
{
	if (osh_unlikely(osh_pe.child))
		osh_not_in_job(NULL);
	switch ((uintptr_t)handle) {
	case 0:
		return NULL;
	case 1:
		return osh_world;
	case 2:
		return osh_shared;
	default:
		return (struct osh_team *)(uintptr_t)handle;
	}
}

void *osh_team_handle(struct osh_team *team)
{
	if (team == osh_world)
		return (void *)1;
	return team == osh_shared ? (void *)2 : team;
}

/* ---- the structure --------------------------------------------------------------------------- */

static void team_free(struct osh_team *team)
{
	if (team == NULL)
		return;
	if (team->mine != NULL) {
		pthread_mutex_lock(&teams.lock);
		osh_heap_free(teams.inner, team->offset);
		pthread_mutex_unlock(&teams.lock);
	}
	free(team->pes);
	free(team->offsets);
	free(team->lines);
	free(team->places);
	free(team);
}

/* Takes a block of the heap for the cells of n members, all of them empty. */
static int take_block(struct osh_team *team, int n)
{
	pthread_mutex_lock(&teams.lock);
	team->offset = osh_heap_alloc(teams.inner, osh_block_bytes(n), OSH_LINE);
	pthread_mutex_unlock(&teams.lock);
	if (team->offset == OSH_HEAP_NONE)
		return -1;
	team->mine = osh_heap_at(team->offset);
	team->scratch = (uint8_t *)team->mine + osh_scratch_at(n);
	memset(team->mine, 0, osh_scratch_at(n));
	for (int i = 0; i < n; i++) {
		struct osh_mailbox *m = &team->mine[i];

		for (unsigned int c = 0; c < OSH_CELLS; c++)
			atomic_init(&m->cells[c].seq, osh_counted(OSH_KIND_EMPTY, 0));
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
	team->lines = calloc((size_t)n, sizeof(struct osh_line));
	team->places = malloc(2 * (size_t)n * sizeof(uint8_t *));
	if (team->pes == NULL || team->offsets == NULL || team->lines == NULL ||
	    team->places == NULL || take_block(team, n) != 0) {
		team_free(team);
		return NULL;
	}
	memcpy(team->pes, pes, (size_t)n * sizeof(int));
	for (int i = 0; i < n; i++)
		team->near &= osh_pe.peers[pes[i]].near;
	return team;
}

/* ---- the first teams ------------------------------------------------------------------------- */

/* Every member allocates alike, so the offsets are equal. */
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

	teams.inner = osh_heap_create(osh_pe.inner);
	if (pes == NULL || teams.inner == NULL) {
		free(pes);
		return -1;
	}
	for (int i = 0; i < osh_pe.n; i++)
		pes[i] = i;
	osh_world = first_team(pes, osh_pe.n, osh_pe.me);
	osh_introducing = first_team(pes, osh_pe.n, osh_pe.me);
	for (int i = 0; i < osh_pe.n; i++) {
		if (i == osh_pe.me)
			me = near;
		if (osh_pe.peers[i].near)
			pes[near++] = i;
	}
	osh_shared = first_team(pes, near, me);
	free(pes);
	return osh_world == NULL || osh_introducing == NULL || osh_shared == NULL ? -1 : 0;
}

static void end_contexts(struct osh_team *team)
{
	struct osh_ctx *ctx;

	while ((ctx = team->contexts) != NULL) {
		team->contexts = ctx->next;
		osh_ctx_fini(ctx);
		free(ctx);
	}
}

void osh_teams_end(struct osh_team **list)
{
	struct osh_team *team;

	while ((team = *list) != NULL) {
		*list = team->next;
		end_contexts(team);
		team_free(team);
	}
}

void osh_teams_close(void)
{
	osh_teams_end(&teams.made);
	end_contexts(osh_world);
	end_contexts(osh_shared);
	team_free(osh_world);
	team_free(osh_shared);
	team_free(osh_introducing);
	osh_world = osh_shared = osh_introducing = NULL;
	osh_heap_destroy(teams.inner);
	teams.inner = NULL;
}

void osh_team_note_block(const char *fn, struct osh_team *team, int member, uint64_t offset)
{
	if (offset % OSH_LINE != 0 || offset > osh_pe.inner ||
	    osh_block_bytes(team->n) > osh_pe.inner - offset)
		osh_fatal("%s: PE %d says that its part of the team is at offset %#llx of its heap",
			  fn, team->pes[member], (unsigned long long)offset);
	team->offsets[member] = (size_t)offset;
}

/* ---- splitting ------------------------------------------------------------------------------- */

/* What the members of a parent tell each other. */
struct introduction {
	uint64_t offset; /* of the block in the new team, or OSH_HEAP_NONE: this PE failed */
	uint64_t what;	 /* the arguments: equal everywhere */
};

/*
 * All members of `parent` tell each other the offsets of their blocks in the team that each is in,
 * NULL: in none.  0; or -1: one failed, or they do not agree.
 */
static int introduce(const char *fn, struct osh_team *parent, struct osh_team *team, bool failed,
		     uint64_t what)
{
	struct introduction mine = { OSH_HEAP_NONE, what }, theirs;
	int rc = failed ? -1 : 0, at;

	if (!failed)
		mine.offset = team == NULL ? 0 : team->offset;
	parent->kind = OSH_KIND_TEAM;
	for (int i = 1; i < parent->n; i++)
		osh_cell_send(fn, parent, (parent->me + i) % parent->n, &mine, sizeof(mine));
	for (int i = 0; i < parent->n; i++) {
		int from = (parent->me + i) % parent->n;

		if (i == 0)
			theirs = mine;
		else
			osh_cell_recv(fn, parent, from, &theirs, sizeof(theirs));
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

/* The program may leave teams to shmem_finalize, which has to find them. */
static void remember(struct osh_team *team)
{
	pthread_mutex_lock(&teams.lock);
	team->next = teams.made;
	teams.made = team;
	pthread_mutex_unlock(&teams.lock);
}

static void forget(struct osh_team *team)
{
	struct osh_team **at = &teams.made;

	pthread_mutex_lock(&teams.lock);
	while (*at != NULL && *at != team)
		at = &(*at)->next;
	if (*at != NULL)
		*at = team->next;
	pthread_mutex_unlock(&teams.lock);
}

static bool is_remembered(const struct osh_team *team)
{
	const struct osh_team *at;

	pthread_mutex_lock(&teams.lock);
	for (at = teams.made; at != NULL && at != team; at = at->next)
		;
	pthread_mutex_unlock(&teams.lock);
	return at != NULL;
}

static void drop(struct osh_team *team)
{
	if (team == NULL)
		return;
	forget(team);
	team_free(team);
}

/* The team of these members of the parent; none of them need be this PE. Collective over the parent. */
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
	rc = introduce(fn, parent, team, me >= 0 && team == NULL, what);
	if (rc != 0) {
		team_free(team);
		team = NULL;
	}
	if (team != NULL)
		remember(team);
	*made = team;
	return rc;
}

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
		introduce(fn, parent, NULL, true, what);
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
		introduce(fn, parent, NULL, true, what);
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
		introduce(fn, parent, NULL, true, what);
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
	if (!is_remembered(team))
		osh_fatal("%s: %p is no team, or was destroyed already", fn, (void *)team);
	end_contexts(team);
	/*
	 * Behind this nobody stores into the block, so it can be used again.  The messages of the synchronisation are
	 * waited for, but those that told how many were taken are not: they are complete before it.
	 */
	team->ends = true;
	osh_quiet(&osh_inner);
	osh_sync(fn, team);
	drop(team);
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
