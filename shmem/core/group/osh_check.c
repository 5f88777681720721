/* SPDX-License-Identifier: BSD-2-Clause */
#include <assert.h>
#include <string.h>

#include "osh_check.h"
#include "osh_msg.h"
#include "osh_target.h"

/* A symmetric address, in terms of no process. */
struct place {
	uint32_t segment;
	uint64_t offset;
} __attribute__((packed));

struct arguments {
	char fn[26]; /* the routine, without «shmem_»; may be cut */
	int16_t root;
	struct place dest;
	uint64_t n;
};
static_assert(sizeof(struct arguments) <= OSH_MSG_DATA, "arguments fit into a message");

/* Where an address is; NULL, or one that is not symmetric, has the segment OSH_SEGMENTS. */
static struct place place_of(const void *addr)
{
	size_t offset = 0;
	int s = addr == NULL ? OSH_SEGMENTS : osh_segment_of(addr, 1, &offset);

	return (struct place){ (uint32_t)s, offset };
}

/*
 * Sends n bytes, at most OSH_MSG_DATA, to the next member, and receives those of the one before, whose number in the
 * world it returns. Each member compares with one other, so a difference is seen somewhere. The team has two members
 * or more; its kind is OSH_KIND_CHECK afterwards.
 */
static int swap(const char *fn, struct osh_team *team, const void *mine, void *theirs, size_t n)
{
	int last = (team->me + team->n - 1) % team->n;

	team->kind = OSH_KIND_CHECK;
	osh_msg_send(fn, team, (team->me + 1) % team->n, mine, n);
	osh_msg_recv(fn, team, last, theirs, n);
	return team->pes[last];
}

/* Fills all of *a, with the name of the routine without «shmem_», cut to what fits. */
static void fill(struct arguments *a, const char *fn, const void *dest, size_t n, int root)
{
	memset(a, 0, sizeof(*a));
	strncpy(a->fn, strncmp(fn, "shmem_", 6) == 0 ? fn + 6 : fn, sizeof(a->fn) - 1);
	a->root = (int16_t)root;
	a->dest = place_of(dest);
	a->n = n;
}

void osh_check_arguments(const char *fn, struct osh_team *team, const void *dest, size_t n,
			 int root)
{
	struct arguments mine, theirs;
	int pe;

	if (team == NULL || team->n == 1)
		return;
	fill(&mine, fn, dest, n, root);
	pe = swap(fn, team, &mine, &theirs, sizeof(mine));
	theirs.fn[sizeof(theirs.fn) - 1] = '\0';
	if (strcmp(mine.fn, theirs.fn) != 0)
		osh_fatal("%s: PE %d is in shmem_%s instead", fn, pe, theirs.fn);
	if (mine.n != theirs.n)
		osh_fatal("%s: the length is %zu byte%s here and %zu at PE %d", fn, n,
			  n == 1 ? "" : "s", (size_t)theirs.n, pe);
	if (mine.root != theirs.root)
		osh_fatal("%s: the root is %d here and %d at PE %d", fn, root, theirs.root, pe);
	if (memcmp(&mine.dest, &theirs.dest, sizeof(mine.dest)) != 0)
		osh_fatal("%s: dest %p is not the symmetric address that PE %d gave", fn, dest, pe);
}

void osh_check_symmetric(const char *fn, struct osh_team *team, const void *source, size_t n)
{
	struct place mine = place_of(source), theirs;
	size_t offset;
	int pe;

	if (osh_segment_of(source, n, &offset) == OSH_SEGMENTS)
		osh_bad_access(fn, source, n, osh_pe.me);
	if (team->n == 1)
		return;
	pe = swap(fn, team, &mine, &theirs, sizeof(mine));
	if (memcmp(&mine, &theirs, sizeof(mine)) != 0)
		osh_fatal("%s: source %p is not the symmetric address that PE %d gave", fn, source,
			  pe);
}
