/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * osb_amo - time of each atomic operation of PE 0 on a word of the last PE.
 */
#include "osb.h"

enum {
	FETCH,
	SET,
	SWAP,
	CSWAP,
	FETCH_INC,
	INC,
	FETCH_ADD,
	ADD,
	FETCH_AND,
	AND,
	FETCH_OR,
	OR,
	FETCH_XOR,
	XOR
};

static const struct osb_figure figures[] = {
	{ "fetch", "fetch", OSB_US, FETCH },
	{ "set", "set", OSB_US, SET },
	{ "swap", "swap", OSB_US, SWAP },
	{ "compare_swap", "compare_swap", OSB_US, CSWAP },
	{ "fetch_inc", "fetch_inc", OSB_US, FETCH_INC },
	{ "inc", "inc", OSB_US, INC },
	{ "fetch_add", "fetch_add", OSB_US, FETCH_ADD },
	{ "add", "add", OSB_US, ADD },
	{ "fetch_and", "fetch_and", OSB_US, FETCH_AND },
	{ "and", "and", OSB_US, AND },
	{ "fetch_or", "fetch_or", OSB_US, FETCH_OR },
	{ "or", "or", OSB_US, OR },
	{ "fetch_xor", "fetch_xor", OSB_US, FETCH_XOR },
	{ "xor", "xor", OSB_US, XOR },
};

#define REPEAT(call)                                                                               \
	for (i = 0; i < count; i++) {                                                              \
		call;                                                                              \
	}                                                                                          \
	break

static void work(const struct osb_task *t, long count)
{
	unsigned long *word = (unsigned long *)t->to, old = 0;
	const int pe = t->peer;
	long i;

	switch (t->which) {
	case FETCH:
		REPEAT(shmem_ulong_atomic_fetch(word, pe));
	case SET:
		REPEAT(shmem_ulong_atomic_set(word, (unsigned long)i, pe));
	case SWAP:
		REPEAT(shmem_ulong_atomic_swap(word, (unsigned long)i, pe));
	case CSWAP: /* every second one finds the value with which it compares */
		REPEAT(old = shmem_ulong_atomic_compare_swap(word, old, (unsigned long)i, pe));
	case FETCH_INC:
		REPEAT(shmem_ulong_atomic_fetch_inc(word, pe));
	case INC:
		REPEAT(shmem_ulong_atomic_inc(word, pe));
	case FETCH_ADD:
		REPEAT(shmem_ulong_atomic_fetch_add(word, 3, pe));
	case ADD:
		REPEAT(shmem_ulong_atomic_add(word, 3, pe));
	case FETCH_AND:
		REPEAT(shmem_ulong_atomic_fetch_and(word, 255, pe));
	case AND:
		REPEAT(shmem_ulong_atomic_and(word, 255, pe));
	case FETCH_OR:
		REPEAT(shmem_ulong_atomic_fetch_or(word, 256, pe));
	case OR:
		REPEAT(shmem_ulong_atomic_or(word, 256, pe));
	case FETCH_XOR:
		REPEAT(shmem_ulong_atomic_fetch_xor(word, 1, pe));
	case XOR:
		REPEAT(shmem_ulong_atomic_xor(word, 1, pe));
	}
	shmem_quiet();
}

static const struct osb_program program = {
	.name = "osb_amo",
	.title = "Atomics",
	.about =
		"Measures each atomic operation on an unsigned long, of PE 0 at the last PE. Many operations\n"
		"that fetch nothing are begun, and one shmem_quiet ends them.",
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
