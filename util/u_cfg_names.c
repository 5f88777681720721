/* SPDX-License-Identifier: BSD-2-Clause */
#include "u_cfg_names.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "u_log.h"

#define AREA "u"
#define PREFIX "VIADUCT_"
/* Not read by the library: the build that scripts/ and perf/ use, and the socket and page that oshrun gives a PE. */
#define OF_SCRIPTS PREFIX "BUILD"
#define OF_OSHRUN PREFIX "OSHRUN"
/*
 * The beginning of those that vi_run sets and libvisock.so checks itself: PROMOTE, RULES, MAP, BIND, LOOPBACK, SERVICE,
 * PLACE, STATS and ALL follow (vs_env.h).
 */
#define OF_SOCKETS "VIADUCT_SOCK_"
#define NAME_BYTES 64 /* longer names are compared by their first bytes */
#define NEAR_ENOUGH 4 /* edits within which a name is worth suggesting */

static unsigned int min3(unsigned int a, unsigned int b, unsigned int c)
{
	unsigned int ab = a < b ? a : b;

	return ab < c ? ab : c;
}

/* The least number of insertions, deletions and replacements that turn a into b; only NAME_BYTES of each count. */
static unsigned int edit_distance(const char *a, const char *b)
{
	size_t n = strnlen(b, NAME_BYTES);
	unsigned int row[NAME_BYTES + 1];

	for (unsigned int j = 0; j <= n; j++)
		row[j] = j;
	for (unsigned int i = 0; a[i] != '\0' && i < NAME_BYTES; i++) {
		unsigned int diagonal = row[0];

		row[0] = i + 1;
		for (size_t j = 1; j <= n; j++) {
			unsigned int above = row[j];

			row[j] = min3(above + 1, row[j - 1] + 1, diagonal + (a[i] != b[j - 1]));
			diagonal = above;
		}
	}
	return row[n];
}

/* Returns the known name that is nearest, NULL if none is near enough. */
static const char *nearest_name(const char *name, const char *const *known, size_t count)
{
	const char *best = NULL;
	unsigned int best_distance = NEAR_ENOUGH + 1;

	for (size_t i = 0; i < count; i++) {
		unsigned int d = edit_distance(name, known[i]);

		if (d < best_distance) {
			best_distance = d;
			best = known[i];
		}
	}
	return best;
}

/* Is it one of these names, or one that another program reads? */
static bool is_known(const char *name, const char *const *known, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(known[i], name) == 0)
			return true;
	}
	return strcmp(name, OF_SCRIPTS) == 0 || strcmp(name, OF_OSHRUN) == 0 ||
	       strncmp(name, OF_SOCKETS, strlen(OF_SOCKETS)) == 0;
}

void u_cfg_names_check(const char *const *known, size_t count)
{
	char name[NAME_BYTES];

	for (char **e = environ; e != NULL && *e != NULL; e++) {
		const char *near;

		if (strncmp(*e, PREFIX, strlen(PREFIX)) != 0)
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(*e, "="), *e);
		if (is_known(name, known, count))
			continue;
		near = nearest_name(name, known, count);
		if (near != NULL)
			u_warn(AREA,
			       "%s is not a variable of Viaduct and has no effect; did you mean %s?",
			       name, near);
		else
			u_warn(AREA,
			       "%s is not a variable of Viaduct and has no effect; see vi_info --env",
			       name);
	}
}
