/* SPDX-License-Identifier: BSD-2-Clause */
/* Synchronisation of the members of a team, by messages without data. */
#include "osh_barrier.h"
#include "osh_check.h"
#include "osh_env.h"
#include "osh_msg.h"
#include "osh_order.h"
#include "osh_target.h"

/* Synchronises all members: in round k each signals the one 2^k after it, so all know of all after log2(n) rounds. */
static void dissemination(const char *fn, struct osh_team *team)
{
	for (int step = 1; step < team->n; step *= 2) {
		int to = team->me + step, from = team->me - step;

		osh_msg_signal(fn, team, to < team->n ? to : to - team->n);
		osh_msg_await(fn, team, from >= 0 ? from : from + team->n);
	}
}

/* Synchronises all members, up a tree in which a member has up to four below it, and down again. */
static void tree(const char *fn, struct osh_team *team)
{
	enum { BELOW = 4 };
	int first = team->me * BELOW + 1, end = first + BELOW < team->n ? first + BELOW : team->n;

	for (int i = first; i < end; i++)
		osh_msg_await(fn, team, i);
	if (team->me > 0) {
		osh_msg_signal(fn, team, (team->me - 1) / BELOW);
		osh_msg_await(fn, team, (team->me - 1) / BELOW);
	}
	for (int i = first; i < end; i++)
		osh_msg_signal(fn, team, i);
}

/*
 * Synchronises all members, as published for rings: once round to learn that all are there, once round to release
 * them.
 */
static void ring(const char *fn, struct osh_team *team)
{
	int next = (team->me + 1) % team->n, last = (team->me + team->n - 1) % team->n;

	for (int round = 0; round < 2; round++) {
		if (team->me == 0)
			osh_msg_signal(fn, team, next);
		osh_msg_await(fn, team, last);
		if (team->me != 0)
			osh_msg_signal(fn, team, next);
	}
}

#define TREE_MAX 5 /* members of a team with relays; docs/openshmem.md has the figures */

/* Returns the algorithm: the one that the environment names, or else the one for such a team. */
static int choose(const struct osh_team *team)
{
	if (osh_env.barrier != OSH_AUTO)
		return osh_env.barrier;
	if (!osh_team_has_relays(team))
		return OSH_BARRIER_DISSEMINATION;
	return team->n <= TREE_MAX ? OSH_BARRIER_TREE : OSH_BARRIER_RING;
}

/*
 * Waits until all members of a team of two or more are in a barrier of this kind, which it sets as that of the team; a
 * member in anything else ends the job.
 */
static void sync_members(const char *fn, struct osh_team *team, enum osh_kind kind)
{
	team->kind = kind;
	switch (choose(team)) {
	case OSH_BARRIER_TREE:
		tree(fn, team);
		break;
	case OSH_BARRIER_RING:
		ring(fn, team);
		break;
	default:
		dissemination(fn, team);
	}
}

int osh_sync(const char *fn, struct osh_team *team)
{
	if (team == NULL)
		return -1;
	if (team->n == 1)
		return 0;
	osh_check(fn, team, NULL, 0, 0);
	sync_members(fn, team, OSH_KIND_SYNC);
	return 0;
}

void osh_sync_all(const char *fn)
{
	if (osh_unlikely(osh_world == NULL || osh_pe.child))
		osh_bad_access(fn, NULL, 0, -1);
	osh_sync(fn, osh_world);
}

void osh_barrier_all(const char *fn)
{
	osh_quiet(&osh_ctx_default);
	osh_sync_all(fn);
}

/* It may be called by some PEs as exit and by others as shmem_finalize; with SHMEM_DEBUG, too. */
void osh_barrier_end(const char *fn)
{
	if (osh_world->n > 1)
		sync_members(fn, osh_world, OSH_KIND_END);
}
