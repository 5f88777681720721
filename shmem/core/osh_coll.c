/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Collectives that move data without changing it.  All put it where it belongs, in the memory of the
 * other members, and send a message behind it.  Few bytes are in the message itself.
 */
#include <stdlib.h>
#include <string.h>

#include "osh_coll.h"

#define PIPE_PIECE (64u << 10) /* bytes of a broadcast that go on before the rest has come */
#define RING_LEAST                                                                                 \
	4096u /* bytes of a block that goes from neighbour to neighbour where members are far */

void osh_coll_put(const char *fn, struct osh_team *team, int to, void *dest, const void *source,
		  size_t n)
{
	osh_put(fn, &osh_inner, dest, source, n, team->pes[to]);
}

/* ---- broadcast ------------------------------------------------------------------------------- */

/* The tree of a broadcast, in numbers that count from the root. */
struct bcast {
	int above;     /* -1: the root */
	int below[32]; /* the one with the most below it first */
	int count;
};

static void bcast_tree(struct bcast *b, const struct osh_team *team, int root, bool chain)
{
	int n = team->n, r = (team->me - root + n) % n, bit = 1;

	b->above = -1;
	b->count = 0;
	if (chain) {
		if (r > 0)
			b->above = r - 1;
		if (r + 1 < n)
			b->below[b->count++] = r + 1;
		return;
	}
	while (bit < n && !(r & bit))
		bit *= 2;
	if (r > 0)
		b->above = r - bit;
	for (bit /= 2; bit > 0; bit /= 2) {
		if (r + bit < n)
			b->below[b->count++] = r + bit;
	}
}

static int member(const struct osh_team *team, int root, int number)
{
	return (number + root) % team->n;
}

static void bcast_short(const char *fn, struct osh_team *team, void *dest, const void *source,
			size_t n, int root)
{
	uint8_t data[OSH_CELL_DATA];
	struct bcast b;

	bcast_tree(&b, team, root, false);
	if (b.above < 0) {
		memcpy(data, source, n);
	} else {
		osh_cell_recv(fn, team, member(team, root, b.above), data, n);
		memcpy(dest, data, n);
	}
	for (int i = 0; i < b.count; i++)
		osh_cell_send(fn, team, member(team, root, b.below[i]), data, n);
}

static void bcast_long(const char *fn, struct osh_team *team, void *dest, const void *source,
		       size_t n, int root)
{
	bool is_root = team->me == root;
	struct bcast b;

	bcast_tree(&b, team, root, !team->near && n > PIPE_PIECE);
	for (size_t at = 0; at < n; at += PIPE_PIECE) {
		size_t piece = osh_min(n - at, PIPE_PIECE);
		const uint8_t *from = is_root ? source : dest;

		if (!is_root)
			osh_coll_hear(fn, team, member(team, root, b.above));
		for (int i = 0; i < b.count; i++) {
			int to = member(team, root, b.below[i]);

			osh_coll_put(fn, team, to, (uint8_t *)dest + at, from + at, piece);
			osh_coll_tell(fn, team, to);
		}
	}
}

int osh_broadcast_others(const char *fn, struct osh_team *team, void *dest, const void *source,
			 size_t n, int root)
{
	if (team == NULL)
		return -1;
	osh_check(fn, team, dest, n, root);
	if (root < 0 || root >= team->n)
		osh_fatal("%s: the root is %d, and the team has PEs 0 to %d", fn, root,
			  team->n - 1);
	osh_coll_room(fn, dest, n);
	if (n == 0 || team->n == 1)
		return 0;
	if (n <= OSH_CELL_DATA)
		bcast_short(fn, team, dest, source, n, root);
	else
		bcast_long(fn, team, dest, source, n, root);
	return 0;
}

int osh_broadcast(const char *fn, struct osh_team *team, void *dest, const void *source, size_t n,
		  int root)
{
	int rc = osh_broadcast_others(fn, team, dest, source, n, root);

	if (rc == 0 && team->me == root && dest != source)
		memmove(dest, source, n);
	return rc;
}

/* ---- collect --------------------------------------------------------------------------------- */

/* Member i has the bytes from at[i] to at[i + 1] of the result. */
static void collect_direct(const char *fn, struct osh_team *team, uint8_t *dest, const void *source,
			   const size_t *at)
{
	size_t mine = at[team->me], n = at[team->me + 1] - mine;

	for (int i = 1; i < team->n; i++) {
		int to = (team->me + i) % team->n;

		osh_coll_put(fn, team, to, dest + mine, source, n);
		osh_coll_tell(fn, team, to);
	}
	osh_coll_copy(dest + mine, source, n);
	for (int i = 1; i < team->n; i++)
		osh_coll_hear(fn, team, (team->me + i) % team->n);
}

/* Each member passes on to the next what came last, so all links of a ring are busy with a block each. */
static void collect_ring(const char *fn, struct osh_team *team, uint8_t *dest, const void *source,
			 const size_t *at)
{
	int n = team->n, next = (team->me + 1) % n, last = (team->me + n - 1) % n, b = team->me;

	osh_coll_copy(dest + at[b], source, at[b + 1] - at[b]);
	for (int step = 1; step < n; step++) {
		osh_coll_put(fn, team, next, dest + at[b], dest + at[b], at[b + 1] - at[b]);
		osh_coll_tell(fn, team, next);
		osh_coll_hear(fn, team, last);
		b = (b + n - 1) % n;
	}
}

static void collect(const char *fn, struct osh_team *team, void *dest, const void *source,
		    const size_t *at)
{
	if (!team->near && team->n > 2 && at[team->n] / (size_t)team->n >= RING_LEAST)
		collect_ring(fn, team, dest, source, at);
	else
		collect_direct(fn, team, dest, source, at);
}

static size_t *offsets(const char *fn, const struct osh_team *team)
{
	size_t *at = malloc(((size_t)team->n + 1) * sizeof(*at));

	if (at == NULL)
		osh_fatal("%s: out of memory", fn);
	at[0] = 0;
	return at;
}

int osh_fcollect(const char *fn, struct osh_team *team, void *dest, const void *source, size_t n)
{
	size_t *at;

	if (team == NULL)
		return -1;
	if (n == 0)
		return 0;
	osh_check(fn, team, dest, n, 0);
	osh_coll_room(fn, dest, osh_times(n, (size_t)team->n));
	at = offsets(fn, team);
	for (int i = 0; i < team->n; i++)
		at[i + 1] = at[i] + n;
	collect(fn, team, dest, source, at);
	free(at);
	return 0;
}

int osh_collect(const char *fn, struct osh_team *team, void *dest, const void *source, size_t n)
{
	uint64_t mine = n, theirs;
	size_t *at;

	if (team == NULL)
		return -1;
	osh_check(fn, team, dest, 0, 0);
	at = offsets(fn, team);
	for (int i = 1; i < team->n; i++)
		osh_cell_send(fn, team, (team->me + i) % team->n, &mine, sizeof(mine));
	for (int i = 0; i < team->n; i++) {
		theirs = mine;
		if (i != team->me)
			osh_cell_recv(fn, team, i, &theirs, sizeof(theirs));
		at[i + 1] = osh_plus(at[i], theirs);
	}
	osh_coll_room(fn, dest, at[team->n]);
	collect(fn, team, dest, source, at);
	free(at);
	return 0;
}

/* ---- all to all ------------------------------------------------------------------------------ */

int osh_alltoall(const char *fn, struct osh_team *team, void *dest, const void *source, size_t n)
{
	const uint8_t *from = source;
	uint8_t *to = dest;

	if (team == NULL)
		return -1;
	if (n == 0)
		return 0;
	osh_check(fn, team, dest, n, 0);
	osh_coll_room(fn, dest, osh_times(n, (size_t)team->n));
	for (int i = 1; i < team->n; i++) {
		int other = (team->me + i) % team->n;

		osh_coll_put(fn, team, other, to + (size_t)team->me * n, from + (size_t)other * n,
			     n);
		osh_coll_tell(fn, team, other);
	}
	osh_coll_copy(to + (size_t)team->me * n, from + (size_t)team->me * n, n);
	for (int i = 1; i < team->n; i++)
		osh_coll_hear(fn, team, (team->me + i) % team->n);
	return 0;
}

/* Bytes over which the blocks of all members are spread. */
static size_t spread(const char *fn, const struct osh_team *team, ptrdiff_t stride, size_t elem,
		     size_t n)
{
	size_t steps = osh_times(n, (size_t)team->n) - 1;

	if (stride < 1)
		osh_fatal("%s: a stride of %td elements is less than 1", fn, stride);
	return osh_times(osh_plus(osh_times(steps, (size_t)stride), 1), elem);
}

int osh_alltoalls(const char *fn, struct osh_team *team, void *dest, const void *source,
		  ptrdiff_t dest_stride, ptrdiff_t source_stride, size_t elem, size_t n)
{
	ptrdiff_t size = (ptrdiff_t)elem, block = (ptrdiff_t)n;

	if (team == NULL)
		return -1;
	if (n == 0)
		return 0;
	osh_check(fn, team, dest, osh_times(n, elem), 0);
	osh_coll_room(fn, dest, spread(fn, team, dest_stride, elem, n));
	/* The source is read here only, so other memory than symmetric does no harm. */
	if (spread(fn, team, source_stride, elem, n) == SIZE_MAX)
		osh_bad_access(fn, source, SIZE_MAX, osh_pe.me);
	for (int i = 0; i < team->n; i++) {
		int other = (team->me + i) % team->n;

		osh_put_strided(fn, &osh_inner,
				(uint8_t *)dest + team->me * block * dest_stride * size,
				(const uint8_t *)source + other * block * source_stride * size,
				dest_stride * size, source_stride * size, elem, n,
				team->pes[other]);
		if (i > 0)
			osh_coll_tell(fn, team, other);
	}
	for (int i = 1; i < team->n; i++)
		osh_coll_hear(fn, team, (team->me + i) % team->n);
	return 0;
}
