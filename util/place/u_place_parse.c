/* SPDX-License-Identifier: BSD-2-Clause */
#include "u_place_parse.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const u_place_role_words[] = { "application", "transfer",  "service",
					   "relay",	  "interrupt", NULL };
const char *const u_place_where_words[] = {
	"none", "same-core", "shared-cache", "same-package", "other-package", "device", NULL
};

/* Writes an error line.  Returns -EINVAL. */
static int __attribute__((format(printf, 2, 3)))
refuse(char error[U_PLACE_ERROR], const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(error, U_PLACE_ERROR, format, args);
	va_end(args);
	return -EINVAL;
}

/* Returns the index of the text among `words`, -1 if it is none of them. */
static int word_of(const char *const *words, const char *text)
{
	for (int i = 0; words[i] != NULL; i++) {
		if (strcmp(words[i], text) == 0)
			return i;
	}
	return -1;
}

/* Reads the place of a rule, which is a word or a list of processors. 0; or -EINVAL with a line. */
static int parse_where(const char *text, enum u_place_role role, struct u_place_rule *rule,
		       char error[U_PLACE_ERROR])
{
	int where = word_of(u_place_where_words, text);

	if (where < 0 && u_cpuset_parse(text, &rule->list) != 0)
		return refuse(error,
			      "'%.40s' is no place: none, same-core, shared-cache, same-package, "
			      "other-package, device, or processors as in 2,3 or 2-5",
			      text);
	if (role == U_PLACE_APPLICATION && where > U_PLACE_NONE && where < U_PLACE_DEVICE)
		return refuse(error,
			      "application=%s: other places are relative to the application; "
			      "give it processors, device or none",
			      text);
	rule->where = where < 0 ? U_PLACE_LIST : (enum u_place_where)where;
	return 0;
}

/*
 * Reads «ROLE=PLACE», «strict» or «dynamic», and changes the text. 0; or -EINVAL with a line, also for a second rule of
 * a role.
 */
static int parse_rule(char *text, struct u_place_rules *rules, bool given[U_PLACE_ROLES],
		      char error[U_PLACE_ERROR])
{
	char *equals = strchr(text, '=');
	int role;

	if (strcmp(text, "strict") == 0) {
		rules->strict = true;
		return 0;
	}
	if (strcmp(text, "dynamic") == 0) {
		rules->dynamic = true;
		return 0;
	}
	if (equals == NULL)
		return refuse(error, "'%.40s' is no rule: ROLE=PLACE, strict or dynamic", text);
	*equals = '\0';
	role = word_of(u_place_role_words, text);
	if (role < 0)
		return refuse(error,
			      "'%.40s' is no role: application, transfer, service, relay, "
			      "interrupt",
			      text);
	if (given[role])
		return refuse(error, "%s has two rules", text);
	given[role] = true;
	return parse_where(equals + 1, (enum u_place_role)role, &rules->of[role], error);
}

/* `dynamic` needs service threads that may move.  0; or -EINVAL with a line. */
static int check_dynamic(const struct u_place_rules *rules, char error[U_PLACE_ERROR])
{
	enum u_place_where where = rules->of[U_PLACE_SERVICE].where;

	if (!rules->dynamic || (where != U_PLACE_NONE && where != U_PLACE_SAME_CORE))
		return 0;
	if (where == U_PLACE_NONE)
		return refuse(
			error,
			"dynamic moves service threads, for which there is no rule: service=PLACE");
	return refuse(
		error,
		"dynamic and service=same-core: these threads stay with those that they serve");
}

int u_place_parse(const char *text, struct u_place_rules *out, char error[U_PLACE_ERROR])
{
	struct u_place_rules rules = { 0 };
	bool given[U_PLACE_ROLES] = { false };
	char *copy, *rest, *rule;
	int rc = 0;

	if (strcmp(text, "none") == 0 || text[0] == '\0') {
		*out = rules;
		return 0;
	}
	copy = strdup(text);
	if (copy == NULL)
		return refuse(error, "no memory for the rules");
	rest = copy;
	while (rc == 0 && (rule = strsep(&rest, ";")) != NULL)
		rc = parse_rule(rule, &rules, given, error);
	free(copy);
	if (rc == 0)
		rc = check_dynamic(&rules, error);
	if (rc == 0)
		*out = rules;
	return rc;
}
