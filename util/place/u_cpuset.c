/* SPDX-License-Identifier: BSD-2-Clause */
#include "u_cpuset.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define WORDS (U_CPUSET_END / 64)

void u_cpuset_add(struct u_cpuset *set, int cpu)
{
	if (cpu >= 0 && cpu < U_CPUSET_END)
		set->bits[cpu / 64] |= UINT64_C(1) << (cpu % 64);
}

bool u_cpuset_has(const struct u_cpuset *set, int cpu)
{
	return cpu >= 0 && cpu < U_CPUSET_END && (set->bits[cpu / 64] >> (cpu % 64) & 1) != 0;
}

int u_cpuset_count(const struct u_cpuset *set)
{
	int i, count = 0;

	for (i = 0; i < WORDS; i++)
		count += __builtin_popcountll(set->bits[i]);
	return count;
}

int u_cpuset_next(const struct u_cpuset *set, int from)
{
	uint64_t rest;
	int i = from / 64;

	if (from < 0 || from >= U_CPUSET_END)
		return -1;
	rest = set->bits[i] & UINT64_MAX << (from % 64);
	while (rest == 0 && ++i < WORDS)
		rest = set->bits[i];
	return rest != 0 ? i * 64 + __builtin_ctzll(rest) : -1;
}

bool u_cpuset_empty(const struct u_cpuset *set)
{
	return u_cpuset_next(set, 0) < 0;
}

bool u_cpuset_equal(const struct u_cpuset *a, const struct u_cpuset *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

bool u_cpuset_within(const struct u_cpuset *a, const struct u_cpuset *b)
{
	struct u_cpuset rest = *a;

	u_cpuset_less(&rest, b);
	return u_cpuset_empty(&rest);
}

bool u_cpuset_meets(const struct u_cpuset *a, const struct u_cpuset *b)
{
	struct u_cpuset both = *a;

	u_cpuset_and(&both, b);
	return !u_cpuset_empty(&both);
}

void u_cpuset_and(struct u_cpuset *a, const struct u_cpuset *b)
{
	for (int i = 0; i < WORDS; i++)
		a->bits[i] &= b->bits[i];
}

void u_cpuset_or(struct u_cpuset *a, const struct u_cpuset *b)
{
	for (int i = 0; i < WORDS; i++)
		a->bits[i] |= b->bits[i];
}

void u_cpuset_less(struct u_cpuset *a, const struct u_cpuset *b)
{
	for (int i = 0; i < WORDS; i++)
		a->bits[i] &= ~b->bits[i];
}

/* Reads a number below `end`.  Returns the text after it, or NULL. */
static const char *number(const char *text, int end, int *out)
{
	int value = 0;

	if (*text < '0' || *text > '9')
		return NULL;
	for (; *text >= '0' && *text <= '9'; text++) {
		value = value * 10 + (*text - '0');
		if (value >= end)
			return NULL;
	}
	*out = value;
	return text;
}

const char *u_cpuset_range(const char *text, int end, int *first, int *last)
{
	text = number(text, end, first);
	if (text == NULL)
		return NULL;
	*last = *first;
	if (*text == '-')
		text = number(text + 1, end, last);
	return text != NULL && *first <= *last ? text : NULL;
}

int u_cpuset_parse(const char *text, struct u_cpuset *out)
{
	struct u_cpuset set = { { 0 } };
	int first, last;

	for (;;) {
		text = u_cpuset_range(text, U_CPUSET_END, &first, &last);
		if (text == NULL)
			return -EINVAL;
		for (; first <= last; first++)
			u_cpuset_add(&set, first);
		if (*text == '\0')
			break;
		if (*text++ != ',')
			return -EINVAL;
	}
	*out = set;
	return 0;
}

/* The last number of those in the set that follow on `first`, without a gap; `first` where the next is not in it. */
static int run_end(const struct u_cpuset *set, int first)
{
	while (u_cpuset_has(set, first + 1))
		first++;
	return first;
}

char *u_cpuset_text(const struct u_cpuset *set, char *out, size_t size)
{
	size_t used = 0, n;
	char piece[32];
	int first, last;

	out[0] = '\0';
	for (first = u_cpuset_next(set, 0); first >= 0; first = u_cpuset_next(set, last + 1)) {
		last = run_end(set, first);
		n = (size_t)snprintf(piece, sizeof(piece), first == last ? "%s%d" : "%s%d-%d",
				     used > 0 ? "," : "", first, last);
		if (used + n + sizeof("...") > size) {
			snprintf(out + used, size - used, "...");
			break;
		}
		memcpy(out + used, piece, n + 1);
		used += n;
	}
	return out;
}
