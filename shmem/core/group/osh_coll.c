/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Collectives that move data without changing it.  All put it where it belongs, in the memory of the
 * other members, and send a message after it.  Few bytes are in the message itself.
 */
#include <stdlib.h>
#include <string.h>

#include "osh_check.h"
#include "osh_coll.h"
#include "osh_rma.h"

#define PIPE_CHUNK (64u << 10)	/* bytes of a broadcast that go on before the rest has come */
#define CHAIN_LEAST (64u << 10) /* a broadcast of more goes along a chain where members are far */
#define RING_LEAST                                                                                 \
	4096u /* bytes of a block that goes from neighbour to neighbour where members are far */

void osh_coll_put(const char *fn, struct osh_team *team, int to, void *dest, const void *source,
		  size_t n)
{
	osh_put(fn, &osh_ctx_internal, dest, source, n, team->pes[to]);
}

/* ---- broadcast ------------------------------------------------------------------------------- */

/* Who gives this member the data of a broadcast and to whom it gives them, in numbers that count from the root. */
struct bcast {
	int above;     /* -1: the root */
	int below[32]; /* the one with the most below it first; not of the flat one */
	int count;
	bool flat;
};

/*
 * Adds to *b, which has neither yet, from whom and to whom number r of n passes the data in a tree; numbers count from
 * the root.
 */
static void bcast_tree(struct bcast *b, int r, int n)
{
	int bit = 1;

	while (bit < n && !(r & bit))
		bit *= 2;
	if (r > 0)
		b->above = r - bit;
	for (bit /= 2; bit > 0; bit /= 2) {
		if (r + bit < n)
			b->below[b->count++] = r + bit;
	}
}

/*
 * Returns the algorithm for n bytes: the one that the environment names, else a chain for many bytes if members may
 * reach each other over other hosts only, else a tree.
 */
static int bcast_choose(const struct osh_team *team, size_t n)
{
	if (osh_env.broadcast != OSH_AUTO)
		return osh_env.broadcast;
	return osh_team_has_relays(team) && n > CHAIN_LEAST ? OSH_BROADCAST_CHAIN
							    : OSH_BROADCAST_TREE;
}

/* Fills *b for this member, for n bytes that come from `root`. */
static void bcast_plan(struct bcast *b, const struct osh_team *team, size_t n, int root)
{
	int r = (team->me - root + team->n) % team->n;

	*b = (struct bcast){ .above = r > 0 ? r - 1 : -1 };
	switch (bcast_choose(team, n)) {
	case OSH_BROADCAST_CHAIN:
		if (r + 1 < team->n)
			b->below[b->count++] = r + 1;
		break;
	case OSH_BROADCAST_FLAT:
		b->flat = true;
		b->above = r > 0 ? 0 : -1;
		b->count = r > 0 ? 0 : team->n - 1;
		break;
	default:
		bcast_tree(b, r, team->n);
	}
}

/* The member that has this number, counted from the root. */
static int member(const struct osh_team *team, int root, int number)
{
	return (number + root) % team->n;
}

/*
 * Passes n bytes from the source of `root` to the dest of all others; its own dest is not written. Longer data go on
 * in chunks, before the rest has come.
 */
static void bcast(const char *fn, struct osh_team *team, uint8_t *dest, const uint8_t *source,
		  size_t n, int root)
{
	struct bcast b;

	bcast_plan(&b, team, n, root);
	for (size_t at = 0; at < n; at += PIPE_CHUNK) {
		size_t chunk = osh_min(n - at, PIPE_CHUNK);
		const uint8_t *from = b.above < 0 ? source + at : dest + at;

		if (b.above >= 0)
			osh_coll_recv(fn, team, member(team, root, b.above), dest + at, chunk);
		for (int i = 0; i < b.count; i++) {
			int to = member(team, root, b.flat ? i + 1 : b.below[i]);

			osh_coll_send(fn, team, to, dest + at, from, chunk);
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
	team->kind = OSH_KIND_BROADCAST;
	bcast(fn, team, dest, source, n, root);
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

/* Each member sends its block to all others. Member i has the bytes from at[i] to at[i + 1] of the result. */
static void collect_direct(const char *fn, struct osh_team *team, uint8_t *dest, const void *source,
			   const size_t *at)
{
	size_t mine = at[team->me], n = at[team->me + 1] - mine;

	for (int i = 1; i < team->n; i++) {
		int to = (team->me + i) % team->n;

		osh_coll_send(fn, team, to, dest + mine, source, n);
	}
	osh_coll_copy(dest + mine, source, n);
	for (int i = 1; i < team->n; i++) {
		int from = (team->me + i) % team->n;

		osh_coll_recv(fn, team, from, dest + at[from], at[from + 1] - at[from]);
	}
}

/*
 * As collect_direct(), but each member passes on to the next what came last, so all links of a ring are busy with a
 * block each.
 */
static void collect_ring(const char *fn, struct osh_team *team, uint8_t *dest, const void *source,
			 const size_t *at)
{
	int n = team->n, next = (team->me + 1) % n, last = (team->me + n - 1) % n, b = team->me;

	osh_coll_copy(dest + at[b], source, at[b + 1] - at[b]);
	for (int step = 1; step < n; step++) {
		osh_coll_send(fn, team, next, dest + at[b], dest + at[b], at[b + 1] - at[b]);
		b = (b + n - 1) % n;
		osh_coll_recv(fn, team, last, dest + at[b], at[b + 1] - at[b]);
	}
}

/*
 * Collects by the algorithm that the environment names, or else by the one for such a team and length; `at` as in
 * collect_direct(), equal at all members. The caller has set the kind of the team.
 */
static void collect(const char *fn, struct osh_team *team, void *dest, const void *source,
		    const size_t *at)
{
	bool ring = osh_team_has_relays(team) && at[team->n] / (size_t)team->n >= RING_LEAST;

	if (osh_env.collect == OSH_AUTO ? ring : osh_env.collect == OSH_COLLECT_RING)
		collect_ring(fn, team, dest, source, at);
	else
		collect_direct(fn, team, dest, source, at);
}

/*
 * Room for an offset for each member and one more, the first of them 0 and the others not set, for the caller to free;
 * without memory the job ends.
 */
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
	team->kind = OSH_KIND_COLLECT;
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
	team->kind = OSH_KIND_COLLECT;
	at = offsets(fn, team);
	for (int i = 1; i < team->n; i++)
		osh_msg_send(fn, team, (team->me + i) % team->n, &mine, sizeof(mine));
	for (int i = 0; i < team->n; i++) {
		theirs = mine;
		if (i != team->me)
			osh_msg_recv(fn, team, i, &theirs, sizeof(theirs));
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
	team->kind = OSH_KIND_ALLTOALL;
	for (int i = 1; i < team->n; i++) {
		int other = (team->me + i) % team->n;

		osh_coll_send(fn, team, other, to + (size_t)team->me * n, from + (size_t)other * n,
			      n);
	}
	osh_coll_copy(to + (size_t)team->me * n, from + (size_t)team->me * n, n);
	for (int i = 1; i < team->n; i++) {
		int other = (team->me + i) % team->n;

		osh_coll_recv(fn, team, other, to + (size_t)other * n, n);
	}
	return 0;
}

/*
 * Bytes over which the blocks of all members, n elements each and not 0, are spread, SIZE_MAX if they are too many; a
 * stride below 1 ends the job.
 */
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
	team->kind = OSH_KIND_ALLTOALL;
	for (int i = 0; i < team->n; i++) {
		int other = (team->me + i) % team->n;

		osh_put_strided(fn, &osh_ctx_internal,
				(uint8_t *)dest + team->me * block * dest_stride * size,
				(const uint8_t *)source + other * block * source_stride * size,
				dest_stride * size, source_stride * size, elem, n,
				team->pes[other]);
		if (i > 0)
			osh_msg_signal(fn, team, other);
	}
	for (int i = 1; i < team->n; i++)
		osh_msg_await(fn, team, (team->me + i) % team->n);
	return 0;
}
