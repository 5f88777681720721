/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * osb_get - latency and bandwidth of gets by PE 0 from the last PE.
 */
#include "osb.h"

enum { GET, WINDOW };

static const struct osb_figure figures[] = {
	{ "latency", "Latency (us)", OSB_US, GET },
	{ "nbi", "Nbi (us)", OSB_US, WINDOW },
	{ "bandwidth", "Bandwidth (MB/s)", OSB_MBPS, WINDOW },
};

static void get(const struct osb_task *t, long count)
{
	while (count-- > 0)
		shmem_getmem(t->to, t->from, t->size, t->peer);
}

static void get_window(const struct osb_task *t, long count)
{
	const long window = t->size < 1 << 20 ? 64 : 16;

	while (count > 0) {
		long i, n = count < window ? count : window;

		for (i = 0; i < n; i++)
			shmem_getmem_nbi(t->to, t->from, t->size, t->peer);
		shmem_quiet();
		count -= n;
	}
}

static void work(const struct osb_task *t, long count)
{
	(t->which == GET ? get : get_window)(t, count);
}

static const struct osb_program program = {
	.name = "osb_get",
	.title = "Get",
	.about = "Measures shmem_getmem by PE 0 from the last PE: the time of a call; of\n"
		 "shmem_getmem_nbi where a quiet follows 64 of them, 16 from 1 MiB.",
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
