/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For programs that check rules of OpenSHMEM: each rule is a function; the first one that does not
 * hold ends the job with status 1.  They run with any number of PEs from 1 to 8.
 */
#ifndef RULES_H
#define RULES_H

#include <shmem.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_PES 8

static int me, npes, next, prev;
static const char *rule_name = "the start";

static inline void rule_broken(const char *what, const char *file, int line)
{
	fprintf(stderr, "FAILED %s at PE %d of %d, %s:%d: %s\n", rule_name, me, npes, file, line,
		what);
	shmem_global_exit(1);
}

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition))                                                                  \
			rule_broken(#condition, __FILE__, __LINE__);                               \
	} while (0)

struct rule {
	const char *name;
	void (*check)(void);
};

#define RULE(name)                                                                                 \
	{                                                                                          \
#name, name                                                                        \
	}

static inline void learn_who(void)
{
	me = shmem_my_pe();
	npes = shmem_n_pes();
	next = (me + 1) % npes;
	prev = (me + npes - 1) % npes;
	if (npes > MAX_PES) {
		fprintf(stderr, "run this with %d PEs at most\n", MAX_PES);
		shmem_global_exit(2);
	}
}

static inline void run_rules(const struct rule *rules, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		rule_name = rules[i].name;
		rules[i].check();
		shmem_barrier_all();
		if (me == 0)
			printf("ok %s\n", rule_name);
	}
}

/* A main() that checks the rules of an array named `rules`. */
#define RULES_MAIN                                                                                 \
	int main(void)                                                                             \
	{                                                                                          \
		shmem_init();                                                                      \
		learn_who();                                                                       \
		run_rules(rules, sizeof(rules) / sizeof(rules[0]));                                \
		shmem_finalize();                                                                  \
		return 0;                                                                          \
	}

#endif
