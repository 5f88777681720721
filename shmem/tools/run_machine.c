/* SPDX-License-Identifier: BSD-2-Clause */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "boot_wire.h"
#include "run_machine.h"

/* Is it a name of this machine: the own one, with or without a domain, or "localhost" and its addresses? */
static bool is_here(const char *name, size_t n)
{
	static const char *const always[] = { "localhost", "127.0.0.1", "::1" };
	char own[HOST_NAME_MAX + 1] = "";
	const char *dot = memchr(name, '.', n);
	size_t i;

	for (i = 0; i < sizeof(always) / sizeof(always[0]); i++) {
		if (n == strlen(always[i]) && strncmp(name, always[i], n) == 0)
			return true;
	}
	if (gethostname(own, sizeof(own) - 1) != 0 || n == 0)
		return false;
	/* With its domain or without. */
	if (dot != NULL)
		n = (size_t)(dot - name);
	return n == strcspn(own, ".") && strncmp(name, own, n) == 0;
}

/* The number of PEs that the text is, or -1: it is none. */
static int slots_of(const char *text, size_t n)
{
	char *end;
	long v;

	if (n == 0 || text[0] < '0' || text[0] > '9')
		return -1;
	v = strtol(text, &end, 10);
	return end == text + n && v > 0 && v <= (long)BOOT_WIRE_PES_MAX ? (int)v : -1;
}

/*
 * Can it be the name of a machine? Nothing that a remote shell would take for an option, or a shell for more than a
 * word.
 */
static bool is_name(const char *name, size_t n)
{
	bool bracket = n > 2 && name[0] == '[' && name[n - 1] == ']';
	size_t i;

	if (n == 0 || n >= RUN_MACHINE_NAME || name[0] == '-')
		return false;
	for (i = bracket; i < n - bracket; i++) {
		if (!isalnum((unsigned char)name[i]) && strchr("._-@%", name[i]) == NULL &&
		    !(bracket && name[i] == ':'))
			return false;
	}
	return true;
}

/* The entry of the machine, which is made, without slots, when there is none; NULL: there are too many. */
static struct run_machine *entry_of(struct run_machines *m, const char *name, size_t n)
{
	bool here = is_here(name, n);
	int i;

	if (n > 2 && name[0] == '[') { /* brackets are for this list only */
		name++;
		n -= 2;
	}
	for (i = 0; i < m->n; i++) {
		const struct run_machine *at = &m->at[i];

		if (here ? at->here : strlen(at->name) == n && memcmp(at->name, name, n) == 0)
			return &m->at[i];
	}
	if (m->n == RUN_MACHINES_MAX)
		return NULL;
	m->at[m->n] = (struct run_machine){ .here = here };
	memcpy(m->at[m->n].name, name, n);
	return &m->at[m->n++];
}

/* Gives a machine more slots. False: slots is no number of PEs, or machines or PEs are too many. */
static bool add(struct run_machines *m, const char *name, size_t n, int slots)
{
	struct run_machine *entry = slots > 0 ? entry_of(m, name, n) : NULL;

	if (entry == NULL || entry->slots > (int)BOOT_WIRE_PES_MAX - slots)
		return false;
	entry->slots += slots;
	return true;
}

/*
 * Takes "NAME[:N]", *n bytes, apart: *n is then the length of the name, and N, 1 where there is none, is returned;
 * -1: it is no such thing.
 */
static int parse_entry(const char *entry, size_t *n)
{
	const char *colon = memrchr(entry, ':', *n);
	size_t all = *n;

	if (is_here(entry, all) || is_name(entry, all))
		return 1;
	if (colon == NULL)
		return -1;
	*n = (size_t)(colon - entry);
	if (!is_here(entry, *n) && !is_name(entry, *n))
		return -1;
	return slots_of(colon + 1, all - *n - 1);
}

bool run_machine_list(struct run_machines *m, const char *list, char word[RUN_MACHINE_WORD])
{
	size_t n, name;
	int slots;

	for (;; list += n + 1) {
		n = name = strcspn(list, ",");
		slots = parse_entry(list, &name);
		if (!add(m, list, name, slots)) {
			snprintf(word, RUN_MACHINE_WORD, "%.*s", (int)(n < 200 ? n : 200), list);
			return false;
		}
		if (list[n] == '\0')
			return true;
	}
}

/* Adds what a line of a file says, maybe nothing; changes the line. False: it is wrong, and `word` is what. */
static bool line_ok(struct run_machines *m, char *line, char word[RUN_MACHINE_WORD])
{
	static const char blanks[] = " \t\r\n", slots_is[] = "slots=";
	char *rest, *name, *more;
	size_t n;
	int slots;

	line[strcspn(line, "#")] = '\0';
	name = strtok_r(line, blanks, &rest);
	if (name == NULL)
		return true;
	snprintf(word, RUN_MACHINE_WORD, "%s", name);
	n = strlen(name);
	slots = parse_entry(name, &n);
	while (slots > 0 && (more = strtok_r(NULL, blanks, &rest)) != NULL) {
		if (strncmp(more, slots_is, sizeof(slots_is) - 1) != 0)
			continue;
		snprintf(word, RUN_MACHINE_WORD, "%s", more);
		more += sizeof(slots_is) - 1;
		slots = slots_of(more, strlen(more));
	}
	return add(m, name, n, slots);
}

int run_machine_file(struct run_machines *m, const char *path, char word[RUN_MACHINE_WORD])
{
	FILE *file = fopen(path, "re");
	char *line = NULL;
	size_t room = 0;
	bool ok = true;
	int error;

	if (file == NULL)
		return RUN_MACHINE_UNREAD;
	errno = 0;
	while (ok && getline(&line, &room, file) >= 0)
		ok = line_ok(m, line, word);
	error = ferror(file) ? errno : 0;
	free(line);
	fclose(file);
	errno = error;
	return error != 0 ? RUN_MACHINE_UNREAD : ok ? 0 : -1;
}

bool run_machine_any_far(const struct run_machines *m)
{
	int i;

	for (i = 0; i < m->n; i++) {
		if (!m->at[i].here)
			return true;
	}
	return false;
}
