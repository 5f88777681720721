/* SPDX-License-Identifier: BSD-2-Clause */
#include <assert.h>
#include <string.h>

#include "osh_check.h"

struct arguments {
	char fn[26]; /* the routine, without «shmem_»; may be cut */
	int16_t root;
	uint32_t space; /* of dest: its segment */
	uint64_t offset, n;
};
static_assert(sizeof(struct arguments) <= OSH_CELL_DATA, "arguments fit into a message");

static void fill(struct arguments *a, const char *fn, const void *dest, size_t n, int root)
{
	size_t offset = 0;

	memset(a, 0, sizeof(*a));
	strncpy(a->fn, strncmp(fn, "shmem_", 6) == 0 ? fn + 6 : fn, sizeof(a->fn) - 1);
	a->root = (int16_t)root;
	a->space = dest == NULL ? OSH_SEGMENTS : (uint32_t)osh_segment_of(dest, 1, &offset);
	a->offset = offset;
	a->n = n;
}

void osh_check_arguments(const char *fn, struct osh_team *team, const void *dest, size_t n,
			 int root)
{
	struct arguments mine, theirs;
	int last;

	if (team == NULL || team->n == 1)
		return;
	/* Each compares with one other, so a difference is seen somewhere. */
	last = (team->me + team->n - 1) % team->n;
	fill(&mine, fn, dest, n, root);
	osh_cell_send(fn, team, (team->me + 1) % team->n, &mine, sizeof(mine));
	osh_cell_recv(fn, team, last, &theirs, sizeof(theirs));
	theirs.fn[sizeof(theirs.fn) - 1] = '\0';
	if (strcmp(mine.fn, theirs.fn) != 0)
		osh_fatal("%s: PE %d calls shmem_%s meanwhile", fn, team->pes[last], theirs.fn);
	if (mine.n != theirs.n)
		osh_fatal("%s: the length is %zu bytes here and %zu at PE %d", fn, n,
			  (size_t)theirs.n, team->pes[last]);
	if (mine.root != theirs.root)
		osh_fatal("%s: the root is %d here and %d at PE %d", fn, root, theirs.root,
			  team->pes[last]);
	if (mine.space != theirs.space || mine.offset != theirs.offset)
		osh_fatal("%s: dest %p is not the symmetric address that PE %d gave", fn, dest,
			  team->pes[last]);
}
