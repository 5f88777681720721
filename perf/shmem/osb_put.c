/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * osb_put - latency and bandwidth of puts from PE 0 to the last PE.
 */
#include "osb.h"

enum { PUT, QUIET, WINDOW };

static const struct osb_figure figures[] = {
	{ "latency", "Latency (us)", OSB_US, PUT },
	{ "quiet", "With quiet (us)", OSB_US, QUIET },
	{ "nbi", "Nbi (us)", OSB_US, WINDOW },
	{ "bandwidth", "Bandwidth (MB/s)", OSB_MBPS, WINDOW },
};

static void put(const struct osb_task *t, long count)
{
	while (count-- > 0)
		shmem_putmem(t->to, t->from, t->size, t->peer);
	shmem_quiet();
}

static void put_quiet(const struct osb_task *t, long count)
{
	while (count-- > 0) {
		shmem_putmem(t->to, t->from, t->size, t->peer);
		shmem_quiet();
	}
}

static void put_window(const struct osb_task *t, long count)
{
	const long window = t->size < 1 << 20 ? 64 : 16;

	while (count > 0) {
		long i, n = count < window ? count : window;

		for (i = 0; i < n; i++)
			shmem_putmem_nbi(t->to, t->from, t->size, t->peer);
		shmem_quiet();
		count -= n;
	}
}

static void work(const struct osb_task *t, long count)
{
	(t->which == PUT ? put : t->which == QUIET ? put_quiet : put_window)(t, count);
}

static const struct osb_program program = {
	.name = "osb_put",
	.title = "Put",
	.about =
		"Measures shmem_putmem from PE 0 to the last PE: the time of a call; of a call and\n"
		"shmem_quiet; of shmem_putmem_nbi where a quiet follows 64 of them, 16 from 1 MiB.",
	.sizes = "1..1M",
	.figures = figures,
	.figure_count = sizeof(figures) / sizeof(figures[0]),
	.who = OSB_FIRST,
	.unit = 1,
	.work = work,
};

int main(int argc, char **argv)
{
	return osb_main(&program, argc, argv);
}
