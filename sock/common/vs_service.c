// SPDX-License-Identifier: BSD-2-Clause
#include "vs_service.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PLACE_MAX 120
#define PROCESSORS_MAX 1024

enum role { APP, SVC, IRQ, ROLES };

static const char *const role_words[ROLES] = { "app", "svc", "irq" };

int vs_service_parse(const char *text, unsigned int *pollers)
{
	static const char word[] = "poller:";
	unsigned long n;
	char *end;

	if (strcmp(text, "none") == 0) {
		*pollers = 0;
		return 0;
	}
	if (strncmp(text, word, strlen(word)) != 0 || !isdigit((unsigned char)text[strlen(word)]))
		return -EINVAL;
	n = strtoul(text + strlen(word), &end, 10);
	if (*end || n < 1 || n > VS_POLLERS_MAX)
		return -EINVAL;
	*pollers = (unsigned int)n;
	return 0;
}

/* ---- places ---- */

/* Reads a processor's number, and returns where it ends; NULL: there is none, or it is above 1023. */
static const char *number(const char *text, unsigned long *n)
{
	char *end;

	if (!isdigit((unsigned char)text[0]))
		return NULL;
	*n = strtoul(text, &end, 10);
	return *n < PROCESSORS_MAX ? end : NULL;
}

/* True: the text is a list of processors as in 2-5,8. */
static bool is_list(const char *text)
{
	unsigned long from, to;

	for (;;) {
		text = number(text, &from);
		to = from;
		if (text && *text == '-')
			text = number(text + 1, &to);
		if (!text || to < from)
			return false;
		if (*text == '\0')
			return true;
		if (*text++ != ',')
			return false;
	}
}

/*
 * The word of docs/placement.md for a place, or the text itself if it is a list; NULL: it is neither.  For APP there
 * are only the words `none` and `device`.
 */
static const char *place_word(enum role role, const char *text)
{
	static const char *const words[][2] = {
		{ "none", "none" },
		{ "device", "device" },
		{ "core", "same-core" },
		{ "llc", "shared-cache" },
		{ "package", "same-package" },
		{ "other", "other-package" },
	};
	size_t i, n = role == APP ? 2 : sizeof(words) / sizeof(words[0]);

	for (i = 0; i < n; i++) {
		if (strcmp(words[i][0], text) == 0)
			return words[i][1];
	}
	return is_list(text) ? text : NULL;
}

struct places {
	char of[ROLES][PLACE_MAX];
	bool strict, dynamic;
};

/*
 * Takes "svc=llc", with the parts of a list that follow, "strict" or "dynamic".  False: it is none of these, the place
 * is none, or the role has one already.
 */
static bool read_part(struct places *p, char *text)
{
	char *equals = strchr(text, '=');
	const char *word;
	int role;

	if (strcmp(text, "strict") == 0) {
		p->strict = true;
		return true;
	}
	if (strcmp(text, "dynamic") == 0) {
		p->dynamic = true;
		return true;
	}
	if (!equals)
		return false;
	for (role = 0; role < ROLES; role++) {
		if (strlen(role_words[role]) == (size_t)(equals - text) &&
		    strncmp(role_words[role], text, (size_t)(equals - text)) == 0)
			break;
	}
	if (role == ROLES || p->of[role][0])
		return false;
	word = place_word((enum role)role, equals + 1);
	if (!word || strlen(word) >= PLACE_MAX)
		return false;
	strcpy(p->of[role], word);
	return true;
}

/* The comma that ends this part, or NULL: one before a digit is part of a list of processors. */
static char *part_end(char *text)
{
	char *at = strchr(text, ',');

	while (at && isdigit((unsigned char)at[1]))
		at = strchr(at + 1, ',');
	return at;
}

/*
 * Writes the rules for VIADUCT_AFFINITY.  Interrupts, engines and relays are one role here; an agent knows no
 * application but by a list.
 */
static void compose(const struct places *p, char out[VS_AFFINITY_MAX])
{
	const char *irq = p->of[IRQ];
	int at = 0;

	out[0] = '\0';
	if (p->of[APP][0])
		at += snprintf(out + at, (size_t)(VS_AFFINITY_MAX - at), "application=%s;",
			       p->of[APP]);
	if (p->of[SVC][0])
		at += snprintf(out + at, (size_t)(VS_AFFINITY_MAX - at), "service=%s;", p->of[SVC]);
	if (irq[0])
		at += snprintf(out + at, (size_t)(VS_AFFINITY_MAX - at), "transfer=%s;", irq);
	if (irq[0] && (is_list(irq) || is_list(p->of[APP]) || strcmp(irq, "device") == 0))
		at += snprintf(out + at, (size_t)(VS_AFFINITY_MAX - at), "relay=%s;interrupt=%s;",
			       irq, irq);
	if (p->dynamic)
		at += snprintf(out + at, (size_t)(VS_AFFINITY_MAX - at), "dynamic;");
	if (p->strict)
		at += snprintf(out + at, (size_t)(VS_AFFINITY_MAX - at), "strict;");
	if (at > 0)
		out[at - 1] = '\0';
}

int vs_place_parse(const char *text, char affinity[VS_AFFINITY_MAX], char bad[VS_SERVICE_BAD])
{
	char copy[VS_AFFINITY_MAX], *part = copy, *end;
	struct places p = { 0 };

	snprintf(bad, VS_SERVICE_BAD, "%s", text);
	if (strlen(text) >= sizeof(copy))
		return -EINVAL;
	strcpy(copy, text);
	do {
		end = part_end(part);
		if (end)
			*end = '\0';
		if (!read_part(&p, part)) {
			snprintf(bad, VS_SERVICE_BAD, "%.*s", VS_SERVICE_BAD - 1, part);
			return -EINVAL;
		}
		part = end ? end + 1 : NULL;
	} while (part);
	/* As the library will say of the rules. */
	if (p.dynamic && (!p.of[SVC][0] || strcmp(p.of[SVC], "none") == 0 ||
			  strcmp(p.of[SVC], "same-core") == 0)) {
		snprintf(bad, VS_SERVICE_BAD, "dynamic");
		return -EINVAL;
	}
	compose(&p, affinity);
	return 0;
}
