/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * osb_barrier - time of a barrier, and of a synchronisation without completion, of all PEs.
 */
#include "osb.h"

enum { BARRIER, SYNC };

static const struct osb_figure figures[] = {
	{ "barrier", "barrier_all", OSB_US, BARRIER },
	{ "sync", "sync_all", OSB_US, SYNC },
};

static void work(const struct osb_task *t, long count)
{
	if (t->which == BARRIER)
		while (count-- > 0)
			shmem_barrier_all();
	else
		while (count-- > 0)
			shmem_sync_all();
}

static const struct osb_program program = {
	.name = "osb_barrier",
	.title = "Barrier",
	.about = "Measures shmem_barrier_all and shmem_sync_all, one immediately after the other.",
	.figures = figures,
	.figure_count = sizeof(figures) / sizeof(figures[0]),
	.who = OSB_ALL,
	.unit = 1,
	.work = work,
};

int main(int argc, char **argv)
{
	return osb_main(&program, argc, argv);
}
