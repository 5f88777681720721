/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * osb_reduce - time of a sum over all PEs.
 */
#include <stdlib.h>

#include "osb.h"

static const struct osb_figure figures[] = {
	{ "latency", "Latency (us)", OSB_US, 0 },
};

#if OSB_TEAMS
static void work(const struct osb_task *t, long count)
{
	while (count-- > 0)
		shmem_float_sum_reduce(SHMEM_TEAM_WORLD, (float *)t->to, (float *)t->from,
				       t->size / sizeof(float));
}
#else
/*
 * Two of each are enough: a PE that begins the next operation but one has the data of all PEs, so
 * they have left this one.
 */
static long (*sync_of)[SHMEM_REDUCE_SYNC_SIZE];
static float *work_of[2];
static size_t room;

static void make_room(size_t count)
{
	size_t need = count / 2 + 1, i, k;

	if (need < SHMEM_REDUCE_MIN_WRKDATA_SIZE)
		need = SHMEM_REDUCE_MIN_WRKDATA_SIZE;
	if (room >= need)
		return;
	if (!sync_of)
		sync_of = shmem_malloc(2 * sizeof(*sync_of));
	room = need;
	for (i = 0; i < 2; i++) {
		shmem_free(work_of[i]);
		work_of[i] = shmem_malloc(need * sizeof(float));
		if (!sync_of || !work_of[i])
			osb_fail("the symmetric heap is too small: set SHMEM_SYMMETRIC_SIZE");
		for (k = 0; k < SHMEM_REDUCE_SYNC_SIZE; k++)
			sync_of[i][k] = SHMEM_SYNC_VALUE;
	}
	shmem_barrier_all();
}

static void work(const struct osb_task *t, long count)
{
	static int turn;

	make_room(t->size / sizeof(float));
	for (; count-- > 0; turn ^= 1)
		shmem_float_sum_to_all((float *)t->to, (float *)t->from,
				       (int)(t->size / sizeof(float)), 0, 0, shmem_n_pes(),
				       work_of[turn], sync_of[turn]);
}
#endif

static const struct osb_program program = {
	.name = "osb_reduce",
	.title = "Reduce",
	.about =
		"Measures the sum of floats over all PEs, one reduction immediately after the other:\n"
		"shmem_float_sum_reduce, before OpenSHMEM 1.5 shmem_float_sum_to_all.",
	.sizes = "4..1M",
	.figures = figures,
	.figure_count = sizeof(figures) / sizeof(figures[0]),
	.who = OSB_ALL,
	.unit = sizeof(float),
	.work = work,
};

int main(int argc, char **argv)
{
	return osb_main(&program, argc, argv);
}
