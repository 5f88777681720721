/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * osb_collect - time of collectives that move data: broadcast, collect, fcollect, alltoall.
 */
#include "osb.h"

enum { BROADCAST, COLLECT, FCOLLECT, ALLTOALL };

static const struct osb_figure figures[] = {
	{ "broadcast", "Broadcast (us)", OSB_US, BROADCAST },
	{ "collect", "Collect (us)", OSB_US, COLLECT },
	{ "fcollect", "Fcollect (us)", OSB_US, FCOLLECT },
	{ "alltoall", "Alltoall (us)", OSB_US, ALLTOALL },
};

#if OSB_TEAMS
static void once(const struct osb_task *t, int root, long turn)
{
	switch (t->which) {
	case BROADCAST:
		shmem_broadcastmem(SHMEM_TEAM_WORLD, t->to, t->from, t->size, root);
		break;
	case COLLECT:
		shmem_collectmem(SHMEM_TEAM_WORLD, t->to, t->from, t->size);
		break;
	case FCOLLECT:
		shmem_fcollectmem(SHMEM_TEAM_WORLD, t->to, t->from, t->size);
		break;
	default:
		shmem_alltoallmem(SHMEM_TEAM_WORLD, t->to, t->from, t->size);
	}
	(void)turn;
}
#else
#define LONGER(a, b) ((a) > (b) ? (a) : (b))
#define SYNC_SIZE                                                                                  \
	LONGER(LONGER(SHMEM_BCAST_SYNC_SIZE, SHMEM_COLLECT_SYNC_SIZE), SHMEM_ALLTOALL_SYNC_SIZE)

/*
 * Returns the pSync array for an operation.  There is one for each root and one more: a PE that
 * uses one again has seen data from every other PE that was sent after that PE left the operation
 * which used it before.
 */
static long *sync_of(long turn)
{
	const long sets = shmem_n_pes() + 1;
	static long *all;
	long i;

	if (!all) {
		all = shmem_malloc((size_t)sets * SYNC_SIZE * sizeof(long));
		if (!all)
			osb_fail("the symmetric heap is too small: set SHMEM_SYMMETRIC_SIZE");
		for (i = 0; i < sets * SYNC_SIZE; i++)
			all[i] = SHMEM_SYNC_VALUE;
		shmem_barrier_all();
	}
	return all + turn % sets * SYNC_SIZE;
}

static void once(const struct osb_task *t, int root, long turn)
{
	const int n = shmem_n_pes();
	const size_t words = t->size / 4;
	long *sync = sync_of(turn);

	switch (t->which) {
	case BROADCAST:
		shmem_broadcast32(t->to, t->from, words, root, 0, 0, n, sync);
		break;
	case COLLECT:
		shmem_collect32(t->to, t->from, words, 0, 0, n, sync);
		break;
	case FCOLLECT:
		shmem_fcollect32(t->to, t->from, words, 0, 0, n, sync);
		break;
	default:
		shmem_alltoall32(t->to, t->from, words, 0, 0, n, sync);
	}
}
#endif

static void work(const struct osb_task *t, long count)
{
	static long turn;

	for (; count-- > 0; turn++)
		once(t, (int)(turn % shmem_n_pes()), turn);
}

static const struct osb_program program = {
	.name = "osb_collect",
	.title = "Broadcast, Collect and Alltoall",
	.about =
		"Measures collectives that move data, one immediately after the other; size is what one\n"
		"PE gives to another. The next PE is the root of the next broadcast, so it begins when the\n"
		"data of the one before is there.",
	.sizes = "4..256K",
	.figures = figures,
	.figure_count = sizeof(figures) / sizeof(figures[0]),
	.who = OSB_ALL,
	.each_pe = 1,
	.unit = 4,
	.work = work,
};

int main(int argc, char **argv)
{
	return osb_main(&program, argc, argv);
}
