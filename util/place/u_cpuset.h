/* SPDX-License-Identifier: BSD-2-Clause */
/* Sets of processors, by the numbers that Linux gives them. */
#ifndef U_CPUSET_H
#define U_CPUSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define U_CPUSET_END 8192 /* processors have lower numbers */
#define U_CPUSET_TEXT 128 /* room for a list as text; a longer one is cut */

struct u_cpuset {
	uint64_t bits[U_CPUSET_END / 64];
};

void u_cpuset_add(struct u_cpuset *set, int cpu); /* numbers outside are left out */
bool u_cpuset_has(const struct u_cpuset *set, int cpu);
int u_cpuset_count(const struct u_cpuset *set);
int u_cpuset_next(const struct u_cpuset *set, int from); /* the first, `from` or above; -1: none */
bool u_cpuset_empty(const struct u_cpuset *set);
bool u_cpuset_equal(const struct u_cpuset *a, const struct u_cpuset *b);
bool u_cpuset_within(const struct u_cpuset *a, const struct u_cpuset *b); /* a is part of b */
bool u_cpuset_meets(const struct u_cpuset *a, const struct u_cpuset *b);  /* they share one */
void u_cpuset_and(struct u_cpuset *a, const struct u_cpuset *b);  /* a becomes what both have */
void u_cpuset_or(struct u_cpuset *a, const struct u_cpuset *b);	  /* a becomes what either has */
void u_cpuset_less(struct u_cpuset *a, const struct u_cpuset *b); /* a loses what b has */

/*
 * Reads "2" or "2-5", of numbers below `end`, in rising order.  Returns the text after it, or NULL, with the outputs
 * written in part.
 */
const char *u_cpuset_range(const char *text, int end, int *first, int *last);

/*
 * Reads a list such as "2", "2-5" or "0,4-7", of one processor at least.  Returns 0; or -EINVAL with *out as before.
 */
int u_cpuset_parse(const char *text, struct u_cpuset *out);

/*
 * Writes the list, as u_cpuset_parse() reads it, in rising order, "" for an empty set; one that does not fit ends with
 * "...".  Returns `out`.
 */
char *u_cpuset_text(const struct u_cpuset *set, char *out, size_t size);

#endif
