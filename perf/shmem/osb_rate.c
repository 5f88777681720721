/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * osb_rate - small puts per second from the first half of the PEs to the second.
 */
#include "osb.h"

#define WINDOW 64

enum { PUT, NBI, P };

static const struct osb_figure figures[] = {
	{ "put", "Put (M/s)", OSB_MPS, PUT },
	{ "nbi", "Nbi (M/s)", OSB_MPS, NBI },
	{ "p", "8-byte p (M/s)", OSB_MPS, P },
};

/* Puts n times; each operation of a window has a place of its own. */
static void burst(const struct osb_task *t, long n)
{
	const size_t stride = t->size;
	long i;

	for (i = 0; i < n; i++) {
		char *to = t->to + (size_t)i * stride;

		if (t->which == PUT)
			shmem_putmem(to, t->from, t->size, t->peer);
		else if (t->which == NBI)
			shmem_putmem_nbi(to, t->from, t->size, t->peer);
		else
			shmem_long_p((long *)(t->to + (size_t)i * sizeof(long)), i, t->peer);
	}
	shmem_quiet();
}

static void work(const struct osb_task *t, long count)
{
	while (count > 0) {
		long n = count < WINDOW ? count : WINDOW;

		burst(t, n);
		count -= n;
	}
}

static const struct osb_program program = {
	.name = "osb_rate",
	.title = "Message Rate",
	.about =
		"Measures puts per second, those of all pairs added: each PE of the first half puts to\n"
		"its partner in the second. A shmem_quiet follows 64 of them.",
	.sizes = "8",
	.figures = figures,
	.figure_count = sizeof(figures) / sizeof(figures[0]),
	.who = OSB_HALF,
	.places = WINDOW,
	.unit = 1,
	.work = work,
};

int main(int argc, char **argv)
{
	return osb_main(&program, argc, argv);
}
