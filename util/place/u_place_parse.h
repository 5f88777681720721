/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules that say where threads shall run, and reading them. */
#ifndef U_PLACE_PARSE_H
#define U_PLACE_PARSE_H

#include <stdbool.h>

#include "u_cpuset.h"

enum u_place_role {
	U_PLACE_APPLICATION,
	U_PLACE_TRANSFER,
	U_PLACE_SERVICE,
	U_PLACE_RELAY,
	U_PLACE_INTERRUPT,
	U_PLACE_ROLES
};

enum u_place_where {
	U_PLACE_NONE, /* anywhere */
	U_PLACE_SAME_CORE,
	U_PLACE_SHARED_CACHE,
	U_PLACE_SAME_PACKAGE,
	U_PLACE_OTHER_PACKAGE,
	U_PLACE_DEVICE,
	U_PLACE_LIST
};

/* The words for them, NULL at the end. */
extern const char *const u_place_role_words[];
extern const char *const u_place_where_words[]; /* a list has no word */

struct u_place_rule {
	enum u_place_where where;
	struct u_cpuset list; /* for U_PLACE_LIST */
};

struct u_place_rules {
	struct u_place_rule of[U_PLACE_ROLES];
	bool strict;  /* a rule that cannot be met is an error */
	bool dynamic; /* service threads are held on one core each, and moved by load */
};

#define U_PLACE_ERROR 160

/*
 * Reads rules such as "transfer=shared-cache;relay=2,3;strict"; "" and "none" are no rules.  Returns 0, or -EINVAL and
 * a line that says what is wrong, with *out as before.
 */
int u_place_parse(const char *text, struct u_place_rules *out, char error[U_PLACE_ERROR]);

#endif
